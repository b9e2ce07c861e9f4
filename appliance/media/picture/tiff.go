package picture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"

	"golang.org/x/image/tiff"

	"ganglion/gpu/pixel"
)

func decodeTIFF(ctx context.Context, b []byte, o Options) (pixel.Image, error) {
	var none pixel.Image
	w, h, err := tiffSize(b)
	if err != nil {
		return none, err
	}
	in := &tiffReader{Reader: bytes.NewReader(b), ctx: ctx, left: 2*int64(len(b)) + 8*int64(w)*int64(h) + 1<<16}
	// The reader's own opinion of the size is what it will allocate.
	config, err := tiff.DecodeConfig(in)
	if err != nil {
		return none, in.fail(err)
	}
	if config.Width != w || config.Height != h {
		return none, damaged("it declares two sizes")
	}
	m, err := tiff.Decode(in)
	if err != nil {
		return none, in.fail(err)
	}
	if r := m.Bounds(); r.Dx() != w || r.Dy() != h {
		return none, damaged("it has other pixels than it declares")
	}
	c := newCanvas(w, h, 3, o.OpaqueOnly)
	rgba := make([]uint8, 4*w)
	for y := range h {
		imageRow(rgba, m, y)
		c.put(y, 0, 1, rgba)
	}
	return c.image(), nil
}

// tiffReader bounds the work that a file asks for: blocks may lie in one another, and each
// may be as long as the file.
type tiffReader struct {
	*bytes.Reader
	ctx  context.Context
	left int64 // bytes that may be read yet: the file's twice, and as many as its pixels have
}

var errTIFFBlocks = errors.New("its blocks hold more than its pixels need")

// ReadAt is how every byte is read.
func (r *tiffReader) ReadAt(b []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.ReadAt(b, at)
	if r.left -= int64(n); r.left < 0 {
		return 0, errTIFFBlocks
	}
	return n, err
}

// fail names what is wrong when reading ended with an error.
func (r *tiffReader) fail(err error) error {
	if end := r.ctx.Err(); end != nil {
		return end
	}
	if errors.As(err, new(tiff.UnsupportedError)) {
		return unsupported("of TIFF bilevel, gray, palette, RGB and RGBA pictures are, plain or compressed with LZW, Deflate, PackBits or CCITT; not CMYK, YCbCr or JPEG")
	}
	return damaged("%v", err)
}

// imageRow makes straight RGBA of row y.
func imageRow(rgba []uint8, in image.Image, y int) {
	y += in.Bounds().Min.Y
	switch m := in.(type) {
	case *image.Gray:
		widen(rgba, m.Pix[m.PixOffset(m.Rect.Min.X, y):][:m.Rect.Dx()], 1)
	case *image.NRGBA:
		widen(rgba, m.Pix[m.PixOffset(m.Rect.Min.X, y):][:len(rgba)], 4)
	case *image.Gray16:
		for i := range len(rgba) / 4 {
			v := m.Pix[m.PixOffset(m.Rect.Min.X+i, y)]
			copy(rgba[4*i:], []uint8{v, v, v, 255})
		}
	case *image.NRGBA64:
		for i := range len(rgba) / 4 {
			s := m.Pix[m.PixOffset(m.Rect.Min.X+i, y):][:8]
			copy(rgba[4*i:], []uint8{s[0], s[2], s[4], s[6]})
		}
	default:
		x := in.Bounds().Min.X
		for i := range len(rgba) / 4 {
			p := color.NRGBA64Model.Convert(in.At(x+i, y)).(color.NRGBA64)
			copy(rgba[4*i:], []uint8{uint8(p.R >> 8), uint8(p.G >> 8), uint8(p.B >> 8), uint8(p.A >> 8)})
		}
	}
}
