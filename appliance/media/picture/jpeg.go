package picture

import (
	"bytes"
	"context"

	"ganglion/gpu/pixel"
)

// JPEG: ITU-T T.81. Sequential and progressive Huffman coding of 8 bits, to the bytes
// that libjpeg gives: its accurate integer transform (jidctint.c), its interpolation of
// chroma (jdsample.c), its colour tables (jdcolor.c).

// jpegPart is a colour component.
type jpegPart struct {
	id, h, v, table  int // sampling factors; quantisation table
	w, rows          int // samples that count: of W×H, by the sampling factors
	blocks           int // whole blocks in a row of MCUs
	stride           int
	plane            []uint8 // samples, whole MCUs of them
	coefs            []block // of progressive files, in the order of the plane
	acTable, dcTable int
	dc               int // prediction
}

// block holds the coefficients of 8×8 samples in natural order.
type block [64]int16

// jpegFile is a file in the course of being decoded.
type jpegFile struct {
	ctx         context.Context
	w, h        int
	progressive bool
	parts       []jpegPart
	hMax, vMax  int
	mcusX       int // MCUs in a row, and rows of them, of a scan of all parts
	mcusY       int
	quant       [4][64]uint16 // in natural order
	quantSet    [4]bool
	dc, ac      [4]*huffman
	restart     int // MCUs between restart markers, 0 for none
	jfif        bool
	adobe       int // colour transform of the Adobe segment, -1 without one
	scans       int
	out         pixel.Image
	done        int // rows of out that are converted
	eobRun      int // blocks that end before the next code
}

// maxScans bounds the work that one progressive file asks for; coders write ten.
const maxScans = 200

func decodeJPEG(ctx context.Context, b []byte) (pixel.Image, error) {
	f := jpegFile{ctx: ctx, adobe: -1}
	for i := 2; ; {
		if err := ctx.Err(); err != nil {
			return pixel.Image{}, err // tables take longer than their bytes
		}
		marker, body, end, err := jpegSegment(b, i)
		if err != nil {
			return pixel.Image{}, err
		}
		if i = end; marker == 0xd9 {
			break
		}
		if marker == 0xda {
			i, err = f.scan(b, body, end)
		} else {
			err = f.segment(marker, body, len(b))
		}
		if err != nil {
			return pixel.Image{}, err
		}
	}
	if f.scans == 0 {
		return pixel.Image{}, damaged("it has no scan")
	}
	return f.finish()
}

// segment reads what stands between scans.
func (f *jpegFile) segment(marker byte, body []byte, size int) error {
	switch {
	case isSOF(marker):
		return f.frame(marker, body, size)
	case marker == 0xc4:
		return f.huffmanTables(body)
	case marker == 0xdb:
		return f.quantTables(body)
	case marker == 0xdd:
		if len(body) < 2 {
			return damaged("its restart interval has no number")
		}
		f.restart = int(be.Uint16(body))
	case marker == 0xe0:
		f.jfif = f.jfif || bytes.HasPrefix(body, []byte("JFIF\x00"))
	case marker == 0xee:
		if bytes.HasPrefix(body, []byte("Adobe")) && len(body) >= 12 {
			f.adobe = int(body[11])
		}
	}
	return nil
}

func (f *jpegFile) quantTables(b []byte) error {
	for len(b) > 0 {
		wide, id := b[0]>>4, b[0]&15
		n := 64 * (1 + int(wide))
		if wide > 1 || id > 3 || len(b) < 1+n {
			return damaged("a quantisation table is wrong")
		}
		for i := range 64 {
			if wide == 1 {
				f.quant[id][natural[i]] = be.Uint16(b[1+2*i:])
			} else {
				f.quant[id][natural[i]] = uint16(b[1+i])
			}
		}
		f.quantSet[id] = true
		b = b[1+n:]
	}
	return nil
}

// natural is the place of coefficient i of the zigzag order. Sixteen more places keep
// runs that lead out of a block inside the table.
var natural = [80]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
}

func (f *jpegFile) frame(marker byte, b []byte, size int) error {
	if f.parts != nil {
		return damaged("it has two frames")
	}
	f.progressive = marker == 0xc2
	f.h, f.w = int(be.Uint16(b[1:])), int(be.Uint16(b[3:]))
	n := int(b[5])
	if n != 1 && n != 3 && n != 4 {
		return unsupported("a JPEG of %d components", n)
	}
	if len(b) < 6+3*n {
		return damaged("the frame header is too small")
	}
	f.parts = make([]jpegPart, n)
	for i := range f.parts {
		p, s := &f.parts[i], b[6+3*i:]
		p.id, p.h, p.v, p.table = int(s[0]), int(s[1]>>4), int(s[1]&15), int(s[2])
		if p.h < 1 || p.h > 4 || p.v < 1 || p.v > 4 || p.table > 3 {
			return damaged("component %d has sampling %d×%d and table %d", i, p.h, p.v, p.table)
		}
		f.hMax, f.vMax = max(f.hMax, p.h), max(f.vMax, p.v)
	}
	if n == 1 {
		f.parts[0].h, f.parts[0].v, f.hMax, f.vMax = 1, 1, 1, 1
	}
	f.mcusX, f.mcusY = ceilDiv(f.w, 8*f.hMax), ceilDiv(f.h, 8*f.vMax)
	blocks := 0
	for i := range f.parts {
		p := &f.parts[i]
		if f.hMax%p.h != 0 || f.vMax%p.v != 0 {
			return unsupported("a JPEG of sampling %d×%d in %d×%d", p.h, p.v, f.hMax, f.vMax)
		}
		p.w, p.rows = ceilDiv(f.w*p.h, f.hMax), ceilDiv(f.h*p.v, f.vMax)
		p.blocks = f.mcusX * p.h
		p.stride = 8 * p.blocks
		blocks += p.blocks * f.mcusY * p.v
	}
	// A block is coded in one bit at the least; runs of a progressive file, which code
	// many at once, come behind a scan of all.
	if blocks/8 > size {
		return ErrShort
	}
	for i := range f.parts {
		p := &f.parts[i]
		n := p.blocks * f.mcusY * p.v
		if f.progressive {
			p.coefs = make([]block, n) // finish makes the rest
		} else {
			p.plane = make([]uint8, 64*n)
		}
	}
	if !f.progressive {
		f.out = pixel.New(f.w, f.h)
	}
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// scanHead is what a scan says about itself.
type scanHead struct {
	parts     []*jpegPart
	from, to  int // spectral selection
	high, low int // successive approximation
	mcusX     int
	mcusY     int
	alone     bool // one part: its blocks follow one another without the padding of MCUs
}

func (f *jpegFile) scanHead(b []byte) (s scanHead, err error) {
	if f.parts == nil {
		return s, damaged("a scan comes before its frame")
	}
	if len(b) < 1 || len(b) < 4+2*int(b[0]) || b[0] < 1 || int(b[0]) > len(f.parts) {
		return s, damaged("the header of a scan is wrong")
	}
	n := int(b[0])
	for i := range n {
		id, tables := int(b[1+2*i]), b[2+2*i]
		var part *jpegPart
		for j := range f.parts {
			if f.parts[j].id == id {
				part = &f.parts[j]
			}
		}
		if part == nil {
			return s, damaged("a scan of component %d, which is none", id)
		}
		for _, p := range s.parts {
			if p == part {
				return s, damaged("a scan has component %d twice", id)
			}
		}
		part.dcTable, part.acTable = int(tables>>4), int(tables&15)
		if part.dcTable > 3 || part.acTable > 3 {
			return s, damaged("a scan names a table that does not exist")
		}
		s.parts = append(s.parts, part)
	}
	tail := b[1+2*n:]
	s.from, s.to, s.high, s.low = int(tail[0]), int(tail[1]), int(tail[2]>>4), int(tail[2]&15)
	if !f.progressive {
		s.from, s.to, s.high, s.low = 0, 63, 0, 0
	}
	if s.to > 63 || s.from > s.to || s.from == 0 && s.to != 0 && f.progressive ||
		s.from > 0 && n > 1 || s.low > 13 || s.high != 0 && s.high != s.low+1 {
		return s, damaged("a scan of coefficients %d to %d, bits %d to %d", s.from, s.to, s.high, s.low)
	}
	for _, p := range s.parts {
		f.orDefault(p.dcTable, p.acTable)
		if !f.quantSet[p.table] {
			return s, damaged("a quantisation table is missing")
		}
		if s.from == 0 && s.high == 0 && f.dc[p.dcTable] == nil || s.to > 0 && f.ac[p.acTable] == nil {
			return s, damaged("a Huffman table is missing")
		}
	}
	s.mcusX, s.mcusY = f.mcusX, f.mcusY
	if s.alone = n == 1; s.alone {
		s.mcusX, s.mcusY = ceilDiv(s.parts[0].w, 8), ceilDiv(s.parts[0].rows, 8)
	}
	return s, nil
}

// orDefault takes standard tables where the file has none.
func (f *jpegFile) orDefault(dc, ac int) {
	if f.dc[dc] == nil {
		f.dc[dc] = defaultTables.dc[dc]
	}
	if f.ac[ac] == nil {
		f.ac[ac] = defaultTables.ac[ac]
	}
}

// scan decodes entropy-coded data, which begin at i, and returns where they end.
func (f *jpegFile) scan(b, head []byte, i int) (end int, err error) {
	s, err := f.scanHead(head)
	if err != nil {
		return 0, err
	}
	if f.scans++; f.scans > maxScans {
		return 0, damaged("it has more than %d scans", maxScans)
	}
	r := bitReader{data: b, pos: i}
	if f.progressive {
		err = f.progressiveScan(&r, &s)
	} else {
		err = f.sequentialScan(&r, &s)
	}
	if err != nil {
		return 0, err
	}
	end = r.end()
	for end+1 < len(b) && b[end] == 0xff && b[end+1]&0xf8 == 0xd0 {
		end += 2 // a restart marker behind the last MCU
	}
	return end, nil
}

// finish makes the picture of what the scans have left.
func (f *jpegFile) finish() (pixel.Image, error) {
	if f.progressive {
		for i := range f.parts {
			p := &f.parts[i]
			p.plane = make([]uint8, 64*len(p.coefs))
			q := &f.quant[p.table]
			rows := f.mcusY * p.v
			if err := inBands(f.ctx, rows, func(y int) {
				var b block
				for x := range p.blocks {
					c, last := &p.coefs[y*p.blocks+x], 0
					for k, v := range c {
						b[k] = int16(int32(v) * int32(q[k]))
						if v != 0 {
							last = k
						}
					}
					inverse(&b, last, p.plane[8*y*p.stride+8*x:], p.stride)
				}
			}); err != nil {
				return pixel.Image{}, err
			}
			p.coefs = nil
		}
		f.out = pixel.New(f.w, f.h)
	}
	from := f.done
	err := inBands(f.ctx, ceilDiv(f.h-from, 16), func(band int) {
		f.convert(from+16*band, min(from+16*band+16, f.h))
	})
	return f.out, err
}
