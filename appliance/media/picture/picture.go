package picture

import (
	"context"
	"errors"
	"fmt"

	"ganglion/gpu/pixel"
)

// What can be wrong with a picture; errors of this package wrap one of them, or are
// the context's.
var (
	ErrShort       = errors.New("it is cut short")
	ErrDamaged     = errors.New("it is damaged")
	ErrTooLarge    = errors.New("it is too large")
	ErrUnsupported = errors.New("its kind is not read")
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// Limits bound what is decoded. The zero value of a field is the default's. Most kinds take
// up to eight bytes of memory for each pixel while they are decoded, of which three are the
// result: a lossless WebP 14, a progressive JPEG of full chroma 15, a frame of an animation
// up to 22, a TIFF of 16 bits in one strip 30.
type Limits struct {
	Side   int   // pixels along one side
	Pixels int64 // pixels of one picture
	Bytes  int64 // of memory while one picture is decoded
	Frames int   // frames of one animation that are walked through
}

// DefaultLimits are limits that a small machine bears.
func DefaultLimits() Limits {
	return Limits{Side: 16384, Pixels: 40_000_000, Bytes: 768 << 20, Frames: 10_000}
}

func (l Limits) or(d Limits) Limits {
	if l.Side > 0 {
		d.Side = l.Side
	}
	if l.Pixels > 0 {
		d.Pixels = l.Pixels
	}
	if l.Bytes > 0 {
		d.Bytes = l.Bytes
	}
	if l.Frames > 0 {
		d.Frames = l.Frames
	}
	return d
}

func (l Limits) check(i Info) error {
	w, h := i.W, i.H
	if w < 1 || h < 1 {
		return damaged("it declares %d×%d pixels", w, h)
	}
	if w > l.Side || h > l.Side || int64(w)*int64(h) > l.Pixels {
		return fmt.Errorf("%w: it declares %d×%d pixels, the limit is %d a side and %d in all", ErrTooLarge, w, h, l.Side, l.Pixels)
	}
	if i.Bytes > l.Bytes {
		return fmt.Errorf("%w: %d×%d pixels of its kind take %d MiB to decode, the limit is %d", ErrTooLarge, w, h, i.Bytes>>20, l.Bytes>>20)
	}
	return nil
}

// Options say how pictures are decoded. The zero value applies the orientation, lays
// transparent pixels on white, and has the default limits.
type Options struct {
	Limits     Limits
	AsStored   bool // rows and columns as stored, whatever EXIF says
	OpaqueOnly bool // transparency is dropped: the colours below it show
}

// Decode decodes a picture: of an animation its first frame. The image is the
// caller's.
func Decode(ctx context.Context, data []byte, o Options) (pixel.Image, error) {
	m, err := decode(ctx, data, o)
	if err != nil {
		return pixel.Image{}, fmt.Errorf("picture: %w", err)
	}
	return m, nil
}

func decode(ctx context.Context, data []byte, o Options) (pixel.Image, error) {
	var none pixel.Image
	o.Limits = o.Limits.or(DefaultLimits())
	info, err := describe(data)
	if err != nil {
		return none, err
	}
	if err := o.Limits.check(info); err != nil {
		return none, err
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	var m pixel.Image
	switch info.Format {
	case PNG:
		m, err = decodePNG(ctx, data, o)
	case JPEG:
		m, err = decodeJPEG(ctx, data)
	case GIF:
		m, err = firstFrame(ctx, info, data, o)
	case BMP:
		m, err = decodeBMP(ctx, data, o)
	case TIFF:
		m, err = decodeTIFF(ctx, data, o)
	case WebP:
		m, err = decodeWebP(ctx, data, o)
	default:
		m, err = decodePAM(data, o)
	}
	if err != nil {
		return none, err
	}
	if !o.AsStored {
		m = orient(m, orientation(info.Format, data))
	}
	return m, nil
}

// canvas collects the pixels of a picture, three bytes each where transparency is
// laid on white or dropped, or four where frames are laid on one another.
type canvas struct {
	w, h, depth int
	opaque      bool // drop transparency
	pix         []uint8
}

func newCanvas(w, h, depth int, opaque bool) *canvas {
	return &canvas{w: w, h: h, depth: depth, opaque: opaque, pix: make([]uint8, w*h*depth)}
}

// put writes RGBA pixels into row y: the first to column x, the others step columns
// apart.
func (c *canvas) put(y, x, step int, rgba []uint8) {
	at, by := (y*c.w+x)*c.depth, step*c.depth
	if c.depth == 4 {
		for ; len(rgba) >= 4; rgba = rgba[4:] {
			copy(c.pix[at:at+4], rgba)
			at += by
		}
		return
	}
	for ; len(rgba) >= 4; rgba = rgba[4:] {
		d := c.pix[at:][:3]
		d[0], d[1], d[2] = rgba[0], rgba[1], rgba[2]
		if a := rgba[3]; a != 255 && !c.opaque {
			d[0], d[1], d[2] = onWhite(d[0], a), onWhite(d[1], a), onWhite(d[2], a)
		}
		at += by
	}
}

// image is the canvas of depth 3 as a picture, sharing memory.
func (c *canvas) image() pixel.Image { return pixel.Image{W: c.w, H: c.h, Pix: c.pix} }

// onWhite lays a sample of opacity a on white.
func onWhite(v, a uint8) uint8 {
	n := uint32(v)*uint32(a) + 255*uint32(255-a) + 127
	return uint8(n / 255)
}
