package host

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// wordVocab is a vocabulary of texts.
type wordVocab struct {
	letterVocab
	words []string
}

func (v wordVocab) Size() int             { return len(v.words) }
func (v wordVocab) Bytes(id int32) []byte { return []byte(v.words[id]) }

// spanByHand is the span of what stands behind a beginning in texts, found character by
// character.
func spanByHand(begin int, texts []string) (span uint32) {
	most := 0
	for _, s := range texts {
		n := 0
		for b := s[begin:]; b != ""; n++ {
			r, size := utf8.DecodeRuneInString(b)
			bit := slices.IndexFunc(spanKinds[:], func(k string) bool { return strings.ContainsRune(k, r) })
			switch {
			case r == utf8.RuneError && size == 1 && utf8.FullRuneInString(b):
				return spanOdd
			case r == utf8.RuneError && size == 1:
				size = len(b)
				bit = 22
			case r >= 0x80:
				bit = 22
			case bit < 0:
				bit = 21
			}
			span |= 1 << bit
			b = b[size:]
		}
		most = max(most, n)
	}
	if most > spanMost {
		return spanOdd
	}
	return span | uint32(most)<<spanShift
}

// TestSpans: the spans of tokens and subtrees are what their characters say.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "z", "B", "Z", "0", " ", "\n", "\t", "\"", "\\", "x!", "€", "é", "😀", "\xe5", "\xe5\xad", "\x80", "\xc0", "\xed\xa0", "\x01", "\x7f", "\xf4\x90", "\xf4", "q"}
	v := wordVocab{words: []string{"", "same", "same", strings.Repeat("a", spanMost), strings.Repeat("b", spanMost+1), strings.Repeat("é", 200)}}
	for range 3000 {
		s := ""
		for range 1 + r.IntN(6) {
			s += parts[r.IntN(len(parts))]
		}
		v.words = append(v.words, s)
	}
	b := vocabSpans(v)
	word := func(k int) uint32 { return binary.LittleEndian.Uint32(b[4*k:]) }
	n, m := int(word(0)), int(word(1))
	if m != len(v.words) || len(b) != 8+12*n+4*m {
		t.Fatalf("%d nodes, %d tokens, %d bytes", n, m, len(b))
	}
	for id, s := range v.words {
		want := uint32(spanOdd)
		if s != "" {
			want = spanByHand(0, []string{s})
		}
		if got := word(2 + 3*n + id); got != want && !(got&spanOdd != 0 && want&spanOdd != 0) {
			t.Errorf("token %q: %#x, want %#x", s, got, want)
		}
	}
	trie := vocabTrie(v)
	inside, odd := 0, 0
	var path []byte
	var ends []int
	for at := range n {
		if !slices.Equal(b[8+12*at:16+12*at], trie[4+8*at:12+8*at]) {
			t.Fatalf("node %d is another than in the trie", at)
		}
		for len(ends) > 0 && ends[len(ends)-1] <= at {
			path, ends = path[:len(path)-1], ends[:len(ends)-1]
		}
		begin, end := len(path), int(word(3+3*at)>>8)
		path, ends = append(path, byte(word(3+3*at))), append(ends, end)
		var below []string
		for k := at; k < end; k++ {
			if id := word(2 + 3*k); id != noTokenInPre {
				below = append(below, v.words[id])
			}
		}
		if spanByHand(0, []string{string(path[:begin])}) == spanOdd {
			continue // nothing goes on behind that
		}
		want := spanByHand(begin, below)
		if s := string(path[:begin]); len(s) > 0 && !wholeCharacters(s) {
			want = spanOdd
			inside++
		}
		got := word(4 + 3*at)
		if got&spanOdd != 0 {
			odd++
		}
		if got != want && !(got&spanOdd != 0 && want&spanOdd != 0) {
			t.Errorf("subtree of %q: %#x, want %#x", path, got, want)
		}
	}
	if inside == 0 || odd == 0 || odd == n {
		t.Errorf("%d subtrees begin inside of a character and %d of %d are odd: the test sees nothing", inside, odd, n)
	}
}

// wholeCharacters tells whether no character of a text lacks bytes at its end.
func wholeCharacters(s string) bool {
	for s != "" {
		if !utf8.FullRuneInString(s) {
			return false
		}
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return true
}
