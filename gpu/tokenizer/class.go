package tokenizer

import (
	"cmp"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what the pre-tokenizer expressions ask of a character, as bits.
type class uint16

const (
	letter   class = 1 << iota // \p{L}
	number                     // \p{N}
	mark                       // \p{M}
	punct                      // \p{P}
	symbolic                   // \p{S}
	space                      // \s: the property White_Space
	upperish                   // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lowerish                   // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	newline                    // [\r\n]
	present                    // any character: class 0 is the end of the text
)

// classTable maps characters to classes in two stages: blocks of 256
// characters, equal blocks stored once.
type classTable struct {
	ascii  [utf8.RuneSelf]class
	block  [(unicode.MaxRune + 1) / 256]uint16
	blocks [][256]class
}

var classes = sync.OnceValue(buildClasses)

// unicode151 holds the characters that Unicode 15.1 added to the 15.0 of the
// standard library. The reference classifies by 15.1.
var unicode151 = []struct {
	lo, hi rune
	class  class
}{
	{0x2EBF0, 0x2EE5D, letter | upperish | lowerish}, // CJK Extension I
	{0x2FFC, 0x2FFF, symbolic},                       // ideographic description characters
	{0x31EF, 0x31EF, symbolic},
}

func buildClasses() *classTable {
	all := make([]class, unicode.MaxRune+1)
	for i := range all {
		all[i] = present
	}
	for _, c := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, letter | upperish}, {unicode.Lt, letter | upperish}, {unicode.Ll, letter | lowerish},
		{unicode.Lm, letter | upperish | lowerish}, {unicode.Lo, letter | upperish | lowerish},
		{unicode.M, mark | upperish | lowerish}, {unicode.N, number}, {unicode.P, punct},
		{unicode.S, symbolic}, {unicode.White_Space, space},
	} {
		for _, r := range c.table.R16 {
			for u := rune(r.Lo); u <= rune(r.Hi); u += rune(r.Stride) {
				all[u] |= c.class
			}
		}
		for _, r := range c.table.R32 {
			for u := rune(r.Lo); u <= rune(r.Hi); u += rune(r.Stride) {
				all[u] |= c.class
			}
		}
	}
	for _, r := range unicode151 {
		for u := r.lo; u <= r.hi; u++ {
			all[u] |= r.class
		}
	}
	all['\r'] |= newline
	all['\n'] |= newline
	return compactClasses(all)
}

func compactClasses(all []class) *classTable {
	t := new(classTable)
	copy(t.ascii[:], all)
	seen := map[[256]class]uint16{}
	for b := range t.block {
		block := [256]class(all[b*256:])
		i, ok := seen[block]
		if !ok {
			i = uint16(len(t.blocks))
			seen[block] = i
			t.blocks = append(t.blocks, block)
		}
		t.block[b] = i
	}
	return t
}

// of returns the class of r.
func (t *classTable) of(r rune) class {
	return t.blocks[t.block[r>>8]][r&0xFF]
}

// at returns the class and the size of the character at s[i:], class 0 and size
// 0 at the end. A byte that is not UTF-8 is a character of class symbolic, as
// U+FFFD would be.
func (t *classTable) at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.of(r), n
}

// skip returns the end of the run of characters from i on that have one of the
// wanted classes.
func (t *classTable) skip(s string, i int, wanted class) int {
	for {
		c, n := t.at(s, i)
		if c&wanted == 0 {
			return i
		}
		i += n
	}
}

// skipOther returns the end of the run of characters from i on that have none
// of the given classes.
func (t *classTable) skipOther(s string, i int, unwanted class) int {
	for {
		c, n := t.at(s, i)
		if c == 0 || c&unwanted != 0 {
			return i
		}
		i += n
	}
}

// runes is a set of characters written as in a regular expression's brackets,
// without escapes: "a-zα-ω".
type runes struct {
	ascii  [utf8.RuneSelf]bool
	ranges []runeRange // ascending, disjoint
}

type runeRange struct{ lo, hi rune }

func newRunes(expr string) *runes {
	rs := []rune(expr)
	x := new(runes)
	for i := 0; i < len(rs); i++ {
		r := runeRange{rs[i], rs[i]}
		if i+2 < len(rs) && rs[i+1] == '-' {
			r.hi = rs[i+2]
			i += 2
		}
		for c := r.lo; c <= r.hi && c < utf8.RuneSelf; c++ {
			x.ascii[c] = true
		}
		x.ranges = append(x.ranges, r)
	}
	slices.SortFunc(x.ranges, func(a, b runeRange) int { return cmp.Compare(a.lo, b.lo) })
	n := 0
	for _, r := range x.ranges[1:] {
		if last := &x.ranges[n]; r.lo <= last.hi+1 {
			last.hi = max(last.hi, r.hi)
		} else {
			n++
			x.ranges[n] = r
		}
	}
	x.ranges = x.ranges[:n+1]
	return x
}

// has tells whether the character at s[i:] is in the set, and its size.
func (x *runes) has(s string, i int) (bool, int) {
	if i >= len(s) {
		return false, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return x.ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	lo, hi := 0, len(x.ranges)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		switch {
		case r < x.ranges[mid].lo:
			hi = mid
		case r > x.ranges[mid].hi:
			lo = mid + 1
		default:
			return true, n
		}
	}
	return false, n
}
