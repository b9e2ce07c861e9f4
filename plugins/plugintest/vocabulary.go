package plugintest

import (
	"strconv"

	"ganglion/plugins/host"
)

// The control tokens of a [Vocabulary].
const (
	tokenBOS = iota
	tokenEOS
	tokenUNK
	tokenPAD

	controls
)

// Vocabulary is a made-up vocabulary: control tokens, the 256 bytes, then words, with and
// without a space in front, in several scripts. It is safe for concurrent use.
type Vocabulary struct {
	pieces [][]byte
	ids    map[string]int32
	most   int // bytes of the longest piece
}

var _ host.Vocabulary = (*Vocabulary)(nil)

var (
	onsets = []string{"b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "ch", "sh", "st", "tr", "ж", "п", "か", "中", "é", "1", "\n", ".", ",", "{", "\""}
	rhymes = []string{"a", "e", "i", "o", "u", "an", "en", "in", "on", "ar", "er", "ing", "ed", "ly", "ю", "と", "国", "}", ":", "2"}
)

// NewVocabulary makes a vocabulary of a size.
func NewVocabulary(size int) *Vocabulary {
	v := &Vocabulary{pieces: make([][]byte, size), ids: make(map[string]int32, size)}
	for id := range size {
		switch {
		case id < controls:
		case id < controls+256:
			v.add(id, string([]byte{byte(id - controls)}))
		default:
			v.add(id, word(id-controls-256))
		}
	}
	return v
}

func (v *Vocabulary) add(id int, piece string) {
	v.pieces[id] = []byte(piece)
	v.most = max(v.most, len(piece))
	if _, twice := v.ids[piece]; !twice {
		v.ids[piece] = int32(id)
	}
}

// word spells a number in syllables; every second one has a space in front.
func word(n int) string {
	w := ""
	if n%2 == 0 {
		w = " "
	}
	for n /= 2; ; n /= len(onsets) * len(rhymes) {
		w += onsets[n%len(onsets)] + rhymes[n/len(onsets)%len(rhymes)]
		if n < len(onsets)*len(rhymes) {
			return w
		}
	}
}

// Size implements host.Vocabulary, as do all others.
func (v *Vocabulary) Size() int { return len(v.pieces) }

// Key names the vocabulary.
func (v *Vocabulary) Key() string { return "plugintest " + strconv.Itoa(len(v.pieces)) }

// Bytes are nil for control tokens.
func (v *Vocabulary) Bytes(id int32) []byte { return v.pieces[id] }

// Encode takes the longest piece at each place.
func (v *Vocabulary) Encode(text []byte, _, begin bool) (ids []int32) {
	if begin {
		ids = append(ids, tokenBOS)
	}
	for len(text) > 0 {
		n := min(v.most, len(text))
		id, ok := v.ids[string(text[:n])]
		for !ok && n > 1 {
			n--
			id, ok = v.ids[string(text[:n])]
		}
		if !ok {
			id = tokenUNK
		}
		ids, text = append(ids, id), text[n:]
	}
	return ids
}

// Decode joins pieces.
func (v *Vocabulary) Decode(ids []int32) (text []byte) {
	for _, id := range ids {
		text = append(text, v.pieces[id]...)
	}
	return text
}

// Special knows BOS, EOS, UNK and PAD.
func (v *Vocabulary) Special(role int) (id int32, ok bool) {
	of := [...]int32{tokenBOS, tokenEOS, -1, tokenUNK, tokenPAD}
	if role < 0 || role >= len(of) || of[role] < 0 {
		return 0, false
	}
	return of[role], true
}

// EOG is true of EOS alone.
func (v *Vocabulary) EOG(id int32) bool { return id == tokenEOS }

// Control is true of the first four tokens.
func (v *Vocabulary) Control(id int32) bool { return id < controls }
