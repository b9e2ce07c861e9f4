package picture

import "sync"

// strip is one row of MCUs between the reader of codes and the transform.
type strip struct {
	row    int
	blocks []block
	lasts  []uint8
}

// sequentialScan reads codes on this goroutine while a second one transforms and, where
// a scan has all parts, a third one converts what is complete. Codes take a quarter of the
// time, the transform a third, colours the rest.
func (f *jpegFile) sequentialScan(r *bitReader, s *scanHead) error {
	size := 0
	for _, p := range s.parts {
		h, v := s.shape(p)
		size += s.mcusX * h * v
	}
	work, free := make(chan *strip, 2), make(chan *strip, 2)
	for range cap(free) {
		free <- &strip{blocks: make([]block, size), lasts: make([]uint8, size)}
	}
	samples := make(chan int, 2) // rows of the picture that have all samples they want
	var wait sync.WaitGroup
	wait.Go(func() {
		defer close(samples)
		for t := range work {
			f.transform(s, t)
			samples <- f.complete(s, t.row)
			free <- t
		}
	})
	wait.Go(func() {
		for until := range samples {
			if until > f.done {
				f.convert(f.done, until)
				f.done = until
			}
		}
	})
	defer wait.Wait()
	defer close(work)
	for i := range s.parts {
		s.parts[i].dc = 0
	}
	for y := range s.mcusY {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		t := <-free
		t.row = y
		if err := f.readStrip(r, s, t); err != nil {
			return err
		}
		work <- t
	}
	return nil
}

// shape tells how many blocks of a part an MCU of the scan has.
func (s *scanHead) shape(p *jpegPart) (h, v int) {
	if s.alone {
		return 1, 1
	}
	return p.h, p.v
}

func (f *jpegFile) readStrip(r *bitReader, s *scanHead, t *strip) error {
	for x := range s.mcusX {
		if mcu := t.row*s.mcusX + x; f.restart > 0 && mcu > 0 && mcu%f.restart == 0 {
			if r.overrun() {
				return ErrShort
			}
			if err := r.restart(mcu/f.restart - 1); err != nil {
				return err
			}
			for _, p := range s.parts {
				p.dc = 0
			}
		}
		first := 0
		for _, p := range s.parts {
			h, v := s.shape(p)
			dc, ac, q := f.dc[p.dcTable], f.ac[p.acTable], &f.quant[p.table]
			for j := range v {
				for i := range h {
					at := first + (j*s.mcusX+x)*h + i
					last := r.sequential(&t.blocks[at], q, dc, ac, &p.dc)
					if last < 0 {
						if r.overrun() {
							return ErrShort
						}
						return damaged("a code in MCU row %d does not exist", t.row)
					}
					t.lasts[at] = uint8(last)
				}
			}
			first += h * v * s.mcusX
		}
	}
	if r.overrun() {
		return ErrShort
	}
	return nil
}

// transform turns a strip into samples and leaves it all zeros.
func (f *jpegFile) transform(s *scanHead, t *strip) {
	at := 0
	for _, p := range s.parts {
		h, v := s.shape(p)
		for j := range v {
			row := p.plane[8*(t.row*v+j)*p.stride:]
			for x := range s.mcusX * h {
				inverse(&t.blocks[at], int(t.lasts[at]), row[8*x:], p.stride)
				t.blocks[at] = block{}
				at++
			}
		}
	}
}

// complete tells how many rows of the picture can be converted when a row of MCUs is
// transformed.
func (f *jpegFile) complete(s *scanHead, row int) int {
	mcu := 8 * f.vMax
	switch {
	case len(s.parts) < len(f.parts):
		return 0
	case s.alone:
		mcu = 8
	}
	return min((row+1)*mcu-f.vMax, f.h) // the last rows want the samples below them
}

// progressiveScan adds what a scan says to the coefficients (annex G).
func (f *jpegFile) progressiveScan(r *bitReader, s *scanHead) error {
	reset := func() {
		f.eobRun = 0
		for _, p := range s.parts {
			p.dc = 0
		}
	}
	reset()
	for y := range s.mcusY {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		for x := range s.mcusX {
			if mcu := y*s.mcusX + x; f.restart > 0 && mcu > 0 && mcu%f.restart == 0 {
				if err := r.restart(mcu/f.restart - 1); err != nil {
					return err
				}
				reset()
			}
			for _, p := range s.parts {
				h, v := s.shape(p)
				for j := range v {
					for i := range h {
						if !f.refine(r, s, p, &p.coefs[(y*v+j)*p.blocks+x*h+i]) {
							if r.overrun() {
								return ErrShort
							}
							return damaged("a code in MCU row %d does not exist", y)
						}
					}
				}
			}
		}
		if r.overrun() {
			return ErrShort
		}
	}
	return nil
}

// refine reads what a scan has for one block.
func (f *jpegFile) refine(r *bitReader, s *scanHead, p *jpegPart, b *block) bool {
	switch {
	case s.from == 0 && s.high == 0:
		if r.n < 32 {
			r.refill()
		}
		size := f.dc[p.dcTable].next(r)
		if uint(size) > maxSize {
			return false
		}
		if size > 0 {
			p.dc += extend(r.take(size), size)
		}
		b[0] = int16(p.dc << s.low)
	case s.from == 0:
		b[0] |= int16(r.take(1) << s.low)
	case s.high == 0:
		return f.acFirst(r, s, f.ac[p.acTable], b)
	default:
		return f.acRefine(r, s, f.ac[p.acTable], b)
	}
	return true
}

func (f *jpegFile) acFirst(r *bitReader, s *scanHead, ac *huffman, b *block) bool {
	if f.eobRun > 0 {
		f.eobRun--
		return true
	}
	for k := s.from; k <= s.to; k++ {
		if r.n < 32 {
			r.refill()
		}
		symbol := ac.next(r)
		if symbol < 0 {
			return false
		}
		run, size := symbol>>4, symbol&15
		if size == 0 {
			if run < 15 {
				f.eobRun = 1<<run + r.take(run) - 1
				return true
			}
			k += 15
			continue
		}
		k += run
		b[natural[k]] = int16(extend(r.take(size), size) << s.low)
	}
	return true
}

func (f *jpegFile) acRefine(r *bitReader, s *scanHead, ac *huffman, b *block) bool {
	plus := int16(1) << s.low
	// correct reads one more bit of a coefficient that has some.
	correct := func(c *int16) {
		if r.take(1) == 1 && *c&plus == 0 {
			if *c >= 0 {
				*c += plus
			} else {
				*c -= plus
			}
		}
	}
	k := s.from
	for f.eobRun == 0 && k <= s.to {
		if r.n < 32 {
			r.refill()
		}
		symbol := ac.next(r)
		if symbol < 0 {
			return false
		}
		run, fresh := symbol>>4, int16(0)
		switch size := symbol & 15; {
		case size > 1:
			return false
		case size == 1:
			if fresh = -plus; r.take(1) == 1 {
				fresh = plus
			}
		case run < 15:
			f.eobRun = 1<<run + r.take(run)
		}
		if f.eobRun > 0 {
			break
		}
		for ; k <= s.to; k++ {
			if c := &b[natural[k]]; *c != 0 {
				correct(c)
			} else if run == 0 {
				*c = fresh
				k++
				break
			} else {
				run--
			}
		}
	}
	if f.eobRun > 0 {
		for ; k <= s.to; k++ {
			if c := &b[natural[k]]; *c != 0 {
				correct(c)
			}
		}
		f.eobRun--
	}
	return true
}
