package picture

import (
	"compress/zlib"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"iter"
	"sync"

	"ganglion/gpu/pixel"
)

// chunk is a named part of a PNG or RIFF file.
type chunk struct {
	kind string
	body []byte
}

// pngChunks walks the chunks up to and with IEND. Checksums of chunks that a reader
// may skip do not matter.
func pngChunks(b []byte) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		for i := 8; ; {
			if len(b)-i < 12 {
				yield(chunk{}, ErrShort)
				return
			}
			n := int64(be.Uint32(b[i:]))
			if n > int64(len(b)-i-12) {
				yield(chunk{}, ErrShort)
				return
			}
			c, end := chunk{kind: string(b[i+4 : i+8]), body: b[i+8 : i+8+int(n)]}, i+8+int(n)
			if critical := b[i+4]&0x20 == 0 || c.kind == "fdAT"; critical && crc32.ChecksumIEEE(b[i+4:end]) != be.Uint32(b[end:]) {
				yield(chunk{}, damaged("the checksum of the chunk at byte %d is wrong", i))
				return
			}
			if !yield(c, nil) || c.kind == "IEND" {
				return
			}
			i = end + 4
		}
	}
}

// pngHead is what decoding the pixels needs.
type pngHead struct {
	w, h        int
	depth, kind uint8
	interlaced  bool
	palette     []uint8   // [n, 4] RGBA
	key         [3]uint16 // the transparent sample values
	keyed       bool
}

func (p *pngHead) channels() int { return [...]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[p.kind] }

// rowBytes is the length of a row of w pixels, less its filter byte.
func (p *pngHead) rowBytes(w int) int { return (w*p.channels()*int(p.depth) + 7) / 8 }

func pngHeadOf(b []byte) pngHead {
	return pngHead{
		w: int(be.Uint32(b[16:])), h: int(be.Uint32(b[20:])),
		depth: b[24], kind: b[25], interlaced: b[28] == 1,
	}
}

func (p *pngHead) setPalette(b []byte) error {
	if len(b)%3 != 0 || len(b) > 768 || len(b) == 0 {
		return damaged("its palette has %d bytes", len(b))
	}
	if p.kind == 3 {
		p.palette = make([]uint8, len(b)/3*4)
		widen(p.palette, b, 3)
	}
	return nil
}

func (p *pngHead) setTransparency(b []byte) error {
	switch n := map[uint8]int{0: 2, 2: 6}[p.kind]; {
	case p.kind == 3:
		if len(b) > len(p.palette)/4 {
			return damaged("it has transparency for %d colours of %d", len(b), len(p.palette)/4)
		}
		for i, a := range b {
			p.palette[4*i+3] = a
		}
	case n == 0 || len(b) < n:
		return damaged("transparency of colour type %d has %d bytes", p.kind, len(b))
	default:
		for i := range n / 2 {
			p.key[i] = be.Uint16(b[2*i:])
		}
		p.keyed = true
	}
	return nil
}

func decodePNG(ctx context.Context, b []byte, o Options) (pixel.Image, error) {
	var none pixel.Image
	p := pngHeadOf(b)
	var packed parts
	for c, err := range pngChunks(b) {
		if err != nil {
			return none, err
		}
		switch c.kind {
		case "PLTE":
			err = p.setPalette(c.body)
		case "tRNS":
			err = p.setTransparency(c.body)
		case "IDAT":
			packed = append(packed, c.body)
		}
		if err != nil {
			return none, err
		}
	}
	if !packed.canHold(p.rowBytes(p.w) * p.h) {
		return none, ErrShort
	}
	c := newCanvas(p.w, p.h, 3, o.OpaqueOnly)
	if err := p.pixels(ctx, c, packed); err != nil {
		return none, err
	}
	return c.image(), nil
}

// parts is a stream that lies in pieces.
type parts [][]byte

func (p parts) size() (n int) {
	for _, b := range p {
		n += len(b)
	}
	return n
}

// canHold tells whether deflated parts can hold n bytes: no length is coded in less
// than two bits for 258 bytes (RFC 1951).
func (p parts) canHold(n int) bool { return p.size() > 0 && n/1032 <= p.size() }

func (p *parts) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func (p *parts) ReadByte() (byte, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	b := (*p)[0][0]
	(*p)[0] = (*p)[0][1:]
	return b, nil
}

// inflaters are readers of deflated data at rest: each has 40 KB of tables.
var inflaters sync.Pool

// inflater returns a reader of deflated data and what to call when it is done with.
func inflater(p *parts) (io.Reader, func(), error) {
	if z, ok := inflaters.Get().(io.ReadCloser); ok {
		if err := z.(zlib.Resetter).Reset(p, nil); err != nil {
			inflaters.Put(z)
			return nil, nil, err
		}
		return z, func() { inflaters.Put(z) }, nil
	}
	z, err := zlib.NewReader(p)
	if err != nil {
		return nil, nil, err
	}
	return z, func() { inflaters.Put(z) }, nil
}

// packedError names what is wrong with a packed stream.
func packedError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrShort
	}
	return damaged("%v", err)
}

// passes of Adam7: where each begins and how far apart its pixels are.
var adam7 = [7]struct{ x, y, dx, dy int }{
	{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2},
}

// pixels unpacks p.w×p.h pixels onto the upper left of a canvas.
func (p *pngHead) pixels(ctx context.Context, c *canvas, packed parts) error {
	if p.kind == 3 && p.palette == nil {
		return damaged("it has no palette")
	}
	z, done, err := inflater(&packed)
	if err != nil {
		return packedError(err)
	}
	defer done()
	if !p.interlaced {
		err = p.pass(ctx, z, c, 0, 0, 1, 1)
	}
	for _, a := range adam7 {
		if p.interlaced && err == nil && p.w > a.x && p.h > a.y {
			err = p.pass(ctx, z, c, a.x, a.y, a.dx, a.dy)
		}
	}
	if err != nil {
		return err
	}
	// The stream ends behind the pixels, which is where its checksum is looked at.
	var rest [1]byte
	if n, err := io.ReadFull(z, rest[:]); n == 0 && err != io.EOF {
		return packedError(err)
	}
	return nil
}

func (p *pngHead) pass(ctx context.Context, z io.Reader, c *canvas, x, y, dx, dy int) error {
	w := (p.w - x + dx - 1) / dx
	n, back := p.rowBytes(w), max(p.channels()*int(p.depth)/8, 1)
	row, above := make([]uint8, 1+n), make([]uint8, 1+n)
	rgba := make([]uint8, 4*w)
	for i := 0; y < p.h; i, y = i+1, y+dy {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := io.ReadFull(z, row); err != nil {
			return packedError(err)
		}
		if err := unfilter(row[0], row[1:], above[1:], back); err != nil {
			return err
		}
		if err := p.widen(rgba, row[1:], w); err != nil {
			return err
		}
		c.put(y, x, dx, rgba)
		row, above = above, row
	}
	return nil
}

// unfilter turns a row of differences into samples (section 9). back is the length of
// a pixel.
func unfilter(kind uint8, row, above []uint8, back int) error {
	above = above[:len(row)]
	switch kind {
	case 0:
	case 1:
		for i := back; i < len(row); i++ {
			row[i] += row[i-back]
		}
	case 2:
		for i, v := range above {
			row[i] += v
		}
	case 3:
		for i := range min(back, len(row)) {
			row[i] += above[i] / 2
		}
		for i := back; i < len(row); i++ {
			row[i] += uint8((int(row[i-back]) + int(above[i])) / 2)
		}
	case 4:
		for i := range min(back, len(row)) {
			row[i] += above[i]
		}
		for i := back; i < len(row); i++ {
			row[i] += paeth(int(row[i-back]), int(above[i]), int(above[i-back]))
		}
	default:
		return damaged("filter %d does not exist", kind)
	}
	return nil
}

// paeth is whichever neighbour is nearest to left + up - corner.
func paeth(left, up, corner int) uint8 {
	a, b := up-corner, left-corner
	c := a + b
	a, b, c = max(a, -a), max(b, -b), max(c, -c)
	switch {
	case a <= b && a <= c:
		return uint8(left)
	case b <= c:
		return uint8(up)
	}
	return uint8(corner)
}

// widen makes RGBA of 8 bits of a row of w pixels.
func (p *pngHead) widen(rgba, row []uint8, w int) error {
	n := p.channels()
	switch {
	case p.kind == 3:
		for i := range w {
			at := 4 * int(bitsAt(row, i, p.depth))
			if at >= len(p.palette) {
				return damaged("colour %d of %d is used", at/4, len(p.palette)/4)
			}
			copy(rgba[4*i:4*i+4], p.palette[at:at+4])
		}
		return nil
	case p.depth < 8:
		full := uint8(1)<<p.depth - 1
		for i := range w {
			v := bitsAt(row, i, p.depth)
			d, v8 := rgba[4*i:][:4], v*(255/full)
			d[0], d[1], d[2], d[3] = v8, v8, v8, 255
			if p.keyed && uint16(v) == p.key[0] {
				d[3] = 0
			}
		}
		return nil
	}
	samples := row[:w*n]
	if p.depth == 16 {
		samples = make([]uint8, w*n) // the row itself is what the next one's filter needs
		for i := range samples {
			samples[i] = row[2*i] // the high byte
		}
	}
	widen(rgba, samples, n)
	if p.keyed {
		p.hide(rgba, row, w)
	}
	return nil
}

// hide makes the pixels of the key's colour transparent. The samples have 8 or 16 bits.
func (p *pngHead) hide(rgba, row []uint8, w int) {
	n := p.channels()
	for i := range w {
		match := true
		for c := range n {
			v := uint16(row[(i*n+c)*int(p.depth)/8])
			if p.depth == 16 {
				v = be.Uint16(row[2*(i*n+c):])
			}
			match = match && v == p.key[c]
		}
		if match {
			rgba[4*i+3] = 0
		}
	}
}

// bitsAt is sample i of a row of samples of 1, 2, 4 or 8 bits.
func bitsAt(row []uint8, i int, depth uint8) uint8 {
	bit := i * int(depth)
	return row[bit/8] >> (8 - int(depth) - bit%8) & (1<<depth - 1)
}
