package tokenizer

import (
	"math"
	"unicode/utf8"
)

// spaceMark is U+2581, which SentencePiece writes for a space.
const spaceMark = "▁"

// spm is SentencePiece's BPE: neighbours whose joined text is a token merge,
// highest score first, then leftmost; what forms no token falls back to bytes.
type spm struct {
	v           *vocab
	bytes       [256]TokenID
	unknown     TokenID
	spacePrefix bool // a space is put before the text, and after special tokens
	joins       *junctions
}

func newSPM(v *vocab, unknown TokenID, spacePrefix bool) *spm {
	s := &spm{v: v, bytes: v.byteTokens(), unknown: unknown, spacePrefix: spacePrefix, joins: new(junctions)}
	for b, id := range s.bytes {
		if id == none {
			s.bytes[b] = v.token(string([]byte{byte(b)}))
		}
	}
	for _, t := range v.texts {
		s.joins.addText(t)
	}
	return s
}

func (s *spm) encode(dst []TokenID, text string, afterSpecial bool) []TokenID {
	m := mergers.Get().(*merger)
	defer m.release()
	m.buf = m.buf[:0]
	if s.spacePrefix && afterSpecial {
		m.buf = append(m.buf, spaceMark...)
	}
	m.buf = appendEscaped(m.buf, text)
	for rest := m.buf; len(rest) > 0; {
		n := firstSegment(s.joins, rest)
		m.word = rest[:n]
		dst = s.encodeSegment(dst, m)
		rest = rest[n:]
	}
	return dst
}

// encodeSegment appends the tokens of m.word.
func (s *spm) encodeSegment(dst []TokenID, m *merger) []TokenID {
	m.reset(len(m.word))
	for i := 0; i < len(m.word); {
		n := runeLen(m.word[i:])
		m.add(i, i+n, s.v.findBytes(m.word[i:i+n]))
		i += n
	}
	m.run(s)
	for i := int32(0); i != none; i = m.syms[i].next {
		y := &m.syms[i]
		if y.id != none {
			dst = append(dst, y.id)
			continue
		}
		for _, b := range m.word[y.start:y.end] {
			if id := s.bytes[b]; id != none {
				dst = append(dst, id)
			} else if s.unknown != none {
				dst = append(dst, s.unknown)
			}
		}
	}
	return dst
}

// pair implements pairer.
func (s *spm) pair(word []byte, left, right *symbol) (uint32, int32, bool) {
	if int(right.end-left.start) > s.v.maxLen {
		return 0, 0, false
	}
	id := s.v.findBytes(word[left.start:right.end])
	if id == none {
		return 0, 0, false
	}
	return ^orderedBits(s.v.score(id)), id, true
}

// orderedBits maps floats to integers of the same order; NaN comes lowest.
func orderedBits(f float32) uint32 {
	if f != f {
		return 0
	}
	if f == 0 {
		f = 0 // −0 and +0 are equal scores
	}
	b := math.Float32bits(f)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// appendEscaped appends text with every space written as the space mark.
func appendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c == ' ' {
			dst = append(dst, spaceMark...)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// runeLen returns the size of the character that s starts with; a byte that is
// not UTF-8 counts as a character of its own.
func runeLen[T string | []byte](s T) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
	return n
}
