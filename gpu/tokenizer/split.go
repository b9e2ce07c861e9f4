package tokenizer

import "strings"

// stage is one regular expression of a pre-tokenizer as a state machine.
type stage interface {
	// match tries the expression at s[i:] only. On success end is the end of
	// the match, which is not empty. Otherwise end > i is the next place where
	// a match could begin: looking there again, and not at i+1, is what keeps
	// long runs from costing the square of their length.
	match(t *classTable, s string, i int) (end int, ok bool)
}

// split cuts s by the stages one after the other and hands over the pieces in
// order. Each stage cuts the pieces of the stage before it: every match is a
// piece, and so is the text between two matches. Look-ahead sees no further
// than the piece that a stage is given.
func split(stages []stage, t *classTable, s string, emit func(piece string)) {
	if len(stages) == 0 {
		emit(s)
		return
	}
	rest := stages[1:]
	gap := 0
	for i := 0; i < len(s); {
		end, ok := stages[0].match(t, s, i)
		if ok {
			if gap < i {
				split(rest, t, s[gap:i], emit)
			}
			split(rest, t, s[i:end], emit)
			gap = end
		}
		i = end
	}
	if gap < len(s) {
		split(rest, t, s[gap:], emit)
	}
}

// contraction returns the end of 's 't 'm 'd 're 've 'll at s[i:], or i. The
// expressions spell out both cases of ASCII where they fold case.
func contraction(s string, i int, fold bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	lower := func(c byte) byte {
		if fold && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch a := lower(s[i+1]); a {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 >= len(s) {
			return i
		}
		if b := lower(s[i+2]); a == 'l' && b == 'l' || a != 'l' && b == 'e' {
			return i + 3
		}
	}
	return i
}

// blanks matches \s+(?!\S)|\s+ at s[i:], where white space begins: a run of
// white space without its last character, unless the text ends with the run or
// the run is one character.
func blanks(t *classTable, s string, i int) int {
	end, last := i, i
	for {
		c, n := t.at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
	}
	if end < len(s) && last > i {
		return last
	}
	return end
}

// breaks matches \s*[\r\n]+ at s[i:]: a run of white space up to and with its
// last line break. It returns i when there is none.
func breaks(t *classTable, s string, i int) int {
	end := i
	for at := i; ; {
		c, n := t.at(s, at)
		if c&space == 0 {
			return end
		}
		at += n
		if c&newline != 0 {
			end = at
		}
	}
}

// gpt2Words is the expression of GPT-2:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type gpt2Words struct{}

func (gpt2Words) match(t *classTable, s string, i int) (int, bool) {
	if e := contraction(s, i, false); e > i {
		return e, true
	}
	c, n := t.at(s, i)
	j := i
	if s[i] == ' ' {
		if next, _ := t.at(s, i+1); next != 0 {
			c, n, j = next, 0, i+1
		}
	}
	switch {
	case c&letter != 0:
		return t.skip(s, j+n, letter), true
	case c&number != 0:
		return t.skip(s, j+n, number), true
	case c&space == 0:
		return t.skipOther(s, j+n, space|letter|number), true
	}
	return blanks(t, s, i), true
}

// words is the family of expressions that began with GPT-4's cl100k:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type words struct {
	contractions bool
	letters      class  // the class of \p{L}+
	digits       int    // the most digits in a piece; 0 means any number
	tail         string // what may follow punctuation, any number of times
}

func (w words) match(t *classTable, s string, i int) (int, bool) {
	if w.contractions {
		if e := contraction(s, i, true); e > i {
			return e, true
		}
	}
	c, n := t.at(s, i)
	switch {
	case c&w.letters != 0:
		return t.skip(s, i+n, w.letters), true
	case c&number != 0:
		return digitRun(t, s, i, w.digits), true
	}
	next, _ := t.at(s, i+n)
	if c&newline == 0 && next&w.letters != 0 {
		return t.skip(s, i+n, w.letters), true
	}
	if e := punctuation(t, s, i, space|w.letters|number, w.tail); e > i {
		return e, true
	}
	if e := breaks(t, s, i); e > i {
		return e, true
	}
	return blanks(t, s, i), true
}

// digitRun returns the end of \p{N}{1,limit} at s[i:], or of \p{N}+ for 0.
func digitRun(t *classTable, s string, i, limit int) int {
	for k := 0; limit == 0 || k < limit; k++ {
		c, n := t.at(s, i)
		if c&number == 0 {
			break
		}
		i += n
	}
	return i
}

// punctuation matches " ?[^unwanted]+[tail]*" at s[i:] and returns i when it
// does not.
func punctuation(t *classTable, s string, i int, unwanted class, tail string) int {
	j := i
	if s[i] == ' ' {
		j++
	}
	e := t.skipOther(s, j, unwanted)
	if e == j {
		return i
	}
	for e < len(s) && strings.IndexByte(tail, s[e]) >= 0 {
		e++
	}
	return e
}

// caseWords is the family of GPT-4o's o200k, whose words end where an upper
// case letter follows a lower case one. With U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
// and W for [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
//
//	[^\r\n\p{L}\p{N}]?U*W+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	[^\r\n\p{L}\p{N}]?U+W*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
type caseWords struct {
	contractions bool
	digits       int
}

func (w caseWords) match(t *classTable, s string, i int) (int, bool) {
	c, n := t.at(s, i)
	start := i
	if c&(letter|mark|number|newline) == 0 {
		// A mark could be the leading character too, but the outcome is that of
		// the mark as part of the word.
		start += n
	}
	if e := caseWord(t, s, start); e > start {
		if w.contractions {
			e = contraction(s, e, true)
		}
		return e, true
	}
	if c&number != 0 {
		return digitRun(t, s, i, w.digits), true
	}
	if e := punctuation(t, s, i, space|letter|number, "\r\n/"); e > i {
		return e, true
	}
	if e := breaks(t, s, i); e > i {
		return e, true
	}
	return blanks(t, s, i), true
}

// caseWord matches U*W+|U+W* at s[i:] and returns i when it does not.
func caseWord(t *classTable, s string, i int) int {
	// U* takes all it can. If no W follows, the expression goes back to the
	// last character of the run that is also a W; if there is none, the run is
	// upper case only and the second alternative takes it.
	e, lastBoth := i, -1
	for {
		c, n := t.at(s, e)
		if c&upperish == 0 {
			if c&lowerish != 0 {
				return t.skip(s, e, lowerish)
			}
			break
		}
		e += n
		if c&lowerish != 0 {
			lastBoth = e
		}
	}
	if lastBoth >= 0 {
		return lastBoth
	}
	return e
}
