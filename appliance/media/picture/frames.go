package picture

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"ganglion/gpu/pixel"
)

// Frame is one picture of an animation and how long it is seen.
type Frame struct {
	At, Until time.Duration
	canvas    *canvas
	opaque    bool
}

// Image is the picture, the caller's own. It may be asked for until the next frame.
func (f Frame) Image() pixel.Image {
	out := newCanvas(f.canvas.w, f.canvas.h, 3, f.opaque)
	for y := range out.h {
		out.put(y, 0, 1, f.canvas.pix[4*out.w*y:4*out.w*(y+1)])
	}
	return out.image()
}

// Frames decodes the frames of an animation one after another; a picture that does
// not move is one frame. The walk ends with the first error.
func Frames(ctx context.Context, data []byte, o Options) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		fail := func(err error) { yield(Frame{}, fmt.Errorf("picture: %w", err)) }
		o.Limits = o.Limits.or(DefaultLimits())
		info, err := describe(data)
		if err == nil {
			err = o.Limits.check(info)
		}
		if err != nil {
			fail(err)
			return
		}
		layers := layersOf(info, data)
		if layers == nil {
			m, err := decode(ctx, data, o)
			if err != nil {
				fail(err)
				return
			}
			c := newCanvas(m.W, m.H, 4, true)
			widen(c.pix, m.Pix, 3)
			yield(Frame{canvas: c, opaque: true}, nil)
			return
		}
		p := player{canvas: newCanvas(info.W, info.H, 4, true)}
		for l, err := range layers {
			if err == nil && p.count >= o.Limits.Frames {
				err = fmt.Errorf("%w: it has more than %d frames", ErrTooLarge, o.Limits.Frames)
			}
			if err == nil {
				err = p.show(ctx, l)
			}
			if err != nil {
				fail(err)
				return
			}
			if !yield(Frame{At: p.now - l.wait, Until: p.now, canvas: p.canvas, opaque: o.OpaqueOnly}, nil) {
				return
			}
			p.dispose(l)
		}
	}
}

// Timeline tells how long each frame of an animation is seen, from its headers; nil
// for a picture that does not move.
func Timeline(data []byte, limits Limits) ([]time.Duration, error) {
	info, err := describe(data)
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	layers := layersOf(info, data)
	if layers == nil {
		return nil, nil
	}
	limits = limits.or(DefaultLimits())
	var waits []time.Duration
	for l, err := range layers {
		if err == nil && len(waits) >= limits.Frames {
			err = fmt.Errorf("%w: it has more than %d frames", ErrTooLarge, limits.Frames)
		}
		if err != nil {
			return nil, fmt.Errorf("picture: %w", err)
		}
		waits = append(waits, l.wait)
	}
	return waits, nil
}

// layersOf is nil for kinds and files that do not move.
func layersOf(info Info, data []byte) iter.Seq2[layer, error] {
	switch {
	case info.Format == GIF:
		return gifLayers(data)
	case info.Format == PNG && apngMoves(data):
		return apngLayers(data)
	case info.Format == WebP && webpMoves(data):
		return webpLayers(data)
	}
	return nil
}

// layer is what one frame adds to the canvas.
type layer struct {
	x, y, w, h int
	wait       time.Duration
	over       bool // laid over what is there instead of replacing it
	after      disposal
	unpack     func(ctx context.Context, c *canvas) error // onto a canvas of w×h
}

// disposal says what becomes of a layer's place when its time is over.
type disposal int

const (
	keep disposal = iota
	clearPlace
	restore
)

// player lays layers on one another.
type player struct {
	canvas *canvas
	before []uint8 // the canvas before a layer that will be taken back
	now    time.Duration
	count  int
}

// inside tells whether a layer lies in a picture of w×h pixels.
func (l layer) inside(w, h int) error {
	if l.x < 0 || l.y < 0 || l.w < 1 || l.h < 1 || l.w > w-l.x || l.h > h-l.y {
		return damaged("a frame of %d×%d at (%d, %d) is outside the picture", l.w, l.h, l.x, l.y)
	}
	return nil
}

func (p *player) show(ctx context.Context, l layer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.inside(p.canvas.w, p.canvas.h); err != nil {
		return err
	}
	if l.after == restore {
		p.before = append(p.before[:0], p.canvas.pix...)
	}
	part := newCanvas(l.w, l.h, 4, true)
	if err := l.unpack(ctx, part); err != nil {
		return err
	}
	for y := range l.h {
		src := part.pix[4*l.w*y : 4*l.w*(y+1)]
		dst := p.canvas.pix[4*((l.y+y)*p.canvas.w+l.x):][:4*l.w]
		if l.over {
			blend(dst, src)
		} else {
			copy(dst, src)
		}
	}
	p.now += l.wait
	p.count++
	return nil
}

func (p *player) dispose(l layer) {
	switch l.after {
	case clearPlace:
		for y := range l.h {
			clear(p.canvas.pix[4*((l.y+y)*p.canvas.w+l.x):][:4*l.w])
		}
	case restore:
		copy(p.canvas.pix, p.before)
	}
}

// blend lays straight RGBA over straight RGBA.
func blend(dst, src []uint8) {
	for ; len(src) >= 4; dst, src = dst[4:], src[4:] {
		switch a := uint32(src[3]); {
		case a == 255 || dst[3] == 0 && a > 0:
			copy(dst[:4], src[:4])
		case a > 0:
			under := uint32(dst[3]) * (255 - a) // in units of 1/255
			whole := a*255 + under
			for c := range 3 {
				dst[c] = uint8((uint32(src[c])*a*255 + uint32(dst[c])*under + whole/2) / whole)
			}
			dst[3] = uint8((whole + 127) / 255)
		}
	}
}

// firstFrame unpacks the first layer alone: where it is the whole picture, into the picture
// itself.
func firstFrame(ctx context.Context, info Info, data []byte, o Options) (pixel.Image, error) {
	for l, err := range layersOf(info, data) {
		if err != nil {
			return pixel.Image{}, err
		}
		if l.w == info.W && l.h == info.H && !o.OpaqueOnly {
			if err := errors.Join(l.inside(info.W, info.H), ctx.Err()); err != nil {
				return pixel.Image{}, err
			}
			c := newCanvas(info.W, info.H, 3, false)
			return c.image(), l.unpack(ctx, c)
		}
		p := player{canvas: newCanvas(info.W, info.H, 4, true)}
		if l.after == restore {
			l.after = keep
		}
		if err := p.show(ctx, l); err != nil {
			return pixel.Image{}, err
		}
		return Frame{canvas: p.canvas, opaque: o.OpaqueOnly}.Image(), nil
	}
	return pixel.Image{}, damaged("it has no frame")
}
