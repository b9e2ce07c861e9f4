package appliance

import (
	"context"
	"errors"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// Encoder turns pictures and sounds into rows that stand in the place of a model's token
// embeddings. FromEncoder makes one of an encoder file; appliancetest has a double. Info,
// Picture, Sound and Film may be called from any goroutine; of the others one at a time.
type Encoder interface {
	Info() EncoderInfo
	// Picture, Sound and Film tell from sizes alone how a picture of so many pixels, a sound
	// of so many samples (at 16 kHz) or frames stand in a prompt.
	Picture(w, h int, o PictureOptions) (Layout, error)
	Sound(samples int) (Layout, error)
	Film(frames []FilmFrame, o PictureOptions) (Layout, error)
	// The others give the rows of each encoded piece of the layout, in its
	// order: [Piece.Tokens, EncoderInfo.Width], the caller's own.
	EncodePicture(ctx context.Context, m pixel.Image, o PictureOptions) ([][]float32, error)
	EncodeSound(ctx context.Context, samples []float32) ([][]float32, error)
	EncodeFilm(ctx context.Context, frames []FilmFrame, pictures []pixel.Image, o PictureOptions) ([][]float32, error)
	Close() error
}

// EncoderInfo describes an encoder.
type EncoderInfo struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Hash   string `json:"hash"`  // tells files, and ways to compute them, apart; it changes with the device that computes
	Width  int    `json:"width"` // of a row
	Images bool   `json:"images"`
	Audios bool   `json:"audios"`
	// Placeholders are the texts that the model's own templates put in the place of media of
	// a kind.
	Placeholders map[MediaKind][]string `json:"-"`
	Film         FilmPolicy             `json:"-"` // how the model wants to see films
}

// PictureOptions are wishes of a request about one picture.
type PictureOptions struct {
	MaxTokens int  // that its pieces take together; 0: what the model was trained with
	Untiled   bool // it is not cut into tiles, whatever the model does
}

// Layout is how one item stands in a prompt: its pieces in order.
type Layout []Piece

// Piece is a text that frames what was encoded, or rows that were encoded.
type Piece struct {
	Text   string // framing; then the other fields are zero
	Tokens int    // rows
	// NX and NY are the columns and lines of a picture whose rows have positions of their own
	// (M-RoPE); 0: they are positions like those of text.
	NX, NY int
	Whole  bool // each row sees all rows of the piece, not only those before it
}

// steps is by how many positions a piece moves what follows it.
func (p *Piece) steps() int {
	if p.NX > 0 {
		return max(p.NX, p.NY)
	}
	return p.Tokens
}

// Seeing is a Model that comes with an encoder.
type Seeing interface {
	Encoder() Encoder
}

// seeing is a model with its encoder.
type seeing struct {
	Model
	encoder Encoder
}

// seeingDrafted is a seeing model that has a smaller companion too.
type seeingDrafted struct {
	seeing
	Drafted
}

var (
	_ Seeing    = seeing{}
	_ Stoppable = seeing{}
	_ Drafted   = seeingDrafted{}
)

// WithEncoder joins a model with an encoder. Both are closed together.
func WithEncoder(m Model, e Encoder) Model {
	s := seeing{m, e}
	if d, ok := m.(Drafted); ok {
		return seeingDrafted{s, d}
	}
	return s
}

// Rebuilding is a model that can run sequences again after a device has failed, and asks
// for rows that are more than their tokens (engine.Engine.Rebuild).
type Rebuilding interface {
	Rebuild(row func(slot, pos int, token int32) engine.Row)
}

// StopWith implements Stoppable where the model does.
func (s seeing) StopWith(stop *ops.Stop) {
	if m, ok := s.Model.(Stoppable); ok {
		m.StopWith(stop)
	}
}

// Rebuild implements Rebuilding where the model does.
func (s seeing) Rebuild(row func(slot, pos int, token int32) engine.Row) {
	if m, ok := s.Model.(Rebuilding); ok {
		m.Rebuild(row)
	}
}

// Encoder implements Seeing.
func (s seeing) Encoder() Encoder { return s.encoder }

// Close closes both.
func (s seeing) Close() error { return errors.Join(s.encoder.Close(), s.Model.Close()) }
