package appliancetest

import (
	"context"
	"hash/fnv"
	"math"
	"sync/atomic"

	"ganglion/appliance"
	"ganglion/gpu/pixel"
)

// EncoderOptions describe a double of an encoder. It makes a token of every 8×8 pixels and
// of every 1600 samples.
type EncoderOptions struct {
	Deaf, Blind bool // takes no sounds, no pictures
	Whole       bool // the rows of a picture see each other
	Grid        bool // and have positions of their own

	// Gate, when not nil, is received from before each item is encoded.
	Gate <-chan struct{}
	// Err, when not nil, is what encoding fails with.
	Err error
}

// Encoder is a double of an encoder whose rows depend on every pixel and sample.
type Encoder struct {
	o               EncoderOptions
	encoded, closed atomic.Int64
}

var _ appliance.Encoder = (*Encoder)(nil)

// EncoderWidth is the width of the double's rows.
const EncoderWidth = 4

// NewEncoder makes a double.
func NewEncoder(o EncoderOptions) *Encoder { return &Encoder{o: o} }

// Info implements appliance.Encoder.
func (e *Encoder) Info() appliance.EncoderInfo {
	return appliance.EncoderInfo{
		Name: "eyes", Path: "/models/mmproj-eyes.gguf", Hash: "test:eyes", Width: EncoderWidth, Images: !e.o.Blind, Audios: !e.o.Deaf,
		Film:         appliance.FilmPolicy{Rate: 1, Max: 32, Style: appliance.FilmPlain},
		Placeholders: map[appliance.MediaKind][]string{appliance.Image: {"<image>"}, appliance.Audio: {"<|AUDIO|>"}},
	}
}

// Picture implements appliance.Encoder: "<img>", a row of every 8×8 pixels, "</img>".
func (e *Encoder) Picture(w, h int, o appliance.PictureOptions) (appliance.Layout, error) {
	nx, ny := (w+7)/8, (h+7)/8
	for o.MaxTokens > 0 && nx*ny > o.MaxTokens && nx*ny > 1 {
		nx, ny = (nx+1)/2, (ny+1)/2
	}
	p := appliance.Piece{Tokens: nx * ny, Whole: e.o.Whole}
	if e.o.Grid {
		p.NX, p.NY = nx, ny
	}
	return appliance.Layout{{Text: "<img>"}, p, {Text: "</img>"}}, nil
}

// Sound implements appliance.Encoder: rows without a frame.
func (e *Encoder) Sound(samples int) (appliance.Layout, error) {
	return appliance.Layout{{Tokens: samples/1600 + 1}}, nil
}

// EncodePicture implements appliance.Encoder.
func (e *Encoder) EncodePicture(ctx context.Context, m pixel.Image, o appliance.PictureOptions) ([][]float32, error) {
	l, _ := e.Picture(m.W, m.H, o)
	h := fnv.New64a()
	h.Write(m.Pix)
	return e.rows(ctx, h.Sum64(), l[1].Tokens)
}

// Film implements appliance.Encoder: every frame is a picture.
func (e *Encoder) Film(frames []appliance.FilmFrame, o appliance.PictureOptions) (all appliance.Layout, err error) {
	for _, f := range frames {
		if f.Before != "" {
			all = append(all, appliance.Piece{Text: f.Before})
		}
		l, _ := e.Picture(f.W, f.H, o)
		all = append(all, l...)
	}
	return all, nil
}

// EncodeFilm implements appliance.Encoder.
func (e *Encoder) EncodeFilm(ctx context.Context, _ []appliance.FilmFrame, pictures []pixel.Image, o appliance.PictureOptions) (all [][]float32, err error) {
	for _, m := range pictures {
		rows, err := e.EncodePicture(ctx, m, o)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// EncodeSound implements appliance.Encoder.
func (e *Encoder) EncodeSound(ctx context.Context, samples []float32) ([][]float32, error) {
	h := uint64(len(samples))
	for _, x := range samples {
		h = mix(h ^ uint64(math.Float32bits(x)))
	}
	return e.rows(ctx, h, len(samples)/1600+1)
}

func (e *Encoder) rows(ctx context.Context, h uint64, n int) ([][]float32, error) {
	if e.o.Gate != nil {
		select {
		case <-e.o.Gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e.encoded.Add(1)
	if e.o.Err != nil {
		return nil, e.o.Err
	}
	rows := make([]float32, n*EncoderWidth)
	for i := range rows {
		rows[i] = float32(mix(h+uint64(i)) >> 40)
	}
	return [][]float32{rows}, nil
}

// Close implements appliance.Encoder.
func (e *Encoder) Close() error {
	e.closed.Add(1)
	return nil
}

// Encoded returns how many items were encoded.
func (e *Encoder) Encoded() int { return int(e.encoded.Load()) }

// Closed tells whether Close was called.
func (e *Encoder) Closed() bool { return e.closed.Load() > 0 }
