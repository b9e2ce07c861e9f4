package film

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ganglion/appliance/media/picture"
)

// What can be wrong with a film; errors of this package wrap one of them, those of
// package picture, or are the context's.
var (
	ErrShort       = errors.New("it is cut short")
	ErrDamaged     = errors.New("it is damaged")
	ErrTooLarge    = errors.New("it is too large")
	ErrUnsupported = errors.New("its kind is not read")
	ErrNoDecoder   = errors.New("this program was built without the film decoder")
	ErrTime        = errors.New("decoding took too long")
	ErrEmpty       = errors.New("is empty") // the part of a film that is to be looked at
)

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

// maxTracks bounds the tracks of one file that are listed.
const maxTracks = 64

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Kind is a kind of file.
type Kind string

// The kinds that are read.
const (
	MP4      Kind = "MP4" // and QuickTime, M4A, 3GP: the ISO base media format
	Matroska Kind = "Matroska"
	AVI      Kind = "AVI"
	MJPEG    Kind = "Motion-JPEG" // JPEG files behind one another
	Moving   Kind = "animation"   // GIF, WebP, PNG
	List     Kind = "list"        // pictures that are given one by one
)

// Info is what the headers of a file declare.
type Info struct {
	Kind       Kind
	W, H       int // of a frame as it is shown; 0 without pictures
	Duration   time.Duration
	Frames     int    // 0 where the headers do not tell
	VideoCodec string // "" without pictures
	AudioCodec string // "" without sound

	// starts are the times of the frames where this package decodes them, and bodies
	// the files of their pictures; both in the order of time.
	starts []time.Duration
	bodies [][]byte
	turn   int // quarter turns to the right that show a frame upright
	sound  time.Duration
}

// Native tells whether the pictures are decoded without Engine.
func (i Info) Native() bool { return i.Kind == Moving || i.bodies != nil }

// Limits bound what is decoded. The zero value of a field is the default's.
type Limits struct {
	Side     int           // pixels along one side
	Duration time.Duration // of the source
	Frames   int           // that a plan may have
	Pixels   int64         // that the frames of a plan have together: larger ones are scaled down
}

// DefaultLimits are limits that a small machine bears.
func DefaultLimits() Limits {
	return Limits{Side: 4096, Duration: 600 * time.Second, Frames: 64, Pixels: 120_000_000}
}

func (l Limits) or(d Limits) Limits {
	if l.Side > 0 {
		d.Side = l.Side
	}
	if l.Duration > 0 {
		d.Duration = l.Duration
	}
	if l.Frames > 0 {
		d.Frames = l.Frames
	}
	if l.Pixels > 0 {
		d.Pixels = l.Pixels
	}
	return d
}

// Describe reads the headers of a film, or of a sound in a film's container, and holds
// them against limits.
func Describe(data []byte, l Limits) (Info, error) {
	info, err := describe(data)
	if err == nil {
		err = l.or(DefaultLimits()).check(info)
	}
	if err != nil {
		return Info{}, fmt.Errorf("film: %w", err)
	}
	return info, nil
}

func (l Limits) check(i Info) error {
	switch {
	case i.VideoCodec == "" && i.AudioCodec == "":
		return damaged("it has neither pictures nor sound")
	case i.VideoCodec != "" && (i.W < 1 || i.H < 1):
		return damaged("its pictures have %d×%d pixels", i.W, i.H)
	case i.W > l.Side || i.H > l.Side:
		return fmt.Errorf("%w: its pictures have %d×%d pixels, the limit is %d a side", ErrTooLarge, i.W, i.H, l.Side)
	case i.Duration > l.Duration:
		return fmt.Errorf("%w: it lasts %.0f s, the limit is %.0f s", ErrTooLarge, i.Duration.Seconds(), l.Duration.Seconds())
	}
	return nil
}

func describe(data []byte) (Info, error) {
	switch {
	case picture.Detect(data) == picture.JPEG:
		return describeMJPEG(data)
	case picture.Detect(data) != "":
		return describeMoving(data)
	case bytes.HasPrefix(data, []byte("\x1a\x45\xdf\xa3")):
		return describeMatroska(data)
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "AVI ":
		return describeAVI(data)
	case len(data) >= 12 && isBox(string(data[4:8])):
		return describeMP4(data)
	}
	return Info{}, fmt.Errorf("%w: it begins like none of the containers", ErrUnsupported)
}

// describeMoving reads an animated picture, or one that does not move.
func describeMoving(data []byte) (Info, error) {
	head, err := picture.Describe(data)
	if err != nil {
		return Info{}, err
	}
	waits, err := picture.Timeline(data, picture.Limits{})
	if err != nil {
		return Info{}, err
	}
	info := Info{Kind: Moving, Frames: max(len(waits), 1), VideoCodec: string(head.Format), W: head.W, H: head.H}
	info.starts = make([]time.Duration, info.Frames)
	for i, w := range waits {
		info.starts[i] = info.Duration
		info.Duration += w
	}
	if info.Duration == 0 {
		info.Duration = 100 * time.Millisecond
		info.W, info.H = picture.Oriented(head, data)
	}
	return info, nil
}

// setBodies keeps frames that are JPEG files, shown evenly over the duration or at the
// starts that are given.
func (i *Info) setBodies(bodies [][]byte, starts []time.Duration) error {
	if len(bodies) == 0 {
		return damaged("it has no frame")
	}
	head, err := picture.Describe(bodies[0])
	if err != nil {
		return err
	}
	i.bodies, i.starts, i.Frames = bodies, starts, len(bodies)
	i.W, i.H = head.W, head.H
	if starts == nil {
		i.starts = make([]time.Duration, len(bodies))
		for n := range i.starts {
			i.starts[n] = i.Duration * time.Duration(n) / time.Duration(len(bodies))
		}
	}
	return nil
}

// DescribeList is a film of pictures that are given one by one, rate of them a second. All
// have the size of the first.
func DescribeList(frames [][]byte, rate float64, l Limits) (Info, error) {
	info := Info{Kind: List, VideoCodec: "pictures"}
	if !(rate > 0 && rate <= 1000) {
		return Info{}, fmt.Errorf("film: %w: a list of %g frames a second", ErrUnsupported, rate)
	}
	info.Duration = duration(float64(len(frames)) / rate)
	err := info.setBodies(frames, nil)
	for n, f := range frames {
		if err != nil {
			break
		}
		var head picture.Info
		if head, err = picture.Describe(f); err != nil {
			break
		}
		w, h := picture.Oriented(head, f)
		if n == 0 {
			info.W, info.H = w, h
		}
		if w != info.W || h != info.H {
			err = damaged("frame %d has %d×%d pixels, the first %d×%d", n, w, h, info.W, info.H)
		}
	}
	if err == nil {
		err = l.or(DefaultLimits()).check(info)
	}
	if err != nil {
		return Info{}, fmt.Errorf("film: %w", err)
	}
	return info, nil
}
