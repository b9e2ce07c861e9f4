package tokenizer

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
)

// TokenID is the index of a token in the vocabulary.
type TokenID = int32

// none marks the absence of a token or of a neighbour in a linked list.
const none = int32(-1)

// Kind is what a token stands for in running text.
type Kind uint8

// The kinds of tokens; the numbers are those of tokenizer.ggml.token_type.
const (
	Undefined   Kind = 0 // no kind given; never rendered
	Normal      Kind = 1 // ordinary text
	Unknown     Kind = 2 // stands for text the vocabulary cannot express
	Control     Kind = 3 // steers the model; rendered only on demand
	UserDefined Kind = 4 // found in text before all splitting; rendered
	Unused      Kind = 5 // a place kept free; never rendered
	Byte        Kind = 6 // one raw byte, written <0xXX>
)

var kindNames = [...]string{"undefined", "normal", "unknown", "control", "user-defined", "unused", "byte"}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// attr holds what is known of a token as bits, because the load-time
// corrections can give one token several roles.
type attr uint8

const (
	attrNormal attr = 1 << iota
	attrUnknown
	attrControl
	attrUserDefined
	attrUnused
	attrByte
	attrLStrip // white space before the token in a prompt belongs to it
	attrRStrip // white space after the token in a prompt belongs to it
)

var kindAttrs = [...]attr{0, attrNormal, attrUnknown, attrControl, attrUserDefined, attrUnused, attrByte}

// vocab is the list of tokens with an index from text to token.
//
// The texts are those that Metadata returned; they are not copied.
type vocab struct {
	texts  []string
	attrs  []attr
	scores []float32 // nil when the file has none
	maxLen int       // bytes of the longest text

	// extra holds texts that merges mention but the vocabulary lacks; their ids
	// follow those of the tokens.
	extra []string

	repeats bool // some text belongs to several tokens

	seed  maphash.Seed
	slots []slot // open addressing, power-of-two size, at most half full
	used  int
}

// slot is one entry of the index: the upper bits of the hash, so that most
// mismatches are seen without touching the text, and the id plus one.
type slot struct {
	tag uint32
	ref int32
}

func newVocab(texts []string, kinds []int64, scores []float32) (*vocab, error) {
	n := len(texts)
	if n == 0 || n > 1<<28 {
		return nil, fmt.Errorf("tokenizer: tokenizer.ggml.tokens: %d tokens", n)
	}
	if kinds != nil && len(kinds) < n {
		return nil, fmt.Errorf("tokenizer: tokenizer.ggml.token_type: %d entries for %d tokens", len(kinds), n)
	}
	if scores != nil && len(scores) < n {
		return nil, fmt.Errorf("tokenizer: tokenizer.ggml.scores: %d entries for %d tokens", len(scores), n)
	}
	v := &vocab{texts: texts, scores: scores, attrs: make([]attr, n), seed: maphash.MakeSeed()}
	v.slots = make([]slot, 1<<bits.Len(uint(2*n-1)))
	for i, s := range texts {
		v.attrs[i] = attrNormal
		if kinds != nil {
			v.attrs[i] = 0
			if k := kinds[i]; k >= 0 && k < int64(len(kindAttrs)) {
				v.attrs[i] = kindAttrs[k]
			}
		}
		v.maxLen = max(v.maxLen, len(s))
		if s != "" {
			v.put(s, int32(i))
		}
	}
	return v, nil
}

// put maps s to id; a text that occurs twice belongs to its last token.
func (v *vocab) put(s string, id int32) {
	if 2*(v.used+1) > len(v.slots) {
		v.grow()
	}
	h := maphash.String(v.seed, s)
	mask := uint64(len(v.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := &v.slots[i]
		if e.ref == 0 {
			*e = slot{uint32(h >> 32), id + 1}
			v.used++
			return
		}
		if e.tag == uint32(h>>32) && v.text(e.ref-1) == s {
			e.ref = id + 1
			v.repeats = true
			return
		}
	}
}

func (v *vocab) grow() {
	old := v.slots
	v.slots = make([]slot, 2*len(old))
	mask := uint64(len(v.slots) - 1)
	for _, e := range old {
		if e.ref == 0 {
			continue
		}
		i := maphash.String(v.seed, v.text(e.ref-1)) & mask
		for v.slots[i].ref != 0 {
			i = (i + 1) & mask
		}
		v.slots[i] = e
	}
}

// intern returns the id of s, giving it an extra id when it is no token.
func (v *vocab) intern(s string) int32 {
	if id := v.find(s); id != none {
		return id
	}
	v.extra = append(v.extra, strings.Clone(s))
	id := int32(len(v.texts) + len(v.extra) - 1)
	v.put(s, id)
	return id
}

// find returns the id of s, which may be an extra id, or none.
func (v *vocab) find(s string) int32 {
	h := maphash.String(v.seed, s)
	mask := uint64(len(v.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := v.slots[i]
		if e.ref == 0 {
			return none
		}
		if e.tag == uint32(h>>32) && v.text(e.ref-1) == s {
			return e.ref - 1
		}
	}
}

// findBatch sets ids[i] to the id of keys[i] or none. It does what a loop over
// find does, in steps: the loads of one step do not wait for each other, which
// halves the time while tables as large as these are not in the cache.
func (v *vocab) findBatch(keys []string, ids []int32) {
	type probe struct {
		hash  uint64
		slot  slot
		text  string
		first byte // read only to have the text in the cache
	}
	var probes [batch]probe
	mask := uint64(len(v.slots) - 1)
	for len(keys) > 0 {
		n := min(len(keys), batch)
		for i, k := range keys[:n] {
			h := maphash.String(v.seed, k)
			probes[i] = probe{hash: h, slot: v.slots[h&mask]}
		}
		for i := range n {
			if p := &probes[i]; p.slot.ref != 0 && p.slot.tag == uint32(p.hash>>32) {
				p.text = v.text(p.slot.ref - 1)
			}
		}
		for i := range n {
			if p := &probes[i]; p.text != "" {
				p.first = p.text[0]
			}
		}
		for i, k := range keys[:n] {
			switch p := &probes[i]; {
			case p.slot.ref == 0:
				ids[i] = none
			case p.text == k:
				ids[i] = p.slot.ref - 1
			default:
				ids[i] = v.find(k)
			}
		}
		keys, ids = keys[n:], ids[n:]
	}
}

// batch is how many keys findBatch looks up side by side.
const batch = 64

// findBytes is find for a text that lies in a buffer.
func (v *vocab) findBytes(b []byte) int32 {
	h := maphash.Bytes(v.seed, b)
	mask := uint64(len(v.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := v.slots[i]
		if e.ref == 0 {
			return none
		}
		if e.tag == uint32(h>>32) && v.text(e.ref-1) == string(b) {
			return e.ref - 1
		}
	}
}

// token returns the token whose text is s, or none.
func (v *vocab) token(s string) TokenID {
	if id := v.find(s); v.isToken(id) {
		return id
	}
	return none
}

// isToken tells a token id from none and from extra ids.
func (v *vocab) isToken(id int32) bool { return id >= 0 && int(id) < len(v.texts) }

func (v *vocab) text(id int32) string {
	if int(id) < len(v.texts) {
		return v.texts[id]
	}
	return v.extra[int(id)-len(v.texts)]
}

func (v *vocab) score(id TokenID) float32 {
	if v.scores == nil {
		return 0
	}
	return v.scores[id]
}

func (v *vocab) kind(id TokenID) Kind {
	a := v.attrs[id]
	switch {
	case a&attrControl != 0:
		return Control
	case a&attrUnknown != 0:
		return Unknown
	case a&attrUserDefined != 0:
		return UserDefined
	case a&attrByte != 0:
		return Byte
	case a&attrUnused != 0:
		return Unused
	case a&attrNormal != 0:
		return Normal
	}
	return Undefined
}

// byteTokens returns the tokens that stand for single bytes in the notation
// <0xXX>, or none where the vocabulary has no such token.
func (v *vocab) byteTokens() (ids [256]TokenID) {
	const hex = "0123456789ABCDEF"
	for b := range 256 {
		ids[b] = v.token("<0x" + hex[b>>4:b>>4+1] + hex[b&15:b&15+1] + ">")
	}
	return ids
}
