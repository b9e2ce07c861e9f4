package picture

// bitReader reads entropy-coded data, where FF 00 is a byte FF and FF with anything
// else behind it a marker, which ends them. Behind the end come zeros.
type bitReader struct {
	data  []byte
	pos   int
	acc   uint64 // the next bits, from the highest down
	n     int    // how many of them are there
	extra int    // how many came behind the end
}

// refill brings 57 bits or more.
func (r *bitReader) refill() {
	if r.pos+8 <= len(r.data) {
		v := be.Uint64(r.data[r.pos:])
		const ones, highs = 0x0101010101010101, 0x8080808080808080
		if (^v-ones)&v&highs == 0 { // no byte is FF
			r.acc |= v >> r.n
			got := (63 - r.n) >> 3
			r.pos += got
			r.n += 8 * got
			return
		}
	}
	for r.n <= 56 {
		var v uint64
		switch {
		case r.pos >= len(r.data):
			r.extra += 8
		case r.data[r.pos] != 0xff:
			v = uint64(r.data[r.pos])
			r.pos++
		case r.pos+1 < len(r.data) && r.data[r.pos+1] == 0:
			v = 0xff
			r.pos += 2
		default:
			r.extra += 8
		}
		r.acc |= v << (56 - r.n)
		r.n += 8
	}
}

// overrun tells that more was read than there was.
func (r *bitReader) overrun() bool { return r.n < r.extra }

// take reads up to 16 bits.
func (r *bitReader) take(n int) int {
	if r.n < n {
		r.refill()
	}
	v := int(r.acc >> 1 >> (63 - n))
	r.acc <<= n
	r.n -= n
	return v
}

// restart skips to behind the restart marker i.
func (r *bitReader) restart(i int) error {
	at := r.end()
	if at+2 > len(r.data) {
		return ErrShort
	}
	if r.data[at+1] != 0xd0+byte(i&7) {
		return damaged("restart marker %d is missing at byte %d", i&7, at)
	}
	r.pos, r.acc, r.n, r.extra = at+2, 0, 0, 0
	return nil
}

// end is the place of the marker that ends the data. Bytes before it that no code
// used are left out.
func (r *bitReader) end() int {
	i := r.pos
	// Whole bytes that wait in acc have no marker among them, nor behind them up to pos.
	for i+1 < len(r.data) && (r.data[i] != 0xff || r.data[i+1] == 0 || r.data[i+1] == 0xff) {
		i++
	}
	return i
}

// lookBits of a code are looked up at once.
const lookBits = 9

// huffman decodes one table's codes.
type huffman struct {
	look   [1 << lookBits]uint16 // length of the code << 8 | symbol, 0 for longer codes
	whole  [1 << lookBits]int32  // value << 16 | run << 8 | length with the value's bits, 0 where more are needed
	most   [18]int64             // the largest code up to each length, as the first of 16 bits
	offset [17]int               // from code to index of symbol
	symbol [256]uint8
}

func (f *jpegFile) huffmanTables(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return damaged("a Huffman table is cut")
		}
		class, id, n := b[0]>>4, b[0]&15, 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		if class > 1 || id > 3 || n > 256 || len(b) < 17+n {
			return damaged("a Huffman table is wrong")
		}
		h, err := newHuffman(b[1:17], b[17:17+n], class == 1)
		if err != nil {
			return err
		}
		if class == 0 {
			f.dc[id] = h
		} else {
			f.ac[id] = h
		}
		b = b[17+n:]
	}
	return nil
}

func newHuffman(counts, symbols []byte, ac bool) (*huffman, error) {
	h := new(huffman)
	copy(h.symbol[:], symbols)
	code, k := 0, 0
	for length := 1; length <= 16; length++ {
		h.offset[length] = k - code
		for range counts[length-1] {
			if code >= 1<<length {
				return nil, damaged("a Huffman table has too many codes of %d bits", length)
			}
			if length <= lookBits {
				first := code << (lookBits - length)
				for i := range 1 << (lookBits - length) {
					h.look[first+i] = uint16(length)<<8 | uint16(symbols[k])
				}
			}
			code++
			k++
		}
		h.most[length] = int64(code)<<(16-length) - 1
		code <<= 1
	}
	h.most[17] = 1 << 17
	if ac {
		h.lookWhole()
	}
	return h, nil
}

// lookWhole prepares the entries whose code and value fit into lookBits.
func (h *huffman) lookWhole() {
	for i, e := range h.look {
		length, run, size := int(e>>8), int(e>>4&15), int(e&15)
		if length == 0 || size == 0 || length+size > lookBits {
			continue
		}
		v := i >> (lookBits - length - size) & (1<<size - 1)
		h.whole[i] = int32(extend(v, size))<<16 | int32(run)<<8 | int32(length+size)
	}
}

// extend gives size bits their sign (F.2.2.1).
func extend(v, size int) int {
	if v < 1<<size>>1 {
		return v - 1<<size + 1
	}
	return v
}

// next decodes a symbol; -1 for a code that does not exist. At least 16 bits must be
// there.
func (h *huffman) next(r *bitReader) int {
	if e := h.look[r.acc>>(64-lookBits)]; e != 0 {
		r.acc <<= e >> 8
		r.n -= int(e >> 8)
		return int(e & 255)
	}
	return h.long(r)
}

func (h *huffman) long(r *bitReader) int {
	top := int64(r.acc >> 48)
	length := lookBits + 1
	for top > h.most[length] {
		length++
	}
	if length > 16 {
		return -1
	}
	at := int(top>>(16-length)) + h.offset[length]
	if at < 0 || at > 255 {
		return -1
	}
	r.acc <<= length
	r.n -= length
	return int(h.symbol[at])
}

// maxSize is the length of the longest value: 11 bits from coders of 8-bit samples.
const maxSize = 15

// sequential decodes one block into b, multiplied with its quantisation table, and
// returns the natural index of its last coefficient; -1 for codes that do not exist. b
// is all zeros before.
func (r *bitReader) sequential(b *block, q *[64]uint16, dc, ac *huffman, before *int) int {
	if r.n < 32 {
		r.refill()
	}
	size := dc.next(r)
	if uint(size) > maxSize {
		return -1
	}
	if size > 0 {
		*before += extend(r.take(size), size)
	}
	b[0] = int16(*before * int(q[0]))
	last := 0
	acc, n := r.acc, r.n
	for k := 1; k < 64; k++ {
		if n < 32 {
			r.acc, r.n = acc, n
			r.refill()
			acc, n = r.acc, r.n
		}
		if e := ac.whole[acc>>(64-lookBits)]; e != 0 {
			k += int(e >> 8 & 15)
			length := int(e & 255)
			acc <<= length & 63
			n -= length
			at := natural[k]
			b[at&63] = int16(e >> 16 * int32(q[at&63]))
			last = max(last, int(at))
			continue
		}
		r.acc, r.n = acc, n
		symbol := ac.next(r)
		if symbol < 0 {
			return -1
		}
		run, size := symbol>>4, symbol&15
		if size == 0 {
			acc, n = r.acc, r.n
			if run != 15 {
				break
			}
			k += 15
			continue
		}
		k += run
		v := extend(r.take(size), size)
		acc, n = r.acc, r.n
		at := natural[k]
		b[at&63] = int16(v * int(q[at&63]))
		last = max(last, int(at))
	}
	r.acc, r.n = acc, n
	return last
}
