package draft

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomText draws tokens from a small vocabulary and now and then copies an earlier
// part, so that there is something to find.
func randomText(rng *rand.Rand, n, vocab int) []int32 {
	var text []int32
	for len(text) < n {
		if at := rng.IntN(len(text) + 1); rng.IntN(8) == 0 && at > 0 {
			from := rng.IntN(at)
			text = append(text, text[from:at]...)
		} else {
			text = append(text, rng.Int32N(int32(vocab)))
		}
	}
	return text[:n]
}

// TestLookupFindsWhatIsThere holds what a guess rests on: the tokens before its place
// are the last of the text, so many as it says, and where the last two tokens stood
// together before there is a guess.
func TestLookupFindsWhatIsThere(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, vocab := range []int{2, 5, 40, 1 << 18} {
		text := randomText(rng, 400, vocab)
		l := NewLookup(0)
		for n := range text {
			l.Follow(text[:n+1])
			now := text[:n+1]
			if l.at == 0 {
				if n >= 1 && slices.Contains(pairs(now[:n]), [2]int32{now[n-1], now[n]}) {
					t.Fatalf("seed %d, vocabulary %d, after %d tokens: the last pair is known, and nothing is guessed", seed, vocab, n+1)
				}
				continue
			}
			if l.at > n || l.match < gram || l.match > l.at || !slices.Equal(now[l.at-l.match:l.at], now[n+1-l.match:]) {
				t.Fatalf("seed %d, vocabulary %d, after %d tokens: guess at %d with %d tokens before it that do not agree", seed, vocab, n+1, l.at, l.match)
			}
		}
	}
}

func pairs(text []int32) (out [][2]int32) {
	for i := 1; i < len(text); i++ {
		out = append(out, [2]int32{text[i-1], text[i]})
	}
	return out
}

func TestLookupTakesTheLongestAgreement(t *testing.T) {
	//                0  1  2  3  4  5  6  7  8  9 10 11
	text := []int32{7, 1, 2, 3, 9, 1, 2, 5, 8, 7, 1, 2}
	l := NewLookup(0)
	l.Follow(text)
	// "1 2" stands at 1 and at 5; before the first there is a 7 as well.
	if l.at != 3 || l.match != 3 {
		t.Errorf("guess at %d after %d tokens, want 3 after 3", l.at, l.match)
	}
	if got := ids(l.Guess(nil, text, 3)); !slices.Equal(got, []int32{3, 9, 1}) {
		t.Errorf("guesses %v, want 3 9 1", got)
	}
}

func TestLookupGoesOnInALoop(t *testing.T) {
	for period := 1; period < 5; period++ {
		var text []int32
		for i := range 3 * period {
			text = append(text, int32(i%period))
		}
		text = append(text, 0, int32(1%period))
		l := NewLookup(0)
		l.Follow(text)
		got := l.Guess(nil, text, 20)
		for i, g := range got {
			if want := int32((len(text) + i) % period); g.ID != want {
				t.Fatalf("period %d: guesses %v, want token %d to be %d", period, ids(got), i, want)
			}
		}
		if len(got) != 20 {
			t.Errorf("period %d: %d guesses, want 20", period, len(got))
		}
	}
}

func ids(guesses []Guess) (out []int32) {
	for _, g := range guesses {
		out = append(out, g.ID)
	}
	return out
}

// TestLookupPiecesAndGrowth: how a text is cut, and how large the index was to begin
// with, change nothing.
func TestLookupPiecesAndGrowth(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	text := randomText(rng, 3000, 30)
	whole := NewLookup(len(text))
	for at := 0; at < len(text); {
		at = min(at+1+rng.IntN(40), len(text))
		whole.Follow(text[:at])
		one := NewLookup(1)
		one.Follow(text[:at])
		a, b := whole.Guess(nil, text[:at], 8), one.Guess(nil, text[:at], 8)
		if !slices.Equal(a, b) {
			t.Fatalf("seed %d, %d tokens: %v in pieces, %v at once in a small index", seed, at, a, b)
		}
	}
}

// TestLookupLearns: the odds of guesses are those of the text.
func TestLookupLearns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	last := func(text []int32) float64 {
		for n := len(text); n > 0; n-- {
			l := NewLookup(n)
			l.Follow(text[:n])
			if g := l.Guess(nil, text[:n], 1); len(g) > 0 {
				return g[0].Odds
			}
		}
		t.Fatal("nothing is ever guessed")
		return 0
	}
	var noise, song []int32
	for range 4000 {
		noise = append(noise, rng.Int32N(20))
	}
	verse := randomText(rng, 50, 1000)
	for range 20 {
		song = append(song, verse...)
	}
	if got := last(noise); got > 0.12 { // one in twenty comes
		t.Errorf("odds of %.2f in noise", got)
	}
	if got := last(song); got < 0.95 {
		t.Errorf("odds of %.2f in a text that repeats itself", got)
	}
}

// TestLookupAllocatesNothing up to the length that it was made for.
func TestLookupAllocatesNothing(t *testing.T) {
	text := randomText(rand.New(rand.NewPCG(5, 6)), 5000, 50)
	l := NewLookup(len(text))
	guesses := make([]Guess, 0, 16)
	n := 0
	if got := testing.AllocsPerRun(4000, func() {
		n++
		l.Follow(text[:n])
		guesses = l.Guess(guesses[:0], text[:n], 16)
	}); got != 0 {
		t.Errorf("%v allocations per token", got)
	}
}

// BenchmarkLookup is what a token costs that nobody guesses.
func BenchmarkLookup(b *testing.B) {
	for _, vocab := range []int{50, 50000} {
		b.Run(fmt.Sprint("vocabulary ", vocab), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(7, 8))
			text := randomText(rng, 1<<16, vocab)
			l, guesses, n := NewLookup(len(text)), make([]Guess, 0, 16), 0
			for b.Loop() {
				if n++; n == len(text) {
					l, n = NewLookup(len(text)), 1
				}
				l.Follow(text[:n])
				guesses = l.Guess(guesses[:0], text[:n], 16)
			}
		})
	}
}
