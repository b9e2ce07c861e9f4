package appliance

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"ganglion/appliance/media/film"
	"ganglion/appliance/media/picture"
	"ganglion/appliance/media/sound"
	"ganglion/gpu/encoder"
	"ganglion/gpu/pixel"
)

// MediaNote is what the log keeps of one item: never its bytes.
type MediaNote struct {
	Param   string  `json:"param"`
	MIME    string  `json:"mime"`
	SHA256  string  `json:"sha256"` // of the file
	Bytes   int     `json:"bytes"`
	Width   int     `json:"width,omitempty"`
	Height  int     `json:"height,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Frames  int     `json:"frames,omitempty"` // of a film that the model sees
	Tokens  int     `json:"tokens"`           // that it takes of the prompt, with what frames it
	Kept    bool    `json:"kept,omitempty"`   // the log has the file

	Hints *HintsNote `json:"hints,omitempty"` // what its descriptor wished
}

// HintsNote are the wishes of a descriptor under the names that they have in one, so that a
// request can be made again with them.
type HintsNote struct {
	MaxTokens   int     `json:"max_tokens,omitempty"`
	FPS         float64 `json:"fps,omitempty"`
	MaxFrames   int     `json:"max_frames,omitempty"`
	Start       float64 `json:"start,omitempty"`
	End         float64 `json:"end,omitempty"`
	VideoCompat string  `json:"video_compat,omitempty"`
}

// note is nil where nothing was wished.
func (h Hints) note() *HintsNote {
	if h == (Hints{}) {
		return nil
	}
	n := &HintsNote{MaxTokens: h.MaxTokens, FPS: h.FPS, MaxFrames: h.MaxFrames, Start: h.Start, End: h.End}
	if h.Reference {
		n.VideoCompat = "llama.cpp"
	}
	return n
}

// attachment is one item of a request on its way into the prompt. What is known of it
// before anything is decoded: its size, and from that its layout.
type attachment struct {
	media   *Media
	options PictureOptions
	w, h    int             // of a picture
	samples int             // of a sound or a film's sound track, at 16 kHz
	seconds float64         // of a sound or film
	foreign *film.SoundInfo // of a sound that the decoder of films decodes
	file    [32]byte
	memory  int64 // that decoding takes at the most
	film    *filmPlan
	layout  Layout
	frames  []frame // with which a prompt may frame the item itself
}

// measuring has a place for each item whose headers are read, of all models: they are read
// before a request has its place in the queue, and a file can be large.
var measuring = make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))

// attach looks at an item's headers.
func attach(ctx context.Context, m *Media, e Encoder, engine *film.Engine) (*attachment, *Error) {
	select {
	case measuring <- struct{}{}:
		defer func() { <-measuring }()
	case <-ctx.Done():
		return nil, errCancelled
	}
	a := &attachment{media: m, file: fileSum(m), options: PictureOptions{MaxTokens: m.Hints.MaxTokens}}
	err := guard("read the headers of media", func() error { return a.measure(e, engine) })
	if err != nil {
		return nil, a.fault(err)
	}
	a.frames = append(a.frames, frameOf(a.layout))
	return a, nil
}

// Headers keeps what was read of the headers of a request's media, for its other choices: a
// film or a sound is walked through once. Its methods are safe for concurrent use; a nil
// *Headers keeps nothing.
type Headers struct {
	mu    sync.Mutex
	known map[headerOf]*attachment // which nobody changes any more
}

// headerOf names an item of a request as an encoder measures it.
type headerOf struct {
	item    int
	encoder string
}

// attach is attach of an item, or what it gave before.
func (h *Headers) attach(ctx context.Context, item int, m *Media, e Encoder, engine *film.Engine) (*attachment, *Error) {
	if h == nil {
		return attach(ctx, m, e, engine)
	}
	of := headerOf{item, e.Info().Hash}
	h.mu.Lock()
	a := h.known[of]
	h.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a, fault := attach(ctx, m, e, engine)
	if fault != nil {
		return nil, fault
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known = make(map[headerOf]*attachment)
	}
	h.known[of] = a
	return a, nil
}

// measure finds an item's size and layout.
func (a *attachment) measure(e Encoder, engine *film.Engine) error {
	info, kind := e.Info(), a.media.Kind
	switch {
	case kind == Image && info.Images:
		return a.measurePicture(e)
	case kind == Audio && info.Audios:
		return a.measureSound(e, engine)
	case kind == Video && info.Images:
		return a.measureFilm(e, engine)
	}
	return Errorf(CodeModality, a.media.Param, "the model cannot use %s", kind)
}

// limits are those of films and of sounds that their decoder decodes.
func (a *attachment) limits() film.Limits {
	return film.Limits{Duration: time.Duration(a.media.Limits.Seconds) * time.Second, Frames: a.media.Limits.Frames}
}

// fileSum names a file, or the files of a list of frames.
func fileSum(m *Media) [32]byte {
	if m.Frames == nil {
		return sha256.Sum256(m.Data)
	}
	h := sha256.New()
	for i := range m.Frames {
		sum := sha256.Sum256(m.Frames[i].Data)
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

func (a *attachment) measurePicture(e Encoder) error {
	info, err := picture.Describe(a.media.Data)
	if err != nil {
		return err
	}
	a.memory = info.Bytes
	a.w, a.h = picture.Oriented(info, a.media.Data)
	a.layout, err = e.Picture(a.w, a.h, a.options)
	return err
}

func (a *attachment) measureSound(e Encoder, engine *film.Engine) error {
	info, err := sound.Inspect(a.media.Data)
	if err == nil {
		a.samples, a.seconds = info.Samples(), info.Seconds()
	} else if err = a.measureForeign(err, engine); err != nil {
		return err
	}
	a.layout, err = e.Sound(a.samples)
	return err
}

// measureForeign measures a sound that the decoder of films knows: AAC, Vorbis, AMR, MP3 at
// low rates, WAV with other encodings.
func (a *attachment) measureForeign(unread error, engine *film.Engine) error {
	if !errors.Is(unread, sound.ErrUnsupported) || !decodes(engine) {
		return unread
	}
	info, err := film.DescribeSound(a.media.Data, a.limits())
	if errors.Is(err, film.ErrUnsupported) {
		codec, seconds, ok := sound.Length(a.media.Data)
		if !ok {
			return unread
		}
		info, err = film.SoundOf(codec, time.Duration(seconds*float64(time.Second)), a.limits())
	}
	a.foreign, a.samples, a.seconds = &info, info.Samples(), info.Duration.Seconds()
	return err
}

// foreignDecoder tells whether the decoder of films has work with an item.
func (a *attachment) foreignDecoder() bool {
	return a.foreign != nil || a.film != nil && (a.film.sound != nil || !a.film.info.Native())
}

// decodeSound decodes a sound to as many samples as were measured.
func (a *attachment) decodeSound(ctx context.Context, engine *film.Engine) ([]float32, error) {
	if a.foreign != nil {
		return engine.Sound(ctx, a.media.Data, *a.foreign)
	}
	return sound.Decode(ctx, a.media.Data, a.seconds)
}

// fault is an error about an item as the user sees it.
func (a *attachment) fault(failure error) *Error {
	param, err := a.media.Param, error(plainly{failure})
	var own *Error
	var heard *sound.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, errPanic): // what went wrong is nobody's business but the log's
		return Errorf(CodeMediaDecode, param, "%s: the file cannot be read", param)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, film.ErrTime):
		return Errorf(CodeMediaTimeout, param, "%s: it takes too long to decode", param)
	case errors.Is(err, sound.ErrUnsupported), errors.Is(err, picture.ErrUnsupported), errors.Is(err, film.ErrUnsupported), errors.Is(err, film.ErrNoDecoder):
		return Errorf(CodeMediaType, param, "%s: a file that is not read: %s", param, strings.TrimPrefix(err.Error(), picture.ErrUnsupported.Error()+": "))
	case errors.Is(err, sound.ErrTooLong), errors.Is(err, picture.ErrTooLarge), errors.Is(err, film.ErrTooLarge), errors.Is(err, encoder.ErrTooLong):
		return Errorf(CodeMediaTooLarge, param, "%s: %v", param, err)
	case errors.As(err, &heard), errors.Is(err, picture.ErrDamaged), errors.Is(err, picture.ErrShort),
		errors.Is(err, film.ErrDamaged), errors.Is(err, film.ErrShort):
		return Errorf(CodeMediaDecode, param, "%s: %v", param, err)
	}
	return Errorf(CodeInvalid, param, "%s: %v", param, err)
}

// plainly is an error about a file without the name of the package that read it.
type plainly struct{ error }

func (p plainly) Error() string {
	said := p.error.Error()
	for _, name := range []string{"picture: ", "sound: ", "film: ", "encoder: "} {
		said = strings.TrimPrefix(said, name)
	}
	return said
}

func (p plainly) Unwrap() error { return p.error }

// content is a decoded item.
type content struct {
	sum     [32]byte
	image   pixel.Image
	frames  []pixel.Image
	samples []float32
}

// name names a content as an encoder sees it: what is the same to the encoder has the same
// name, whatever the file.
func (c *content) name(encoder string) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%x", encoder, c.sum))
}

// fileName names a file as the encoder would see it.
func (a *attachment) fileName(encoder string) [32]byte {
	var plan film.Plan // two plans with the same times can pick other frames
	if a.film != nil {
		plan = a.film.plan
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%v\n%x\n%+v\n%q\n%d", encoder, a.media.Kind, a.options, a.file, plan, a.frameTexts(), a.samples))
}

// decode decodes an item.
func (a *attachment) decode(ctx context.Context, engine *film.Engine) (c content, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%v\n", a.media.Kind, a.options)
	switch a.media.Kind {
	case Image:
		if c.image, err = picture.Decode(ctx, a.media.Data, picture.Options{}); err != nil {
			return c, err
		}
		if c.image.W != a.w || c.image.H != a.h {
			return c, fmt.Errorf("%w: it has %d×%d pixels and declares %d×%d", picture.ErrDamaged, c.image.W, c.image.H, a.w, a.h)
		}
		fmt.Fprintf(h, "%d×%d\n", a.w, a.h)
		h.Write(c.image.Pix)
	case Video:
		if c.frames, err = a.decodeFilm(ctx, engine); err != nil {
			return c, err
		}
		fmt.Fprintf(h, "%d frames of %d×%d\n%q\n", len(c.frames), a.w, a.h, a.frameTexts())
		for _, m := range c.frames {
			h.Write(m.Pix)
		}
		if a.film.sound == nil {
			break
		}
		if c.samples, err = a.decodeTrack(ctx, engine); err != nil {
			return c, err
		}
		hashSamples(h, c.samples)
	case Audio:
		if c.samples, err = a.decodeSound(ctx, engine); err != nil {
			return c, err
		}
		hashSamples(h, c.samples)
	}
	c.sum = [32]byte(h.Sum(nil))
	return c, nil
}

func hashSamples(h hash.Hash, samples []float32) {
	fmt.Fprintf(h, "%d\n", len(samples))
	block := make([]byte, 0, 4096)
	for i, x := range samples {
		block = binary.LittleEndian.AppendUint32(block, math.Float32bits(x))
		if len(block) == cap(block) || i == len(samples)-1 {
			h.Write(block)
			block = block[:0]
		}
	}
}

// frameTexts are the frames of a film and what stands between them, which decides on
// frames that are encoded together.
func (a *attachment) frameTexts() []string {
	if a.film == nil {
		return nil
	}
	texts := make([]string, len(a.film.frames))
	for i, f := range a.film.frames {
		texts[i] = fmt.Sprintf("%v %s", a.film.plan.At(i), f.Before)
	}
	return texts
}

// note is what the log keeps.
func (a *attachment) note(tokens int) MediaNote {
	w, h, frames := a.w, a.h, 0
	if a.film != nil {
		w, h, frames = a.film.info.W, a.film.info.H, a.film.plan.Count
	}
	return MediaNote{
		Param: a.media.Param, MIME: a.media.MIME, SHA256: fmt.Sprintf("%x", a.file), Bytes: size(a.media),
		Width: w, Height: h, Seconds: a.seconds, Frames: frames, Tokens: tokens, Hints: a.media.Hints.note(),
	}
}

// size is the number of bytes of an item, all frames of a list together.
func size(m *Media) int {
	n := len(m.Data)
	for i := range m.Frames {
		n += len(m.Frames[i].Data)
	}
	return n
}
