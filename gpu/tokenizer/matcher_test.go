package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// findPlainly is what matcher.find must return, in the plainest way: the text is
// searched for each token in turn, longest first, in what the tokens before have
// left.
func findPlainly(v *vocab, text string) []found {
	type span struct {
		start, end int
		id         TokenID // none for text
	}
	spans := []span{{0, len(text), none}}
	ids := make([]TokenID, len(v.texts))
	for i := range ids {
		ids[i] = TokenID(i)
	}
	slices.SortStableFunc(ids, func(a, b TokenID) int { return len(v.texts[b]) - len(v.texts[a]) })
	for _, id := range ids {
		var next []span
		for _, s := range spans {
			for s.id == none {
				at := strings.Index(text[s.start:s.end], v.texts[id])
				if at < 0 {
					break
				}
				start, end := s.start+at, s.start+at+len(v.texts[id])
				if v.attrs[id]&attrLStrip != 0 {
					for start > s.start && isBlank(text[start-1]) {
						start--
					}
				}
				if v.attrs[id]&attrRStrip != 0 {
					for end < s.end && isBlank(text[end]) {
						end++
					}
				}
				if start > s.start {
					next = append(next, span{s.start, start, none})
				}
				next = append(next, span{start, end, id})
				s.start = end
			}
			if s.id != none || s.start < s.end {
				next = append(next, s)
			}
		}
		spans = next
	}
	var out []found
	for _, s := range spans {
		if s.id != none {
			out = append(out, found(s))
		}
	}
	return out
}

// TestMatcher compares with the plain search on random tokens and texts over few
// letters, where tokens overlap in every way.
func TestMatcher(t *testing.T) {
	r := newRand(t)
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("ab "[r.IntN(3)])
		}
		return b.String()
	}
	for range 20_000 {
		seen := map[string]bool{}
		var texts []string
		for range 1 + r.IntN(6) {
			if w := word(1 + r.IntN(5)); !seen[w] {
				seen[w] = true
				texts = append(texts, w)
			}
		}
		v, err := newVocab(texts, slices.Repeat([]int64{int64(Control)}, len(texts)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.attrs {
			v.attrs[i] |= []attr{0, 0, 0, attrLStrip, attrRStrip}[r.IntN(5)]
		}
		text := word(r.IntN(30))
		got, want := newMatcher(v, nil, attrControl).find(text), findPlainly(v, text)
		if !slices.Equal(got, want) {
			t.Fatalf("tokens %q %v, text %q:\n got %v\nwant %v", texts, v.attrs, text, got, want)
		}
	}
}

// TestMatcherTimeIsIndependentOfTokens searches a text for 4 and for 40,000
// tokens.
func TestMatcherTimeIsIndependentOfTokens(t *testing.T) {
	tokens := func(n int) *matcher {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf("<|reserved_%d|>", i)
		}
		v, err := newVocab(texts, slices.Repeat([]int64{int64(Control)}, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		return newMatcher(v, nil, attrControl)
	}
	text := strings.Repeat("a < b and <|reserved_1|> or <|reserved> ", 20_000)
	few, many := tokens(4), tokens(40_000)
	if n := len(many.find(text)); n != 20_000 {
		t.Fatalf("found %d", n)
	}
	a, b := cpuTime(func() { few.find(text) }), cpuTime(func() { many.find(text) })
	if b > 20*a+50e6 {
		t.Errorf("%v for 4 tokens, %v for 40,000", a, b)
	}
}

// TestQueuesAgree runs the two queues side by side.
func TestQueuesAgree(t *testing.T) {
	r := newRand(t)
	for range 2_000 {
		var h pairHeap
		var q bucketQueue
		for range 200 {
			if r.IntN(3) > 0 {
				p, c := r.Uint32N(5), candidate{left: r.Int32N(50)}
				c.size = int32(p)*1000 + c.left // equal for equal keys
				h.push(p, c)
				q.push(p, c)
				continue
			}
			a, okA := h.pop()
			b, okB := q.pop()
			if a != b || okA != okB {
				t.Fatalf("heap %v %v, buckets %v %v", a, okA, b, okB)
			}
		}
		for {
			a, okA := h.pop()
			b, okB := q.pop()
			if a != b || okA != okB {
				t.Fatalf("heap %v %v, buckets %v %v", a, okA, b, okB)
			}
			if !okA {
				break
			}
		}
	}
}

// TestSegmentsDoNotChangeTokens compares SentencePiece and gemma 4 with and
// without cutting the text where no token can reach across.
func TestSegmentsDoNotChangeTokens(t *testing.T) {
	r := newRand(t)
	for _, name := range []string{"llama-spm", "baichuan", "gemma-4"} {
		cut, whole := open(t, name), open(t, name)
		all := new(junctions)
		for i := range all.set {
			all.set[i] = ^uint64(0)
		}
		switch e := whole.enc.(type) {
		case *spm:
			e.joins = all
		case *bpe:
			e.joins = all
		}
		for range 3_000 {
			s := randomText(r, 60)
			if got, want := cut.Encode(s, asPrompt), whole.Encode(s, asPrompt); !slices.Equal(got, want) {
				t.Fatalf("%s: %q:\n got %v\nwant %v", name, s, got, want)
			}
		}
	}
}
