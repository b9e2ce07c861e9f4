package encoder

import (
	"errors"
	"fmt"
	"math"

	"ganglion/gpu/pixel"
)

// Part is one part of what stands for a picture or a sound in a prompt: a framing text, to
// be tokenised by itself with special tokens, or an encoded piece of N rows.
type Part struct {
	Text   string
	N      int
	NX, NY int  // columns and lines of rows that have positions of their own (M-RoPE); 0: positions as those of text
	Whole  bool // rows see all rows of the piece, not only those before (bidirectional)
}

// Layout is what stands for a picture, a sound or a film, in order. Its pieces come from
// Encode* in the same order.
type Layout struct{ Parts []Part }

// Tokens counts the positions of a prompt that the layout takes; count counts the tokens
// of a framing text.
func (l Layout) Tokens(count func(text string) int) int {
	n := 0
	for _, p := range l.Parts {
		if p.N > 0 {
			n += p.N
		} else {
			n += count(p.Text)
		}
	}
	return n
}

func (l *Layout) text(s string) {
	if s != "" {
		l.Parts = append(l.Parts, Part{Text: s})
	}
}

// framed adds a piece between two texts.
func (l *Layout) framed(begin string, p Part, end string) {
	l.text(begin)
	l.Parts = append(l.Parts, p)
	l.text(end)
}

// Piece is an encoded part.
type Piece struct {
	Rows   []float32 // [N, width]
	N      int
	NX, NY int // as in Part
}

// PictureOptions change how a picture is seen.
type PictureOptions struct {
	MaxTokens int  // of one picture, as far as the family can choose; 0 = the family's own
	Untiled   bool // the whole picture alone, where the family would cut it into tiles
}

// ErrTooLong is wrapped where a picture takes more tokens than its area should.
var ErrTooLong = errors.New("it is too long and narrow")

// tooLong refuses a picture whose shape takes more tokens than its area should.
func tooLong(s Size, nx, ny int) error {
	return fmt.Errorf("encoder: a picture of %d×%d takes %d×%d tokens: %w", s.W, s.H, nx, ny, ErrTooLong)
}

// Size is that of a picture in pixels.
type Size struct{ W, H int }

// smartSize is the size of a picture of low to high tokens, of cell × cell pixels each, or
// fewer where the options say so.
func smartSize(s Size, o PictureOptions, cell, low, high int) (w, h int) {
	if o.MaxTokens > 0 {
		high = max(low, min(high, o.MaxTokens))
	}
	return pixel.SmartSize(s.W, s.H, cell, low*cell*cell, high*cell*cell)
}

// Frame is one picture of a film and the text that stands before it ("" for none).
type Frame struct {
	Size
	Before string
}

// nearestTiles is the grid of least to most tiles whose shape is nearest to a picture's; of
// equals the larger one where the picture has more than half the pixels of its tiles of side
// pixels.
func nearestTiles(s Size, least, most, side int) (cols, rows int) {
	cols, rows = 1, 1
	best, shape := math.Inf(1), float64(s.W)/float64(s.H)
	for n := least; n <= most; n++ { // by number of tiles, then by columns
		for c := 1; c <= n; c++ {
			if n%c != 0 {
				continue
			}
			d := math.Abs(shape - float64(c)/float64(n/c))
			if d < best || (d == best && 2*s.W*s.H > side*side*n) {
				best, cols, rows = d, c, n/c
			}
		}
	}
	return cols, rows
}
