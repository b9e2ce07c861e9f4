package picture

import (
	"bufio"
	"bytes"
	"context"
	"image"
	"io"
	"iter"
	"time"

	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"

	"ganglion/gpu/pixel"
)

// WebP: RFC 9649. The coded pixels are read by golang.org/x/image, colours and
// transparency here.

// riffChunks walks the chunks of a WebP file, as far as they are whole.
func riffChunks(b []byte) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		if len(b) > 12 {
			walkRIFF(b[12:], yield)
		}
	}
}

func walkRIFF(b []byte, yield func(chunk) bool) {
	for len(b) >= 8 {
		n := int64(le.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return
		}
		if !yield(chunk{kind: string(b[:4]), body: b[8 : 8+n]}) {
			return
		}
		b = b[min(8+n+n&1, int64(len(b))):]
	}
}

func webpMoves(b []byte) bool {
	return len(b) >= 30 && string(b[12:16]) == "VP8X" && b[20]&2 != 0
}

func decodeWebP(ctx context.Context, b []byte, o Options) (pixel.Image, error) {
	info := Info{Format: WebP}
	var err error
	if info.W, info.H, err = webpSize(b); err != nil {
		return pixel.Image{}, err
	}
	if err := riffWhole(b); err != nil {
		return pixel.Image{}, err
	}
	if webpMoves(b) {
		return firstFrame(ctx, info, b, o)
	}
	c := newCanvas(info.W, info.H, 3, o.OpaqueOnly)
	if err := webpPixels(ctx, c, riffChunks(b)); err != nil {
		return pixel.Image{}, err
	}
	return c.image(), nil
}

// webpPixels decodes one picture of the canvas's size from the chunks that hold it.
func webpPixels(ctx context.Context, c *canvas, chunks iter.Seq[chunk]) error {
	var alpha []byte
	for ch := range chunks {
		switch ch.kind {
		case "ALPH":
			alpha = ch.body
		case "VP8 ", "VP8L":
			if w, h, err := webpFrameSize(ch.kind, ch.body); err != nil {
				return err
			} else if w != c.w || h != c.h {
				return damaged("its pixels are %d×%d, the picture %d×%d", w, h, c.w, c.h)
			}
			if ch.kind == "VP8L" {
				return webpLossless(ctx, c, ch.body)
			}
			return webpLossy(ctx, c, ch.body, alpha)
		}
	}
	return ErrShort
}

// webpReader ends where its context does. Lossless pixels are read byte by byte from it.
type webpReader struct {
	*bufio.Reader
	ctx context.Context
	n   int // bytes so far
}

func newWebPReader(ctx context.Context, parts ...io.Reader) *webpReader {
	return &webpReader{Reader: bufio.NewReader(io.MultiReader(parts...)), ctx: ctx}
}

// ReadByte looks at the context now and then.
func (r *webpReader) ReadByte() (byte, error) {
	if r.n++; r.n&1023 == 0 && r.ctx.Err() != nil {
		return 0, r.ctx.Err()
	}
	return r.Reader.ReadByte()
}

// webpFail names what is wrong when reading ended with an error.
func webpFail(ctx context.Context, err error) error {
	if end := ctx.Err(); end != nil {
		return end
	}
	return packedError(err)
}

func webpLossless(ctx context.Context, c *canvas, b []byte) error {
	in, err := vp8l.Decode(newWebPReader(ctx, bytes.NewReader(b)))
	if err != nil {
		return webpFail(ctx, err)
	}
	m, ok := in.(*image.NRGBA)
	if !ok || m.Rect.Dx() != c.w || m.Rect.Dy() != c.h {
		return damaged("it has other pixels than it declares")
	}
	for y := range c.h {
		c.put(y, 0, 1, m.Pix[y*m.Stride:][:4*c.w])
	}
	return nil
}

// webpLossy looks at the context between its steps: the longest one, which unpacks the
// planes, cannot be interrupted; 40 megapixels take it a second or two.
func webpLossy(ctx context.Context, c *canvas, b, alpha []byte) error {
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(b), len(b))
	head, err := d.DecodeFrameHeader()
	if err != nil {
		return packedError(err)
	}
	if head.Width != c.w || head.Height != c.h || !head.KeyFrame {
		return damaged("it has other pixels than it declares")
	}
	m, err := d.DecodeFrame()
	if err != nil {
		return packedError(err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var opacity []uint8
	if alpha != nil {
		if opacity, err = webpAlpha(ctx, alpha, c.w, c.h); err != nil {
			return err
		}
	}
	rgba := make([]uint8, 4*c.w)
	var u, v webpChroma
	for y := range c.h {
		if y%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		webpUpsample(&u, m.Cb, m.CStride, c.w, c.h, y)
		webpUpsample(&v, m.Cr, m.CStride, c.w, c.h, y)
		for x, luma := range m.Y[y*m.YStride:][:c.w] {
			d := rgba[4*x:][:4]
			d[0], d[1], d[2], d[3] = webpRGB(int(luma), int(u.row[x]), int(v.row[x]), 255)
			if opacity != nil {
				d[3] = opacity[y*c.w+x]
			}
		}
		c.put(y, 0, 1, rgba)
	}
	return nil
}

// webpChroma is one row of chroma at full width.
type webpChroma struct{ row []uint8 }

// webpUpsample interpolates row y of a plane of half the size like libwebp
// (dsp/upsampling.c): nine parts of the nearest sample, three of each neighbour, one
// of the corner, rounded in two steps.
func webpUpsample(out *webpChroma, plane []uint8, stride, w, h, y int) {
	if out.row == nil {
		out.row = make([]uint8, w)
	}
	n, rows := (w+1)/2, (h+1)/2
	near := y / 2
	far := min(max(near-1+2*(y%2), 0), rows-1)
	a, b := plane[near*stride:][:n], plane[far*stride:][:n]
	row := out.row
	row[0] = uint8((3*int(a[0]) + int(b[0]) + 2) >> 2)
	for i := 1; i < n; i++ {
		// Corners of a square: a[i-1], a[i] on the near row, b[i-1], b[i] on the far one.
		al, ar, bl, br := int(a[i-1]), int(a[i]), int(b[i-1]), int(b[i])
		sum := al + ar + bl + br + 8
		row[2*i-1] = uint8((al + (sum+2*(ar+bl))>>3) >> 1)
		row[2*i] = uint8((ar + (sum+2*(al+br))>>3) >> 1)
	}
	if w%2 == 0 && w > 1 {
		row[w-1] = uint8((3*int(a[n-1]) + int(b[n-1]) + 2) >> 2)
	}
}

// webpRGB converts limited-range BT.601 in libwebp's integers (dsp/yuv.h).
func webpRGB(y, u, v int, alpha uint8) (r, g, b, a uint8) {
	y = y * 19077 >> 8
	return clip6(y + v*26149>>8 - 14234), clip6(y - u*6419>>8 - v*13320>>8 + 8708), clip6(y + u*33050>>8 - 17685), alpha
}

// clip6 drops 6 fractional bits.
func clip6(v int) uint8 { return uint8(min(max(v>>6, 0), 255)) }

// webpAlpha unpacks an ALPH chunk (RFC 9649, section 2.7.1.2). [h, w]
func webpAlpha(ctx context.Context, b []byte, w, h int) ([]uint8, error) {
	if len(b) < 1 {
		return nil, ErrShort
	}
	coding, filter := b[0]&3, b[0]>>2&3
	out := make([]uint8, w*h)
	switch coding {
	case 0:
		if len(b)-1 < w*h {
			return nil, ErrShort
		}
		copy(out, b[1:])
	case 1:
		// The coded data lack the header that a lossless picture has.
		head := le.AppendUint32([]byte{0x2f}, uint32(w-1)|uint32(h-1)<<14|1<<28)
		in, err := vp8l.Decode(newWebPReader(ctx, bytes.NewReader(head), bytes.NewReader(b[1:])))
		if err != nil {
			return nil, webpFail(ctx, err)
		}
		m, ok := in.(*image.NRGBA)
		if !ok || len(m.Pix) < 4*w*h {
			return nil, damaged("its transparency has another size")
		}
		for i := range out {
			out[i] = m.Pix[4*i+1] // the green samples
		}
	default:
		return nil, damaged("transparency of coding %d does not exist", coding)
	}
	unfilterAlpha(out, w, filter)
	return out, nil
}

// unfilterAlpha adds the prediction to differences: 1 from the left, 2 from above, 3
// the gradient.
func unfilterAlpha(a []uint8, w int, filter uint8) {
	if filter == 0 {
		return
	}
	for i := range a {
		x, y := i%w, i/w
		switch {
		case x == 0 && y == 0:
		case y == 0:
			a[i] += a[i-1]
		case x == 0:
			a[i] += a[i-w]
		case filter == 1:
			a[i] += a[i-1]
		case filter == 2:
			a[i] += a[i-w]
		default:
			a[i] += uint8(min(max(int(a[i-1])+int(a[i-w])-int(a[i-w-1]), 0), 255))
		}
	}
}

// webpLayers walks the ANMF chunks.
func webpLayers(b []byte) iter.Seq2[layer, error] {
	return func(yield func(layer, error) bool) {
		if err := riffWhole(b); err != nil {
			yield(layer{}, err)
			return
		}
		frames := 0
		for c := range riffChunks(b) {
			if c.kind != "ANMF" {
				continue
			}
			if len(c.body) < 16 {
				yield(layer{}, ErrShort)
				return
			}
			f := c.body
			l := layer{
				x: 2 * int(uint24(f)), y: 2 * int(uint24(f[3:])),
				w: int(uint24(f[6:])) + 1, h: int(uint24(f[9:])) + 1,
				wait: time.Duration(uint24(f[12:])) * time.Millisecond,
				over: f[15]&2 == 0,
			}
			if f[15]&1 != 0 {
				l.after = clearPlace
			}
			if l.wait <= 10*time.Millisecond {
				l.wait = 100 * time.Millisecond
			}
			l.unpack = func(ctx context.Context, c *canvas) error {
				return webpPixels(ctx, c, func(yield func(chunk) bool) { walkRIFF(f[16:], yield) })
			}
			if !yield(l, nil) {
				return
			}
			frames++
		}
		if frames == 0 {
			yield(layer{}, ErrShort)
		}
	}
}
