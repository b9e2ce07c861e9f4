package draft

import "math/bits"

const (
	gram      = 2  // tokens that must agree before anything is guessed
	maxMatch  = 32 // agreement is not counted further
	maxWalk   = 16 // earlier places looked at
	lookKinds = 6  // kinds of guesses: agreements of 2, 3, 4–7, 8–15, 16–31, 32 tokens
)

// lookPrior is how often a guess after so long an agreement comes in ordinary text.
var lookPrior = [lookKinds]float64{0.2, 0.35, 0.55, 0.75, 0.85, 0.9}

// Lookup guesses that a text goes on as it did after the same tokens before. It reads
// each token once, at a bounded cost, and allocates only while it grows.
type Lookup struct {
	// Places with the same last tokens are chained, newest first, as in LZ77: head holds
	// the newest place after each pair of tokens, prev the one before, 0 for none. A place
	// is the index of the token that follows.
	head map[[gram]int32]int32
	prev []int32 // [tokens read + 1]
	odds [lookKinds]odds

	at    int // where the guess stands in the text; 0: there is none
	match int // tokens that agree before it, at most maxMatch
}

// NewLookup makes an index that grows no more up to so many tokens.
func NewLookup(capacity int) *Lookup {
	return &Lookup{head: make(map[[gram]int32]int32, capacity), prev: make([]int32, 0, capacity+1)}
}

// Follow reads what is new of a text, of which the earlier calls gave a beginning.
// Each new token is compared with the guess that was made for it.
func (l *Lookup) Follow(text []int32) {
	for n := max(len(l.prev)-1, 0); n < len(text); n++ {
		if l.at > 0 {
			came := text[l.at] == text[n]
			l.odds[kind(l.match)].saw(came)
			if came {
				l.at, l.match = l.at+1, min(l.match+1, maxMatch)
			} else {
				l.at = 0
			}
		}
		l.index(text[:n+1])
		if l.at == 0 {
			l.search(text[:n+1])
		}
	}
}

// index enters the place after a text.
func (l *Lookup) index(text []int32) {
	for len(l.prev) < len(text) { // the first places have too few tokens before them
		l.prev = append(l.prev, 0)
	}
	at := int32(0)
	if len(text) >= gram {
		last := [gram]int32(text[len(text)-gram:])
		at, l.head[last] = l.head[last], int32(len(text))
	}
	l.prev = append(l.prev, at)
}

// search looks for the earlier place with the longest agreement, the newest of equals.
func (l *Lookup) search(text []int32) {
	l.at, l.match = 0, 0
	if len(text) < gram {
		return
	}
	place := int(l.prev[len(text)])
	for walk := 0; place > 0 && walk < maxWalk; walk++ {
		if n := agreement(text, place); n > l.match {
			l.at, l.match = place, n
		}
		place = int(l.prev[place])
	}
}

// agreement counts the tokens before a place that are also the last of the text.
func agreement(text []int32, place int) int {
	n := 0
	for n < maxMatch && n < place && text[place-1-n] == text[len(text)-1-n] {
		n++
	}
	return n
}

// kind sorts guesses by the agreement before them.
func kind(match int) int {
	switch {
	case match <= 3:
		return match - gram
	case match < maxMatch:
		return bits.Len(uint(match)) - 1
	}
	return lookKinds - 1
}

// Guess appends at most limit guesses of what follows the text that was read last. A
// guess may go on from guesses before it, so that a short loop is guessed for any
// length.
func (l *Lookup) Guess(dst []Guess, text []int32, limit int) []Guess {
	if l.at == 0 {
		return dst
	}
	from := len(dst)
	for i := range limit {
		id := int32(0)
		if at := l.at + i; at < len(text) {
			id = text[at]
		} else {
			id = dst[from+at-len(text)].ID
		}
		k := kind(min(l.match+i, maxMatch))
		dst = append(dst, Guess{id, l.odds[k].mean(lookPrior[k])})
	}
	return dst
}
