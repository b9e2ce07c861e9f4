package tokenizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wpm is WordPiece as BERT uses it: text is cleaned and cut into words, each
// word into the longest tokens from left to right; a word that cannot be cut so
// is one unknown token. Tokens that begin a word carry the space mark.
type wpm struct {
	tokens       *trie
	classes      *classTable
	unknown      TokenID
	lowercase    bool
	stripAccents bool
	maxLen       int
}

func newWPM(v *vocab, unknown TokenID, lowercase, stripAccents bool) *wpm {
	w := &wpm{tokens: newTrie(), classes: classes(), unknown: unknown, lowercase: lowercase, stripAccents: stripAccents, maxLen: v.maxLen}
	for i, s := range v.texts {
		if s != "" {
			w.tokens.insert(s, int32(i))
		}
	}
	return w
}

// encode implements encoder.
func (w *wpm) encode(dst []TokenID, text string, _ bool) []TokenID {
	word := append(make([]byte, 0, 64), spaceMark...)
	flush := func() {
		if len(word) > len(spaceMark) {
			dst = w.appendWord(dst, string(word))
			word = word[:len(spaceMark)]
		}
	}
	for _, r := range text {
		if w.stripAccents {
			r = baseRune(r)
		}
		c := w.classes.of(r)
		switch {
		case c&space != 0:
			flush()
		case r == 0, r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
		case w.stripAccents && c&mark != 0:
		default:
			if w.lowercase {
				r = unicode.ToLower(r)
			}
			alone := c&punct != 0 || r < 0x7F && c&symbolic != 0 || isIdeograph(r)
			if alone {
				flush()
			}
			word = utf8.AppendRune(word, r)
			if alone {
				flush()
			}
		}
	}
	flush()
	return dst
}

// appendWord appends the tokens of one word, or the unknown token.
func (w *wpm) appendWord(dst []TokenID, word string) []TokenID {
	first := len(dst)
	for len(word) > 0 {
		id, n := w.tokens.longest(word, w.maxLen)
		if n == 0 {
			dst = dst[:first]
			break
		}
		dst = append(dst, id)
		word = word[n:]
	}
	if len(dst) == first && w.unknown != none {
		dst = append(dst, w.unknown)
	}
	return dst
}

// baseRune returns the first character of the canonical decomposition of r.
func baseRune(r rune) rune {
	if r < 0xC0 || !utf8.ValidRune(r) {
		return r
	}
	var buf [64]byte
	d := norm.NFD.Append(buf[:0], []byte(string(r))...)
	base, _ := utf8.DecodeRune(d)
	return base
}

// isIdeograph tells the CJK ideographs, which BERT makes words of their own.
// The fifth range of the original begins at U+2B820; the tokenizers library,
// which the vocabularies were made with, has U+2B920.
func isIdeograph(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, r >= 0x4E00 && r <= 0x9FFF, r >= 0xF900 && r <= 0xFAFF:
		return true
	case r >= 0x20000 && r <= 0x2A6DF, r >= 0x2A700 && r <= 0x2B81F, r >= 0x2B920 && r <= 0x2CEAF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}
