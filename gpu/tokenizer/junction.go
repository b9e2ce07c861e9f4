package tokenizer

import "unicode/utf8"

// maxSegment bounds one run of merges so that offsets fit 32 bits.
const maxSegment = 1 << 28

// junctions knows which characters can stand next to each other inside a token.
// Where two neighbours in a text cannot, no merge ever crosses between them, so
// the text falls into segments that can be merged one after the other: the
// result is the same and the queues are short (a word instead of a prompt).
//
// Characters are told apart by one byte only: ASCII by itself, the space mark
// by a code of its own, all others by a hash. A collision merely leaves two
// segments joined.
type junctions struct {
	set [256 * 256 / 64]uint64
}

const spaceCode = 0xFF

// charCode returns the code of the character at the start of s and its size.
func charCode[T string | []byte](s T) (code byte, size int) {
	c := s[0]
	if c < utf8.RuneSelf {
		return c, 1
	}
	switch {
	case c < 0xC0 || c >= 0xF8:
		size = 1
	case c < 0xE0:
		size = 2
	case c < 0xF0:
		size = 3
	default:
		size = 4
	}
	if size > len(s) {
		size = 1
	}
	for i := 1; i < size; i++ {
		if s[i]&0xC0 != 0x80 {
			size = 1
		}
	}
	if size == len(spaceMark) && c == spaceMark[0] && s[1] == spaceMark[1] && s[2] == spaceMark[2] {
		return spaceCode, size
	}
	h := uint(c)
	for i := 1; i < size; i++ {
		h = h*31 + uint(s[i])
	}
	return byte(0x80 + h%(spaceCode-0x80)), size
}

func (j *junctions) allow(a, b byte) {
	k := uint(a)<<8 | uint(b)
	j.set[k>>6] |= 1 << (k & 63)
}

func (j *junctions) allowed(a, b byte) bool {
	k := uint(a)<<8 | uint(b)
	return j.set[k>>6]>>(k&63)&1 != 0
}

// addText allows every pair of neighbours inside a token.
func (j *junctions) addText(s string) {
	if s == "" {
		return
	}
	if !utf8.ValidString(s) {
		// A piece of a character may join anything.
		for i := range j.set {
			j.set[i] = ^uint64(0)
		}
		return
	}
	prev, i := charCode(s)
	for i < len(s) {
		code, n := charCode(s[i:])
		j.allow(prev, code)
		prev = code
		i += n
	}
}

// firstSegment returns the length of the first segment of s, which is not empty.
func firstSegment[T string | []byte](j *junctions, s T) int {
	prev, i := charCode(s)
	for i < len(s) && i < maxSegment {
		code, n := charCode(s[i:])
		if !j.allowed(prev, code) {
			break
		}
		prev = code
		i += n
	}
	return i
}
