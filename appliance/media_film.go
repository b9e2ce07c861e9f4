package appliance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ganglion/appliance/media/film"
	"ganglion/gpu/pixel"
)

// FilmStyle is what stands between the frames of a film in a prompt.
type FilmStyle string

// The styles: each is how one family was trained, or the reference's own.
const (
	// FilmPlain: "Video:", the frames, and behind the first one and then every five seconds
	// the time, as the reference writes it.
	FilmPlain FilmStyle = "plain"
	// FilmCaptions: a sentence with the number of frames and the length, and the time before
	// each frame (SmolVLM).
	FilmCaptions FilmStyle = "captions"
	// FilmSeconds: the middle time before each pair of frames (Qwen3-VL).
	FilmSeconds FilmStyle = "seconds"
)

// FilmPolicy is how a model wants to see films, where a request says nothing else.
type FilmPolicy struct {
	Rate      float64 // frames a second, or
	Count     int     // so many, evenly spread
	Max       int     // frames at most; 0: the limit of films
	MaxTokens int     // of one frame; 0: as of a picture
	Untiled   bool    // frames are not cut into tiles
	Style     FilmStyle
}

// referenceFilm is the policy of the reference for every model, which a descriptor can ask
// for (video_compat).
var referenceFilm = FilmPolicy{Rate: 4, Style: FilmPlain}

// FilmFrame is one frame of a film and the text that stands before it.
type FilmFrame struct {
	W, H   int
	Before string
}

// filmBytes is what an animation takes for each pixel beside the frames that are kept.
const filmBytes = 22

// filmPlan is what is known of a film before it is decoded.
type filmPlan struct {
	info   film.Info
	plan   film.Plan
	frames []FilmFrame
	sound  *film.SoundInfo // of the sound track that the model hears; nil: none
}

// measureFilm reads a film's headers and chooses its frames.
func (a *attachment) measureFilm(e Encoder, engine *film.Engine) error {
	m, policy := a.media, e.Info().Film
	if m.Hints.Reference {
		policy = referenceFilm
	}
	f := &filmPlan{}
	var err error
	if m.Frames == nil {
		f.info, err = film.Describe(m.Data, a.limits())
	} else {
		rate := m.Hints.FPS
		if rate == 0 {
			rate = 1
		}
		data := make([][]byte, len(m.Frames))
		for i := range m.Frames {
			data[i] = m.Frames[i].Data
		}
		f.info, err = film.DescribeList(data, rate, a.limits())
		policy.Rate, policy.Count = rate, 0 // who chose the frames meant them
	}
	if err != nil {
		return err
	}
	if !f.info.Native() && !decodes(engine) {
		return fmt.Errorf("film: %w", film.ErrNoDecoder)
	}
	s := film.Sampling{Rate: policy.Rate, Count: policy.Count, Max: policy.Max, Start: seconds(m.Hints.Start), End: seconds(m.Hints.End)}
	if m.Hints.FPS > 0 {
		s.Rate, s.Count = m.Hints.FPS, 0
	}
	if m.Hints.MaxFrames > 0 {
		s.Max = m.Hints.MaxFrames
	}
	if f.plan, err = s.Plan(f.info, a.limits()); errors.Is(err, film.ErrEmpty) {
		return m.Hints.emptyPart(m.Param, err)
	} else if err != nil {
		return err
	}
	a.memory = 3*int64(f.plan.W)*int64(f.plan.H)*int64(f.plan.Count) + filmBytes*int64(f.info.W)*int64(f.info.H)
	if a.options.MaxTokens == 0 {
		a.options.MaxTokens = policy.MaxTokens
	}
	a.options.Untiled = policy.Untiled
	f.frames, a.w, a.h, a.seconds = f.framesOf(policy.Style), f.plan.W, f.plan.H, f.info.Duration.Seconds()
	a.film = f
	if a.layout, err = e.Film(f.frames, a.options); err != nil {
		return err
	}
	one, err := e.Picture(a.w, a.h, a.options)
	if err != nil {
		return err
	}
	a.frames = append(a.frames, frameOf(one)) // each has its own, behind what is said of the film
	if text := f.behind(policy.Style); text != "" {
		a.layout = append(a.layout, Piece{Text: text})
	}
	return a.measureTrack(e, engine)
}

// emptyPart names the wish that leaves nothing of a film to look at.
func (h Hints) emptyPart(param string, err error) error {
	switch {
	case h.End > 0 && h.End <= h.Start:
		param += ".end"
	case h.Start > 0:
		param += ".start"
	}
	return Errorf(CodeInvalid, param, "%s: %v", param, plainly{err})
}

// measureTrack puts the sound track behind the frames, where the model hears: what sounds
// while they are seen. The reference has no ear for films, and a film whose frames need no
// decoder is shown without its sound where there is none.
func (a *attachment) measureTrack(e Encoder, engine *film.Engine) error {
	f := a.film
	if !e.Info().Audios || a.media.Hints.Reference || f.info.AudioCodec == "" || !decodes(engine) {
		return nil
	}
	info, err := film.DescribeSound(a.media.Data, a.limits())
	switch {
	case errors.Is(err, film.ErrDamaged), errors.Is(err, film.ErrShort), errors.Is(err, film.ErrUnsupported):
		return nil // a track that is empty, as recordings of screens have, or that nobody can measure: the film is silent
	case err != nil:
		return err
	}
	from, until := f.heard(info)
	if from >= until {
		return nil // the track ends before the part that is looked at
	}
	l, err := e.Sound(until - from)
	if err != nil {
		return err
	}
	f.sound, a.samples, a.layout = &info, until-from, append(a.layout, l...)
	return nil
}

// heard are the samples of a track that belong to the part of the film that is looked at.
func (f *filmPlan) heard(track film.SoundInfo) (from, until int) {
	const rate = 16000
	at := func(d time.Duration) int { return min(int(math.Round(d.Seconds()*rate)), track.Samples()) }
	if f.plan.End >= f.info.Duration {
		return at(f.plan.Start), track.Samples()
	}
	return at(f.plan.Start), at(f.plan.End)
}

// decodes tells whether an engine is there and can decode.
func decodes(engine *film.Engine) bool {
	return engine != nil && engine.Status().State != film.Absent
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// framesOf are the frames of a plan with what stands before each.
func (f *filmPlan) framesOf(style FilmStyle) []FilmFrame {
	frames := make([]FilmFrame, f.plan.Count)
	for n := range frames {
		frames[n] = FilmFrame{W: f.plan.W, H: f.plan.H}
		switch at := f.plan.At(n); style {
		case FilmCaptions:
			frames[n].Before = fmt.Sprintf("\nFrame from %02d:%02d:", int(at.Minutes()), int(at.Seconds())%60)
			if n == 0 {
				d := int(f.info.Duration.Seconds())
				frames[n].Before = fmt.Sprintf("You are provided the following series of %d frames from a %d:%02d:%02d [H:MM:SS] video.\n", len(frames), d/3600, d/60%60, d%60) + frames[n].Before
			}
		case FilmSeconds:
			if n%2 == 0 {
				mean := (at + f.plan.At(min(n+1, len(frames)-1))) / 2
				frames[n].Before = fmt.Sprintf("<%.1f seconds>", mean.Seconds())
			}
		default:
			switch {
			case n == 0:
				frames[n].Before = "Video:"
			case f.marked(n - 1):
				frames[n].Before = timeMark(f.plan.At(n - 1))
			}
		}
	}
	return frames
}

// marked tells whether the plain style writes the time behind a frame.
func (f *filmPlan) marked(n int) bool {
	const every = 5 * time.Second
	return n == 0 || f.plan.At(n)/every > f.plan.At(n-1)/every
}

func timeMark(at time.Duration) string {
	m := math.Floor(at.Minutes())
	return fmt.Sprintf("[%.0fm%.2fs]", m, at.Seconds()-60*m)
}

// behind is what stands behind the last frame.
func (f *filmPlan) behind(style FilmStyle) string {
	switch {
	case style == FilmCaptions:
		return "\n\n"
	case style == FilmPlain && f.marked(len(f.frames)-1):
		return timeMark(f.plan.At(len(f.frames) - 1))
	}
	return ""
}

// decodeFilm decodes the frames of a plan.
func (a *attachment) decodeFilm(ctx context.Context, engine *film.Engine) (pictures []pixel.Image, err error) {
	f := a.film
	frames := film.Native(ctx, a.media.Data, f.info, f.plan)
	if !f.info.Native() {
		frames = engine.Frames(ctx, a.media.Data, f.info, f.plan)
	}
	for frame, err := range frames {
		if err != nil {
			return nil, err
		}
		if frame.Image.W != a.w || frame.Image.H != a.h {
			return nil, fmt.Errorf("%w: a frame has %d×%d pixels and not %d×%d", film.ErrDamaged, frame.Image.W, frame.Image.H, a.w, a.h)
		}
		pictures = append(pictures, frame.Image)
	}
	return pictures, nil
}

// decodeTrack decodes the part of a sound track that was measured.
func (a *attachment) decodeTrack(ctx context.Context, engine *film.Engine) ([]float32, error) {
	samples, err := engine.Sound(ctx, a.media.Data, *a.film.sound)
	if err != nil {
		return nil, err
	}
	from, until := a.film.heard(*a.film.sound)
	return samples[from:until], nil
}
