package wasm

import "unicode/utf8"

// A reader takes numbers off a range of bytes. The first fault sticks: later reads give
// zero and do not move, so that callers may look at err once per item.
type reader struct {
	b   []byte // the whole file, so that positions are offsets in it
	pos int
	end int // reads stop here
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fault(ErrMalformed, place(r.pos), format, args...)
	}
	r.pos = r.end
}

func (r *reader) unsupported(feature string) {
	if r.err == nil {
		r.err = fault(ErrUnsupported, place(r.pos), "%s", feature)
	}
	r.pos = r.end
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail("unexpected end")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) skip(n int) {
	if n > r.left() {
		r.fail("unexpected end")
		return
	}
	r.pos += n
}

// u32 reads an unsigned LEB128 number of 32 bits: at most five bytes, and no bit set
// beyond the thirty-second.
func (r *reader) u32() uint32 {
	if r.pos < r.end {
		if c := r.b[r.pos]; c < 0x80 {
			r.pos++
			return uint32(c)
		}
	}
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		if r.pos >= r.end {
			r.fail("unexpected end")
			return 0
		}
		c := r.b[r.pos]
		if shift == 28 && c > 0x0f {
			r.fail("number has more than 32 bits")
			return 0
		}
		r.pos++
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	return v // not reached: the fifth byte ends or fails
}

// short moves past at most n numbers of one byte and returns how many there were.
func (r *reader) short(n int) int {
	rest := r.b[r.pos:r.end]
	n = min(n, len(rest))
	i := 0
	for i < n && rest[i] < 0x80 {
		i++
	}
	r.pos += i
	return i
}

// signed reads a signed LEB128 number of the given width (32, 33 or 64 bits): at most
// ⌈bits/7⌉ bytes, and the unused bits of the last one repeat the sign.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		if r.pos >= r.end {
			r.fail("unexpected end")
			return 0
		}
		c := r.b[r.pos]
		if used := bits - shift; used <= 7 {
			if c >= 0x80 {
				r.fail("number has more than %d bits", bits)
				return 0
			}
			// The bits of c from the sign bit up to bit 6 are all alike.
			if rest := int8(c<<1) >> used; rest != 0 && rest != -1 {
				r.fail("number has more than %d bits", bits)
				return 0
			}
		}
		r.pos++
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if shift += 7; shift < 64 {
				v = v << (64 - shift) >> (64 - shift)
			}
			return v
		}
	}
}

// count reads the length of a vector whose items take at least size bytes each, so that
// what is allocated for it stays in proportion to the file.
func (r *reader) count(what string, size, limit int) int {
	at := r.pos
	n := r.u32()
	if r.err != nil {
		return 0
	}
	if uint64(n)*uint64(size) > uint64(r.left()) {
		r.pos = at
		r.fail("%d %s do not fit into %d bytes", n, what, r.left())
		return 0
	}
	if int(n) > limit {
		r.err = fault(ErrLimit, place(at), "%d %s, at most %d", n, what, limit)
		r.pos = r.end
		return 0
	}
	return int(n)
}

// bytes reads a vector of bytes and returns a part of the file, not a copy.
func (r *reader) bytes() []byte {
	n := r.u32()
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(r.left()) {
		r.fail("unexpected end: %d bytes announced, %d left", n, r.left())
		return nil
	}
	r.pos += int(n)
	return r.b[r.pos-int(n) : r.pos : r.pos]
}

func (r *reader) name() string {
	b := r.bytes()
	if r.err == nil && !utf8.Valid(b) {
		r.fail("malformed UTF-8 encoding")
		return ""
	}
	return string(b)
}

// AppendUint appends v as an unsigned LEB128 number, in the shortest form.
func AppendUint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// AppendInt appends v as a signed LEB128 number, in the shortest form.
func AppendInt(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
