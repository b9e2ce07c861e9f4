package tokenizer

import (
	"fmt"
	"math"
	"slices"
)

// ugm is the unigram language model: of all ways to cut the text into tokens it
// takes the one with the largest sum of scores (log-probabilities), found by
// Viterbi's algorithm from left to right.
type ugm struct {
	v           *vocab
	tokens      *trie // tokens that text may be cut into
	users       *trie // user-defined tokens, which normalization leaves alone
	charsmap    *charsmap
	unknown     TokenID
	unknownCost float64 // score of a character that no token covers
	spacePrefix bool
	mergeSpaces bool
}

// unknownPenalty is how much worse than the worst token an unknown character
// scores (SentencePiece, unigram_model.cc).
const unknownPenalty = 10

func newUGM(v *vocab, f flags, unknown TokenID, charsmap *charsmap) (*ugm, error) {
	u := &ugm{
		v: v, tokens: newTrie(), users: newTrie(), charsmap: charsmap, unknown: unknown,
		spacePrefix: f.spacePrefix, mergeSpaces: f.mergeSpaces,
	}
	lowest := float32(math.MaxFloat32)
	for i, a := range v.attrs {
		if a&attrNormal != 0 {
			lowest = min(lowest, v.score(TokenID(i)))
		}
		if v.texts[i] == "" {
			continue
		}
		if a&(attrNormal|attrUserDefined|attrUnused) != 0 && !u.tokens.insert(v.texts[i], int32(i)) {
			return nil, fmt.Errorf("tokenizer: tokenizer.ggml.tokens: texts too long in all")
		}
		if a&attrUserDefined != 0 {
			u.users.insert(v.texts[i], int32(i))
		}
	}
	u.unknownCost = float64(lowest - unknownPenalty)
	return u, nil
}

// cut is the best way to cut the text up to a place: its last token, the size
// of that token and the score of the whole way.
type cut struct {
	score float64
	id    TokenID
	size  int32
}

// encode implements encoder.
func (u *ugm) encode(dst []TokenID, text string, _ bool) []TokenID {
	norm := u.normalize(text)
	for len(norm) > maxSegment {
		dst = u.encodeNormal(dst, norm[:maxSegment])
		norm = norm[maxSegment:]
	}
	return u.encodeNormal(dst, norm)
}

func (u *ugm) encodeNormal(dst []TokenID, norm []byte) []TokenID {
	if len(norm) == 0 {
		return dst
	}
	best := make([]cut, len(norm)+1)
	for i := range best[1:] {
		best[i+1].score = math.Inf(-1)
	}
	for i := 0; i < len(norm); {
		char := runeLen(norm[i:])
		if !u.extend(best, norm, i, char) {
			improve(best, i, char, u.unknown, u.unknownCost)
		}
		i += char
	}
	return u.trace(dst, best)
}

// extend tries all tokens at norm[i:] and reports whether one is exactly the
// character there.
func (u *ugm) extend(best []cut, norm []byte, i, char int) (whole bool) {
	node := uint32(0)
	for e := i; e < len(norm); e++ {
		next, ok := u.tokens.step(node, norm[e])
		if !ok {
			break
		}
		node = next
		id := u.tokens.values[node]
		if id == none {
			continue
		}
		size := e + 1 - i
		whole = whole || size == char
		score := float64(u.v.score(id))
		if u.v.attrs[id]&attrUserDefined != 0 {
			score = 0 // better than any log-probability
		}
		improve(best, i, size, id, score)
	}
	return whole
}

func improve(best []cut, i, size int, id TokenID, score float64) {
	if s := best[i].score + score; s > best[i+size].score {
		best[i+size] = cut{s, id, int32(size)}
	}
}

// trace appends the tokens of the best way through the whole text; a run of
// unknown characters is one unknown token.
func (u *ugm) trace(dst []TokenID, best []cut) []TokenID {
	first := len(dst)
	last := none
	for i := len(best) - 1; i > 0; i -= int(best[i].size) {
		id := best[i].id
		if best[i].size == 0 {
			break // scores are not numbers
		}
		if id != none && (id != u.unknown || last != u.unknown) {
			dst = append(dst, id)
		}
		last = id
	}
	slices.Reverse(dst[first:])
	return dst
}

// normalize rewrites text by the map of the file and writes the space mark for
// spaces.
func (u *ugm) normalize(text string) []byte {
	out := make([]byte, 0, len(text)+len(text)/4+4)
	prefixed, inWord := !u.spacePrefix, false
	for i := 0; i < len(text); {
		part, n := u.normalizePart(text, i)
		i += n
		for k := range len(part) {
			if part[k] == ' ' {
				inWord = false
				if !u.mergeSpaces {
					out = append(out, spaceMark...)
				}
				continue
			}
			if !inWord {
				inWord = true
				if !prefixed || u.mergeSpaces {
					out = append(out, spaceMark...)
					prefixed = true
				}
			}
			out = append(out, part[k])
		}
	}
	return out
}

// normalizePart returns what the beginning of text[i:] becomes and how many
// bytes it takes.
func (u *ugm) normalizePart(text string, i int) (string, int) {
	if _, n := u.users.longest(text[i:], u.v.maxLen); n > 0 {
		return text[i : i+n], n
	}
	if part, n := u.charsmap.longest(text[i:]); n > 0 {
		return part, n
	}
	n := runeLen(text[i:])
	if n == 1 && text[i] >= 0x80 {
		return "\uFFFD", 1
	}
	return text[i : i+n], n
}
