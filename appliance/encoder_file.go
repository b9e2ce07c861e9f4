package appliance

import (
	"context"
	"fmt"

	"ganglion/gpu/encoder"
	"ganglion/gpu/pixel"
)

// encoderFile makes an encoder file an Encoder.
type encoderFile struct {
	e    *encoder.Encoder
	info EncoderInfo // but for the hash
	mode string
}

var _ Encoder = (*encoderFile)(nil)

// placeholders are what the templates of models with an encoder of a family put in the
// place of media.
var placeholders = map[string][]string{
	"gemma3": {"<start_of_image>"}, "gemma3nv": {"<start_of_image>"},
	"gemma4v": {"<|image|>"}, "gemma4a": {"<|audio|>"},
	"idefics3": {"<image>"}, "lfm2": {"<image>"}, "mlp": {"<image>"}, "ldp": {"<image>"}, "internvl": {"<IMG_CONTEXT>", "<image>"},
	"qwen2vl_merger": {"<|image_pad|>"}, "qwen2.5vl_merger": {"<|image_pad|>"}, "qwen3vl_merger": {"<|image_pad|>"},
	"qwen2a": {"<|AUDIO|>"}, "ultravox": {"<|audio|>"}, "voxtral": {"[AUDIO]"},
}

// filmPlaceholders are those of films.
var filmPlaceholders = map[string][]string{
	"qwen2vl_merger": {"<|video_pad|>"}, "qwen2.5vl_merger": {"<|video_pad|>"}, "qwen3vl_merger": {"<|video_pad|>"}, "idefics3": {"<video>"},
}

// filmPolicy is how a family was trained to see films, with at most 32 frames.
func filmPolicy(family string) FilmPolicy {
	switch family {
	case "idefics3":
		return FilmPolicy{Rate: 1, Max: 32, Untiled: true, Style: FilmCaptions}
	case "qwen3vl_merger":
		return FilmPolicy{Rate: 2, Max: 32, MaxTokens: 128, Style: FilmSeconds}
	case "qwen2vl_merger", "qwen2.5vl_merger":
		return FilmPolicy{Rate: 2, Max: 32, MaxTokens: 128, Style: FilmPlain}
	case "gemma4v":
		return FilmPolicy{Count: 32, Max: 32, MaxTokens: 70, Style: FilmPlain}
	}
	return FilmPolicy{Rate: 1, Max: 32, Style: FilmPlain}
}

// FromEncoder makes a loaded encoder one of the service. mode says how it computes, where
// that changes its rows (numerics, bounds of its own).
func FromEncoder(e *encoder.Encoder, mode string) Encoder {
	i := e.Info()
	return &encoderFile{e: e, mode: mode, info: EncoderInfo{
		Name: i.Name, Path: i.Path, Width: i.Width,
		Images: i.Picture != "", Audios: i.Sound != "",
		Placeholders: map[MediaKind][]string{Image: placeholders[i.Picture], Audio: placeholders[i.Sound], Video: filmPlaceholders[i.Picture]},
		Film:         filmPolicy(i.Picture),
	}}
}

// Info implements Encoder.
func (f *encoderFile) Info() EncoderInfo {
	info, now := f.info, f.e.Info()
	info.Hash = fmt.Sprintf("%s on %s, %s", now.Hash, now.Backend, f.mode)
	return info
}

// Picture implements Encoder.
func (f *encoderFile) Picture(w, h int, o PictureOptions) (Layout, error) {
	return layoutOf(f.e.Picture(encoder.Size{W: w, H: h}, optionsOf(o)))
}

// Film implements Encoder.
func (f *encoderFile) Film(frames []FilmFrame, o PictureOptions) (Layout, error) {
	return layoutOf(f.e.Film(framesOf(frames), optionsOf(o)))
}

func framesOf(frames []FilmFrame) []encoder.Frame {
	out := make([]encoder.Frame, len(frames))
	for i, f := range frames {
		out[i] = encoder.Frame{Size: encoder.Size{W: f.W, H: f.H}, Before: f.Before}
	}
	return out
}

func optionsOf(o PictureOptions) encoder.PictureOptions {
	return encoder.PictureOptions{MaxTokens: o.MaxTokens, Untiled: o.Untiled}
}

// Sound implements Encoder.
func (f *encoderFile) Sound(samples int) (Layout, error) { return layoutOf(f.e.Sound(samples)) }

func layoutOf(l encoder.Layout, err error) (Layout, error) {
	if err != nil {
		return nil, err
	}
	out := make(Layout, len(l.Parts))
	for i, p := range l.Parts {
		out[i] = Piece{Text: p.Text, Tokens: p.N, NX: p.NX, NY: p.NY, Whole: p.Whole}
	}
	return out, nil
}

// EncodePicture implements Encoder.
func (f *encoderFile) EncodePicture(ctx context.Context, m pixel.Image, o PictureOptions) ([][]float32, error) {
	return rowsOf(f.e.EncodePicture(ctx, m, optionsOf(o)))
}

// EncodeFilm implements Encoder.
func (f *encoderFile) EncodeFilm(ctx context.Context, frames []FilmFrame, pictures []pixel.Image, o PictureOptions) ([][]float32, error) {
	return rowsOf(f.e.EncodeFilm(ctx, framesOf(frames), pictures, optionsOf(o)))
}

// EncodeSound implements Encoder.
func (f *encoderFile) EncodeSound(ctx context.Context, samples []float32) ([][]float32, error) {
	return rowsOf(f.e.EncodeSound(ctx, samples))
}

func rowsOf(pieces []encoder.Piece, err error) ([][]float32, error) {
	out := make([][]float32, len(pieces))
	for i, p := range pieces {
		out[i] = p.Rows
	}
	return out, err
}

// Close implements Encoder.
func (f *encoderFile) Close() error { return f.e.Close() }
