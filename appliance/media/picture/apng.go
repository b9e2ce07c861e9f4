package picture

import (
	"context"
	"iter"
	"time"
)

// Animated PNG: PNG third edition, section 11.3.6 (acTL, fcTL, fdAT).

func apngMoves(b []byte) bool {
	for c, err := range pngChunks(b) {
		switch {
		case err != nil || c.kind == "IDAT":
			return false
		case c.kind == "acTL":
			return true
		}
	}
	return false
}

// apngLayers walks the frames: each has a control chunk and, behind it, its data.
// IDAT before the first control chunk is a picture for readers that know no
// animation.
func apngLayers(b []byte) iter.Seq2[layer, error] {
	return func(yield func(layer, error) bool) {
		head := pngHeadOf(b)
		var control []byte
		var packed parts
		flush := func() bool {
			if control == nil {
				return true
			}
			l, err := apngLayer(head, control, packed)
			packed = nil
			return yield(l, err) && err == nil
		}
		for c, err := range pngChunks(b) {
			switch {
			case err != nil:
			case c.kind == "PLTE":
				err = head.setPalette(c.body)
			case c.kind == "tRNS":
				err = head.setTransparency(c.body)
			case c.kind == "fcTL" && len(c.body) != 26, c.kind == "fdAT" && len(c.body) < 4:
				err = damaged("a chunk %s has %d bytes", c.kind, len(c.body))
			case c.kind == "fcTL":
				if !flush() {
					return
				}
				control = c.body
			case c.kind == "IDAT" && control != nil:
				packed = append(packed, c.body)
			case c.kind == "fdAT":
				packed = append(packed, c.body[4:])
			case c.kind == "IEND":
				flush()
				return
			}
			if err != nil {
				yield(layer{}, err)
				return
			}
		}
	}
}

func apngLayer(head pngHead, control []byte, packed parts) (layer, error) {
	at := func(i int) int { return int(be.Uint32(control[i:])) }
	l := layer{x: at(12), y: at(16), w: at(4), h: at(8), over: control[25] == 1}
	num, den := time.Duration(be.Uint16(control[20:])), time.Duration(be.Uint16(control[22:]))
	if den == 0 {
		den = 100
	}
	if l.wait = num * time.Second / den; l.wait <= 10*time.Millisecond {
		l.wait = 100 * time.Millisecond
	}
	if l.w > head.w || l.h > head.h || control[24] > 2 {
		return l, damaged("a frame of %d×%d is larger than the picture", l.w, l.h)
	}
	l.after = disposal(control[24])
	head.w, head.h = l.w, l.h
	l.unpack = func(ctx context.Context, c *canvas) error {
		if !packed.canHold(head.rowBytes(head.w) * head.h) {
			return ErrShort
		}
		return head.pixels(ctx, c, packed)
	}
	return l, nil
}
