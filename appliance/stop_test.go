package appliance

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive finds stop strings by trying every one at every byte.
func naive(stops []string, text string) (visible string, matched bool, held int) {
	for end := 1; end <= len(text); end++ {
		longest := 0
		for _, s := range stops {
			if strings.HasSuffix(text[:end], s) {
				longest = max(longest, len(s))
			}
		}
		if longest > 0 {
			return text[:end-longest], true, 0
		}
	}
	for _, s := range stops {
		for n := 1; n < len(s) && n <= len(text); n++ {
			if strings.HasSuffix(text, s[:n]) {
				held = max(held, n)
			}
		}
	}
	return text, false, held
}

// match runs the automaton over text cut after cuts, and checks what it holds back
// at each cut.
func match(t interface{ Fatalf(string, ...any) }, stops []string, text string, cuts []int) {
	m := stopMatcher{set: newStopSet(stops)}
	read := 0
	for _, cut := range append(cuts, len(text)) {
		if cut < read {
			continue
		}
		end, n, ok := m.scan([]byte(text[read:cut]))
		if ok {
			want, _, _ := naive(stops, text)
			if got := text[:read+end-n]; got != want {
				t.Fatalf("stops %q in %q: visible %q, want %q", stops, text, got, want)
			}
			return
		}
		read = cut
		_, matched, held := naive(stops, text[:read])
		if matched {
			t.Fatalf("stops %q in %q: no match in the first %d bytes", stops, text, read)
		}
		if got := m.held(); got != held {
			t.Fatalf("stops %q after %q: %d bytes held, want %d", stops, text[:read], got, held)
		}
	}
}

func TestStopAgainstNaive(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(word, 0, 6).Draw(t, "stops")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 40, -1).Draw(t, "text")
		var cuts []int
		for i := range len(text) {
			if rapid.Bool().Draw(t, "cut") {
				cuts = append(cuts, i)
			}
		}
		match(t, stops, text, cuts)
	})
}

func TestStopChoosesTheFirstEnd(t *testing.T) {
	for _, c := range []struct {
		stops         []string
		text, visible string
	}{
		{[]string{"abcd", "bc"}, "xabcd", "xa"},  // "bc" ends first
		{[]string{"bc", "abc"}, "xabcd", "x"},    // both end here, the longer wins
		{[]string{"aab"}, "aaab", "a"},           // falls back to a shorter prefix
		{[]string{"abab", "ba"}, "aaba", "aa"},   // a suffix of a prefix matches
		{[]string{"\n\n"}, "a\n\n\n", "a"},       // the first of several
		{[]string{"é"}, "caf\u00e9!", "caf"},     // whole characters
		{[]string{"x", "x"}, "axb", "a"},         // the same twice
		{[]string{"long", "on"}, "along", "al"},  // inside a longer one
		{[]string{"zz"}, "no match", "no match"}, // none
	} {
		got, _, _ := naive(c.stops, c.text)
		if got != c.visible {
			t.Errorf("oracle: stops %q in %q: %q, want %q", c.stops, c.text, got, c.visible)
		}
		match(t, c.stops, c.text, nil)
	}
}

// TestStopIsLinear counts steps: a text made to fall back at every byte costs a
// bounded number of links per byte.
func TestStopIsLinear(t *testing.T) {
	stop := strings.Repeat("a", 32<<10) + "b"
	text := []byte(strings.Repeat(strings.Repeat("a", 40<<10)+"c", 8))
	m := stopMatcher{set: newStopSet([]string{stop})}
	fails := 0
	for _, b := range text {
		for at := m.state; at != 0 && m.set.child(at, b) == 0; at = m.set.nodes[at].fail {
			fails++
		}
		m.state = m.set.next(m.state, b)
	}
	if fails > 2*len(text) {
		t.Errorf("%d fail links for %d bytes", fails, len(text))
	}
}

func FuzzStop(f *testing.F) {
	f.Add("eight nine\x00ten", " six seven eight nine ten", "\x03\x08")
	f.Add("abab\x00ba", "aababab", "\x01\x02\x03")
	f.Add("é\x00\xff", "caf\u00e9", "\x04")
	f.Add("<START>", "log:\n<ST<START>", "\x05\x07")
	f.Fuzz(func(t *testing.T, stops, text, at string) {
		if len(text) > 200 || len(stops) > 200 {
			return // the oracle is cubic
		}
		var list []string
		for s := range strings.SplitSeq(stops, "\x00") {
			if s != "" {
				list = append(list, s)
			}
		}
		var cuts []int
		for _, b := range []byte(at) {
			if int(b) <= len(text) {
				cuts = append(cuts, int(b))
			}
		}
		match(t, list, text, cuts)
	})
}
