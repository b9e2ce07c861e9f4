package tokenizer

// run matches [class]{1,limit}, or [class]+ for limit 0.
type run struct {
	class class
	limit int
}

func (r run) match(t *classTable, s string, i int) (int, bool) {
	e := i
	for k := 0; r.limit == 0 || k < r.limit; k++ {
		c, n := t.at(s, e)
		if c&r.class == 0 {
			break
		}
		e += n
	}
	return hit(s, i, e)
}

// hit makes the result of a stage from the end of a match; end == i is none.
func hit(s string, i, end int) (int, bool) {
	if end > i {
		return end, true
	}
	return next(s, i), false
}

// next returns the place of the character after the one at s[i:].
func next(s string, i int) int {
	for i++; i < len(s) && s[i]&0xC0 == 0x80; i++ {
	}
	return i
}

// spacedRun matches \s?[class]+.
type spacedRun struct{ class class }

func (r spacedRun) match(t *classTable, s string, i int) (int, bool) {
	j := i
	if c, n := t.at(s, i); c&space != 0 {
		j += n
	}
	if e := t.skip(s, j, r.class); e > j {
		return e, true
	}
	return next(s, i), false
}

// setRun matches [set]+, or \s?[set]+ where spaced. White space is never part
// of the set itself, even where its ranges include some (U+3000 in DeepSeek's
// punctuation): so the reference has it.
type setRun struct {
	set    *runes
	spaced bool
}

func (r setRun) match(t *classTable, s string, i int) (int, bool) {
	j := i
	if r.spaced {
		if c, n := t.at(s, i); c&space != 0 {
			j += n
		}
	}
	e := j
	for {
		in, n := r.set.has(s, e)
		if !in {
			break
		}
		if c, _ := t.at(s, e); c&space != 0 {
			break
		}
		e += n
	}
	if e > j {
		return e, true
	}
	return next(s, i), false
}

// trailingBlanks matches \s+$.
type trailingBlanks struct{}

func (trailingBlanks) match(t *classTable, s string, i int) (int, bool) {
	e := t.skip(s, i, space)
	if e == i {
		return next(s, i), false
	}
	return e, e == len(s)
}

// lines matches [^\n]+|[\n]+.
type lines struct{}

func (lines) match(_ *classTable, s string, i int) (int, bool) {
	e := i + 1
	for e < len(s) && (s[e] == '\n') == (s[i] == '\n') {
		e++
	}
	return e, true
}

// threeDigits matches [0-9][0-9][0-9].
type threeDigits struct{}

func (threeDigits) match(_ *classTable, s string, i int) (int, bool) {
	if len(s)-i < 3 {
		return len(s), false
	}
	for k := 2; k >= 0; k-- {
		if c := s[i+k]; c < '0' || c > '9' {
			return i + k + 1, false
		}
	}
	return i + 3, true
}

// falconPunct matches the class of Falcon's first expression,
// [\p{P}\$\+<=>\^~\|`]+; the fall-back expression lacks the grave accent.
type falconPunct struct{ grave bool }

func (f falconPunct) match(t *classTable, s string, i int) (int, bool) {
	e := i
	for {
		c, n := t.at(s, e)
		if c&punct == 0 {
			if n != 1 || !isFalconSymbol(s[e], f.grave) {
				break
			}
		}
		e += n
	}
	return hit(s, i, e)
}

func isFalconSymbol(c byte, grave bool) bool {
	switch c {
	case '$', '+', '<', '=', '>', '^', '~', '|':
		return true
	case '`':
		return grave
	}
	return false
}

// scripts is the last expression of DeepSeek V3:
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
//	 ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type scripts struct {
	singleBreaks bool // [\r\n] for \s*[\r\n]+, and no [\r\n]* after punctuation
}

func (w scripts) match(t *classTable, s string, i int) (int, bool) {
	c, n := t.at(s, i)
	if n == 1 && c&(punct|symbolic) != 0 && s[i] < 0x80 {
		e := i + 1
		for e < len(s) && (s[e]|0x20) >= 'a' && (s[e]|0x20) <= 'z' {
			e++
		}
		if e > i+1 {
			return e, true
		}
	}
	if c&(letter|mark) != 0 {
		return t.skip(s, i+n, letter|mark), true
	}
	if c&(newline|punct|symbolic) == 0 {
		if e := t.skip(s, i+n, letter|mark); e > i+n {
			return e, true
		}
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if e := t.skip(s, j, punct|symbolic); e > j {
		if !w.singleBreaks {
			e = t.skip(s, e, newline)
		}
		return e, true
	}
	if c&space == 0 {
		return i + n, false
	}
	if w.singleBreaks {
		if c&newline != 0 {
			return i + 1, true
		}
	} else if e := breaks(t, s, i); e > i {
		return e, true
	}
	return blanks(t, s, i), true
}
