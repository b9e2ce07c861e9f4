package host

import (
	"encoding/binary"
	"slices"
)

// Bits of a span: kinds of characters, and above them how many there are. ABI.md has them.
const (
	spanHigh  = 1 << 22 // well-formed characters above 0x7F, the last one whole or not
	spanOdd   = 1 << 23 // bytes that are no characters, or more than are counted
	spanShift = 24
	spanMost  = 254     // characters that are counted
	spanOther = 1 << 21 // control characters
)

// spanKinds are the characters of the first bits.
var spanKinds = [21]string{
	"abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "\n", "\t\r", `"`, `\`, "'",
	",", ".", "-", "_", ":;!?", "()", "[]", "{}", "/@#&=+$%*^|~`", "<>",
}

// spanBits are the bits by ASCII character.
var spanBits = func() (bits [0x80]uint32) {
	for c := range bits {
		bits[c] = spanOther
	}
	for k, kind := range spanKinds {
		for _, c := range []byte(kind) {
			bits[c] = 1 << k
		}
	}
	return bits
}()

// utf8State is where in a character a text is: how many bytes are to come, and what the next
// one may be.
type utf8State struct{ more, low, high byte }

// next takes a byte. It returns its bits, and 1 where a character begins.
func (s *utf8State) next(b byte) (bits uint32, begins int) {
	switch {
	case s.more > 0:
		if b < s.low || b > s.high {
			*s = utf8State{}
			return spanOdd, 0
		}
		*s = utf8State{s.more - 1, 0x80, 0xBF}
		return spanHigh, 0
	case b < 0x80:
		return spanBits[b], 1
	case b < 0xC2 || b > 0xF4:
		return spanOdd, 1
	}
	*s = utf8State{1, 0x80, 0xBF}
	if b >= 0xE0 {
		s.more = 2
	}
	if b >= 0xF0 {
		s.more = 3
	}
	switch b {
	case 0xE0:
		s.low = 0xA0
	case 0xED:
		s.high = 0x9F
	case 0xF0:
		s.low = 0x90
	case 0xF4:
		s.high = 0x8F
	}
	return spanHigh, 1
}

// span puts bits and a number of characters together.
func span(bits uint32, characters int) uint32 {
	if bits&spanOdd != 0 || characters > spanMost {
		return bits | spanOdd
	}
	return bits | uint32(characters)<<spanShift
}

// spanNode is a node of the path to where a trie is read.
type spanNode struct {
	at, end int
	state   utf8State // behind its byte
	path    uint32    // bits of the path to it and its own
	length  int       // characters that begin on that path
	begins  int       // whether one does with its byte
	below   uint32    // bits of its byte and of what is below it
	most    int       // characters of the longest token below it
}

// vocabSpans is a trie with the spans of its subtrees and of the tokens: u32 n, u32 m, n nodes
// of three words (the two of the trie and the span of the subtree from the node on), m spans
// by token.
func vocabSpans(v Vocabulary) []byte {
	trie := vocabTrie(v)
	n, m := int(binary.LittleEndian.Uint32(trie)), v.Size()
	word := func(k int) uint32 { return binary.LittleEndian.Uint32(trie[4+4*k:]) }
	nodes := make([]uint32, n)
	tokens := slices.Repeat([]uint32{spanOdd}, m)
	path := []spanNode{{end: n}}
	leave := func() {
		last, above := &path[len(path)-1], &path[len(path)-2]
		most := last.most + last.begins
		if nodes[last.at] = span(last.below, most); above.state.more > 0 { // it is in the middle of a character
			nodes[last.at] = spanOdd
		}
		above.below |= last.below
		above.most = max(above.most, most)
		path = path[:len(path)-1]
	}
	for at := range n {
		for at >= path[len(path)-1].end {
			leave()
		}
		above := &path[len(path)-1]
		link := word(2*at + 1)
		next := spanNode{at: at, end: int(link >> 8), state: above.state}
		next.below, next.begins = next.state.next(byte(link))
		next.path, next.length = above.path|next.below, above.length+next.begins
		if token := word(2 * at); token != noTokenInPre {
			tokens[token] = span(next.path, next.length)
		}
		path = append(path, next)
	}
	for len(path) > 1 {
		leave()
	}
	out := make([]byte, 0, 8+12*n+4*m)
	out = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out, uint32(n)), uint32(m))
	for at, s := range nodes {
		out = append(out, trie[4+8*at:12+8*at]...)
		out = binary.LittleEndian.AppendUint32(out, s)
	}
	for _, s := range tokens {
		out = binary.LittleEndian.AppendUint32(out, s)
	}
	return out
}
