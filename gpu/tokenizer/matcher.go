package tokenizer

import (
	"cmp"
	"slices"
)

// found is a special token in a text; the bytes [start, end) belong to it,
// white space that it takes along included.
type found struct {
	start, end int
	id         TokenID
}

// match is a place where a special token could be.
type match struct {
	start int
	id    TokenID
}

// matcher finds special tokens in text. Where they overlap the longer one wins,
// wherever it begins; among equals the lower id, then the one on the left. This
// is the outcome of searching the text for each token in turn, longest first,
// but one pass finds the candidates of all tokens.
type matcher struct {
	v     *vocab
	trie  *trie
	first [256]bool // bytes that some token begins with
	max   int       // bytes of the longest token; 0 when there are none
}

// newMatcher collects the tokens that have one of the wanted attributes;
// corrected overrides the attributes of some.
func newMatcher(v *vocab, corrected map[TokenID]attr, wanted attr) *matcher {
	m := &matcher{v: v, trie: newTrie()}
	for i, a := range v.attrs {
		if c, ok := corrected[TokenID(i)]; ok {
			a = c
		}
		if wanted&attrControl == 0 && a&(attrControl|attrUnknown) != 0 {
			continue
		}
		s := v.texts[i]
		if a&wanted == 0 || s == "" || !m.trie.insert(s, int32(i)) {
			continue
		}
		m.first[s[0]] = true
		m.max = max(m.max, len(s))
	}
	return m
}

// find returns the special tokens of text from left to right.
func (m *matcher) find(text string) []found {
	if m.max == 0 {
		return nil
	}
	byLen := m.candidates(text)
	if byLen == nil {
		return nil
	}
	taken := newBitset(len(text))
	var out []found
	for n := m.max; n > 0; n-- {
		list := byLen[n]
		byLen[n] = nil
		slices.SortFunc(list, func(a, b match) int {
			return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start))
		})
		for _, c := range list {
			// Whatever is taken already is at least as long as this match, so
			// if they overlap it covers an end of it.
			if taken.has(c.start) {
				continue
			}
			if taken.has(c.start + n - 1) {
				if id, size := m.trie.longest(text[c.start:], n-1); id != none {
					byLen[size] = append(byLen[size], match{c.start, id})
				}
				continue
			}
			f := m.extend(text, taken, found{c.start, c.start + n, c.id})
			taken.set(f.start, f.end)
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b found) int { return cmp.Compare(a.start, b.start) })
	return out
}

// candidates returns, by length, the longest token at each place of text, or
// nil when there is none.
func (m *matcher) candidates(text string) [][]match {
	var byLen [][]match
	for i := range len(text) {
		if !m.first[text[i]] {
			continue
		}
		if id, size := m.trie.longest(text[i:], m.max); id != none {
			if byLen == nil {
				byLen = make([][]match, m.max+1)
			}
			byLen[size] = append(byLen[size], match{i, id})
		}
	}
	return byLen
}

// extend adds to f the white space that its token takes along.
func (m *matcher) extend(text string, taken bitset, f found) found {
	a := m.v.attrs[f.id]
	if a&attrLStrip != 0 {
		for f.start > 0 && isBlank(text[f.start-1]) && !taken.has(f.start-1) {
			f.start--
		}
	}
	if a&attrRStrip != 0 {
		for f.end < len(text) && isBlank(text[f.end]) && !taken.has(f.end) {
			f.end++
		}
	}
	return f
}

// isBlank tells the white space of ASCII.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }

func (b bitset) set(from, to int) {
	for ; from < to; from++ {
		b[from>>6] |= 1 << (from & 63)
	}
}
