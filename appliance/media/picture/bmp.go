package picture

import (
	"context"
	"math/bits"

	"ganglion/gpu/pixel"
)

// How the pixels of a BMP are coded (BITMAPINFOHEADER.biCompression).
const (
	bmpPlain     = 0
	bmpRLE8      = 1
	bmpRLE4      = 2
	bmpFields    = 3
	bmpAlphaMask = 6
)

type bmpFile struct {
	w, h    int
	topDown bool
	bits    int
	coding  uint32
	palette []uint8   // [n, 4] RGBA
	mask    [4]uint32 // of red, green, blue, alpha; 0 for no alpha
	pixels  []byte
}

func bmpHead(b []byte) (f bmpFile, err error) {
	size := int(le.Uint32(b[14:]))
	at := int64(le.Uint32(b[10:]))
	if 14+size > len(b) || at > int64(len(b)) {
		return f, ErrShort
	}
	f.w, f.h, err = bmpSize(b)
	if err != nil {
		return f, err
	}
	colours, wide := 0, 4
	if size == 12 {
		f.bits, wide = int(le.Uint16(b[24:])), 3
	} else {
		f.topDown = int32(le.Uint32(b[22:])) < 0
		f.bits = int(le.Uint16(b[28:]))
		if size >= 40 {
			f.coding = le.Uint32(b[30:])
			colours = int(min(le.Uint32(b[46:]), 257))
		}
	}
	masks := b[14+min(size, 40) : 14+size]
	table := 14 + size
	if size == 40 && (f.coding == bmpFields || f.coding == bmpAlphaMask) {
		n := 12
		if f.coding == bmpAlphaMask {
			n = 16
		}
		if table+n > len(b) {
			return f, ErrShort
		}
		masks, table = b[table:table+n], table+n
	}
	if err := f.setMasks(masks, size); err != nil {
		return f, err
	}
	if f.bits <= 8 {
		if colours == 0 {
			colours = 1 << f.bits
		}
		end := table + wide*colours
		if colours > 256 || end > len(b) {
			return f, damaged("its palette has %d colours", colours)
		}
		for e := b[table:end]; len(e) > 0; e = e[wide:] {
			f.palette = append(f.palette, e[2], e[1], e[0], 255)
		}
	}
	f.pixels = b[at:]
	return f, nil
}

func (f *bmpFile) setMasks(b []byte, size int) error {
	switch legal := f.bits == 1 || f.bits == 2 || f.bits == 4 || f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32; {
	case f.coding == bmpPlain && legal:
		switch f.bits {
		case 16:
			f.mask = [4]uint32{0x7c00, 0x03e0, 0x001f, 0}
		case 24, 32:
			f.mask = [4]uint32{0xff0000, 0xff00, 0xff, 0}
		}
	case (f.coding == bmpFields || f.coding == bmpAlphaMask) && (f.bits == 16 || f.bits == 32):
		for i := range f.mask {
			if 4*i+4 <= len(b) && (i < 3 || size > 40 || f.coding == bmpAlphaMask) {
				f.mask[i] = le.Uint32(b[4*i:])
			}
		}
	case f.coding == bmpRLE8 && f.bits == 8, f.coding == bmpRLE4 && f.bits == 4:
	default:
		return unsupported("a BMP of %d bits in coding %d", f.bits, f.coding)
	}
	return nil
}

func decodeBMP(ctx context.Context, b []byte, o Options) (pixel.Image, error) {
	var none pixel.Image
	f, err := bmpHead(b)
	if err != nil {
		return none, err
	}
	if f.coding == bmpRLE4 || f.coding == bmpRLE8 {
		return f.runs(ctx)
	}
	stride := (f.w*f.bits + 31) / 32 * 4
	if len(f.pixels) < stride*(f.h-1)+(f.w*f.bits+7)/8 {
		return none, ErrShort
	}
	c := newCanvas(f.w, f.h, 3, o.OpaqueOnly)
	return f.draw(c, func(rgba []uint8, i int) error { return f.row(rgba, f.pixels[stride*i:]) })
}

// draw fills a canvas with the rows as they are stored, each made RGBA by row.
func (f *bmpFile) draw(c *canvas, row func(rgba []uint8, i int) error) (pixel.Image, error) {
	rgba := make([]uint8, 4*f.w)
	for i := range f.h {
		if err := row(rgba, i); err != nil {
			return pixel.Image{}, err
		}
		y := f.h - 1 - i
		if f.topDown {
			y = i
		}
		c.put(y, 0, 1, rgba)
	}
	return c.image(), nil
}

// row makes RGBA of one row.
func (f *bmpFile) row(rgba, row []uint8) error {
	if f.bits <= 8 {
		for i := range f.w {
			at := 4 * int(bitsAt(row, i, uint8(f.bits)))
			if at >= len(f.palette) {
				return damaged("colour %d of %d is used", at/4, len(f.palette)/4)
			}
			copy(rgba[4*i:4*i+4], f.palette[at:at+4])
		}
		return nil
	}
	if f.bits == 24 {
		for i := range f.w {
			d, s := rgba[4*i:][:4], row[3*i:][:3]
			d[0], d[1], d[2], d[3] = s[2], s[1], s[0], 255
		}
		return nil
	}
	for i := range f.w {
		var v uint32
		if f.bits == 16 {
			v = uint32(le.Uint16(row[2*i:]))
		} else {
			v = le.Uint32(row[4*i:])
		}
		for c, mask := range f.mask {
			rgba[4*i+c] = masked(v, mask)
		}
		if f.mask[3] == 0 {
			rgba[4*i+3] = 255
		}
	}
	return nil
}

// masked is the field of v under a mask, stretched to 8 bits.
func masked(v, mask uint32) uint8 {
	if mask == 0 {
		return 0
	}
	shift := bits.TrailingZeros32(mask)
	full := uint64(mask >> shift)
	return uint8(uint64(v&mask>>shift) * 255 / full)
}

// runs unpacks run lengths. Pixels that are jumped over have colour 0.
func (f *bmpFile) runs(ctx context.Context) (pixel.Image, error) {
	var none pixel.Image
	c := newCanvas(f.w, f.h, 3, true)
	index := make([]uint8, f.w*f.h)
	b, x, y := f.pixels, 0, 0
	set := func(v uint8) {
		if x < f.w && y < f.h {
			index[y*f.w+x] = v
		}
		x++
	}
	for {
		if len(b) < 2 {
			return none, ErrShort
		}
		n, v := int(b[0]), b[1]
		b = b[2:]
		switch {
		case n > 0:
			for i := range n {
				if f.bits == 8 {
					set(v)
				} else {
					set(v >> (4 * (1 - i%2)) & 15)
				}
			}
			continue
		case v == 0: // end of a row
			if x, y = 0, y+1; y%64 == 0 && ctx.Err() != nil {
				return none, ctx.Err()
			}
			if y <= f.h {
				continue
			}
		case v == 1: // end of the picture
		case v == 2:
			if len(b) < 2 {
				return none, ErrShort
			}
			x, y, b = x+int(b[0]), y+int(b[1]), b[2:]
			if y < f.h {
				continue
			}
		default:
			size := (int(v)*f.bits + 15) / 16 * 2
			if len(b) < size {
				return none, ErrShort
			}
			for i := range int(v) {
				set(bitsAt(b, i, uint8(f.bits)))
			}
			b = b[size:]
			continue
		}
		break
	}
	row := bmpFile{w: f.w, bits: 8, palette: f.palette}
	return f.draw(c, func(rgba []uint8, i int) error { return row.row(rgba, index[f.w*i:]) })
}
