package film

import (
	"fmt"
	"math"
	"time"
)

// Sampling says which frames of a film a model sees. Policies of model families are
// values of it:
//
//	llama.cpp              Sampling{Rate: 4}
//	a frame a second       Sampling{Rate: 1, Max: 32}
//	thirty-two, evenly     Sampling{Count: 32, Max: 32}
type Sampling struct {
	Rate       float64       // frames a second
	Count      int           // frames in all, evenly spread; where Rate is 0
	Max        int           // at most so many, spread evenly where Rate asks for more; 0 for the limit
	Start, End time.Duration // the part of the film that is looked at; End 0 is its end
}

// Plan is a choice of frames: Count of them, number n as it is seen at the time Start +
// n/Rate, rounded to the nearest like ffmpeg's fps filter does, scaled down to W×H pixels;
// where they are 0 as large as it is.
type Plan struct {
	Start, End time.Duration
	Rate       float64
	Count      int
	W, H       int
}

// size is that of the frames of a plan for a film.
func (p Plan) size(i Info) (w, h int) {
	if p.W == 0 || p.H == 0 {
		return i.W, i.H
	}
	return p.W, p.H
}

// held is the size at which so many frames of w×h pixels have no more than most together.
func held(w, h, count int, most int64) (int, int) {
	n := float64(w) * float64(h) * float64(count)
	if n <= float64(most) {
		return w, h
	}
	scale := math.Sqrt(float64(most) / n)
	return max(int(float64(w)*scale), 1), max(int(float64(h)*scale), 1)
}

// At is the time of frame n.
func (p Plan) At(n int) time.Duration {
	return p.Start + duration(float64(n)/p.Rate)
}

// Plan follows from a film's headers alone. A plan never has more frames than the
// limit, nor, for a Count, more than the part has, nor more pixels in all.
func (s Sampling) Plan(i Info, l Limits) (Plan, error) {
	l = l.or(DefaultLimits())
	most := l.Frames
	if s.Max > 0 {
		most = min(most, s.Max)
	}
	p := Plan{Start: s.Start, End: i.Duration}
	if s.End > 0 {
		p.End = min(s.End, i.Duration)
	}
	switch {
	case i.VideoCodec == "":
		return p, fmt.Errorf("film: %w: it has no pictures", ErrUnsupported)
	case s.Rate < 0 || math.IsNaN(s.Rate) || s.Rate > 1000 || s.Count < 0 || s.Max < 0 || s.Start < 0 || s.End < 0:
		return p, fmt.Errorf("film: a sampling of %g a second, %d frames, %d at most", s.Rate, s.Count, s.Max)
	case p.Start >= p.End:
		return p, fmt.Errorf("film: the part from %v to %v %w, the film lasts %v", s.Start, p.End, ErrEmpty, i.Duration)
	}
	seconds := (p.End - p.Start).Seconds()
	switch {
	case s.Rate > 0:
		p.Rate, p.Count = s.Rate, max(int(math.Round(seconds*s.Rate)), 1)
	case s.Count > 0:
		p.Count = min(s.Count, i.within(p.Start, p.End))
		p.Rate = float64(p.Count) / seconds
	default:
		p.Count = min(most, i.within(p.Start, p.End))
		p.Rate = float64(p.Count) / seconds
	}
	if p.Count > most {
		p.Count = most
		p.Rate = float64(most) / seconds
	}
	p.W, p.H = held(i.W, i.H, p.Count, l.Pixels)
	return p, nil
}

// within is how many frames a part has: as far as is known, else as many as one likes.
func (i Info) within(start, end time.Duration) int {
	switch {
	case i.starts != nil:
		n := 0
		for _, at := range i.starts {
			if at >= start && at < end {
				n++
			}
		}
		return max(n, 1)
	case i.Frames > 0 && i.Duration > 0:
		return max(int(math.Round(float64(i.Frames)*float64(end-start)/float64(i.Duration))), 1)
	}
	return math.MaxInt32
}

// pick gives, for each frame of a plan, the number of the source frame that is seen: the
// last one that begins before the middle between it and the next.
func (p Plan) pick(starts []time.Duration) []int {
	picks, at := make([]int, p.Count), 0
	for n := range picks {
		until := p.Start + duration((float64(n)+0.5)/p.Rate)
		for at+1 < len(starts) && starts[at+1] < until {
			at++
		}
		picks[n] = at
	}
	return picks
}
