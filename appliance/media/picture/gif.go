package picture

import (
	"bufio"
	"compress/lzw"
	"context"
	"io"
	"iter"
	"time"
)

// GIF89a: section 20 is the image descriptor, 22 its data, 23 the control extension.

// gifLayers walks the blocks. A missing trailer after a whole frame is common and
// harmless.
func gifLayers(b []byte) iter.Seq2[layer, error] {
	return func(yield func(layer, error) bool) {
		global, i := gifPalette(b, 10, 13)
		if i > len(b) {
			yield(layer{}, ErrShort)
			return
		}
		frames, control := 0, gifControl{transparent: -1, wait: 100 * time.Millisecond}
		for i < len(b) && b[i] != 0x3b {
			switch b[i] {
			case 0x21:
				if i+2 > len(b) {
					yield(layer{}, ErrShort)
					return
				}
				label := b[i+1]
				end := gifBlocks(b, i+2)
				if end < 0 {
					yield(layer{}, ErrShort)
					return
				}
				if first := b[i+3 : min(i+3+int(b[i+2]), end)]; label == 0xf9 && len(first) >= 4 {
					control = gifControlOf(first)
				}
				i = end
			case 0x2c:
				l, end, err := gifImage(b, i, global, control)
				if !yield(l, err) || err != nil {
					return
				}
				frames++
				i, control = end, gifControl{transparent: -1, wait: 100 * time.Millisecond}
			default:
				yield(layer{}, damaged("block %02X stands at byte %d", b[i], i))
				return
			}
		}
		if frames == 0 {
			yield(layer{}, damaged("it has no frame"))
		}
	}
}

// gifPalette reads the colours that the flags at byte flags announce at byte at. [n, 4]
func gifPalette(b []byte, flags, at int) (palette []uint8, end int) {
	if b[flags]&0x80 == 0 {
		return nil, at
	}
	n := 2 << (b[flags] & 7)
	end = at + 3*n
	if end <= len(b) {
		palette = make([]uint8, 4*n)
		widen(palette, b[at:end], 3)
	}
	return palette, end
}

// gifBlocks tells where sub-blocks end, behind the empty one; it is negative where the file
// ends before.
func gifBlocks(b []byte, i int) (end int) {
	for {
		if i >= len(b) || i+1+int(b[i]) > len(b) {
			return -1
		}
		n := int(b[i])
		if n == 0 {
			return i + 1
		}
		i += n + 1
	}
}

// gifStream reads what whole sub-blocks hold, one after another.
type gifStream struct {
	b    []byte // from the next length on, or from within a sub-block
	left int    // of the sub-block at hand
}

func (s *gifStream) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if s.left == 0 {
			if len(s.b) == 0 || s.b[0] == 0 {
				break
			}
			s.left, s.b = int(s.b[0]), s.b[1:]
		}
		m := copy(p[n:], s.b[:s.left])
		s.b, s.left, n = s.b[m:], s.left-m, n+m
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

type gifControl struct {
	transparent int // a colour, or -1
	after       disposal
	wait        time.Duration
}

func gifControlOf(b []byte) gifControl {
	c := gifControl{transparent: -1, wait: time.Duration(le.Uint16(b[1:])) * 10 * time.Millisecond}
	if b[0]&1 != 0 {
		c.transparent = int(b[3])
	}
	switch b[0] >> 2 & 7 {
	case 2:
		c.after = clearPlace
	case 3:
		c.after = restore
	}
	if c.wait <= 10*time.Millisecond {
		c.wait = 100 * time.Millisecond // what every viewer makes of no time at all
	}
	return c
}

func gifImage(b []byte, i int, global []uint8, control gifControl) (l layer, end int, err error) {
	if len(b)-i < 11 {
		return l, 0, ErrShort
	}
	l = layer{
		x: int(le.Uint16(b[i+1:])), y: int(le.Uint16(b[i+3:])),
		w: int(le.Uint16(b[i+5:])), h: int(le.Uint16(b[i+7:])),
		over: true, after: control.after, wait: control.wait,
	}
	flags := b[i+9]
	palette, at := gifPalette(b, i+9, i+10)
	if palette == nil {
		palette = global
	}
	if at >= len(b) {
		return l, 0, ErrShort
	}
	width := int(b[at])
	end = gifBlocks(b, at+1)
	switch {
	case end < 0:
		return l, 0, ErrShort
	case palette == nil:
		return l, 0, damaged("a frame has no palette")
	case width < 1 || width > 8:
		return l, 0, damaged("its codes begin with %d bits", width)
	}
	packed := b[at+1 : end]
	l.unpack = func(ctx context.Context, c *canvas) error {
		palette := palette
		if t := control.transparent; t >= 0 && 4*t < len(palette) {
			palette = append([]uint8(nil), palette...)
			palette[4*t+3] = 0
		}
		return gifPixels(ctx, c, packed, width, palette, flags&0x40 != 0)
	}
	return l, end, nil
}

func gifPixels(ctx context.Context, c *canvas, packed []byte, width int, palette []uint8, interlaced bool) error {
	// A code of 12 bits stands for 4096 pixels at the most.
	if c.w*c.h/4096 > len(packed)*8/3 {
		return ErrShort
	}
	z := lzw.NewReader(bufio.NewReader(&gifStream{b: packed}), lzw.LSB, width)
	defer z.Close()
	row, rgba := make([]uint8, c.w), make([]uint8, 4*c.w)
	for i := range c.h {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := io.ReadFull(z, row); err != nil {
			return packedError(err)
		}
		for x, v := range row {
			at := 4 * int(v)
			if at >= len(palette) {
				return damaged("colour %d of %d is used", v, len(palette)/4)
			}
			copy(rgba[4*x:4*x+4], palette[at:at+4])
		}
		y := i
		if interlaced {
			y = gifRow(i, c.h)
		}
		c.put(y, 0, 1, rgba)
	}
	return nil
}

// gifRow is where row i of an interlaced frame of h rows belongs (appendix E).
func gifRow(i, h int) int {
	for _, pass := range [...]struct{ from, by int }{{0, 8}, {4, 8}, {2, 4}, {1, 2}} {
		if n := (h - pass.from + pass.by - 1) / pass.by; i < n {
			return pass.from + i*pass.by
		} else {
			i -= n
		}
	}
	return h - 1
}
