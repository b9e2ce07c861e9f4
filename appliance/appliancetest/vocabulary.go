package appliancetest

import (
	"fmt"
	"strings"

	"ganglion/gpu/tokenizer"
)

// The fixed tokens of a Vocabulary: 0 to 255 are bytes, then come the control tokens.
const (
	BOS   int32 = 256 // control, text "<bos>"
	EOS   int32 = 257 // control, ends generation, text "<eos>"
	Think int32 = 258 // user-defined, text "[THINK]"
	Pad   int32 = 259 // control, text "<pad>"

	firstPiece int32 = 260
)

var named = map[int32]string{BOS: "<bos>", EOS: "<eos>", Think: "[THINK]", Pad: "<pad>"}

// Vocabulary tokenizes one byte to one token, so that a prompt of n bytes has n
// tokens, and renders pieces that Add made. Encode parses "[THINK]" always and
// control tokens when asked to. It is immutable once in use.
type Vocabulary struct {
	AddsBOS bool    // the model wants BOS
	NoBOS   bool    // the vocabulary has no BOS
	Banned  []int32 // suppressed tokens

	pieces []string
}

// Add adds a piece as a token of its own and returns its id. Encode never uses it.
func (v *Vocabulary) Add(piece string) int32 {
	v.pieces = append(v.pieces, piece)
	return firstPiece + int32(len(v.pieces)) - 1
}

// Encode implements appliance.Vocabulary.
func (v *Vocabulary) Encode(text string, o tokenizer.EncodeOptions) []int32 {
	var ids []int32
	if o.AddSpecial && v.AddsBOS && !v.NoBOS && !(o.ParseSpecial && strings.HasPrefix(text, named[BOS])) {
		ids = append(ids, BOS)
	}
next:
	for i := 0; i < len(text); {
		for id := BOS; id < firstPiece; id++ {
			if (id == Think || o.ParseSpecial) && strings.HasPrefix(text[i:], named[id]) {
				ids = append(ids, id)
				i += len(named[id])
				continue next
			}
		}
		ids = append(ids, int32(text[i]))
		i++
	}
	return ids
}

// AppendPiece implements appliance.Vocabulary: control tokens render only when
// special is true, user-defined ones always.
func (v *Vocabulary) AppendPiece(dst []byte, id int32, special bool) []byte {
	switch {
	case id < 0 || int(id) >= v.VocabSize():
		return dst
	case id < 256:
		return append(dst, byte(id))
	case id >= firstPiece:
		return append(dst, v.pieces[id-firstPiece]...)
	case id == Think || special:
		return append(dst, named[id]...)
	}
	return dst
}

// Text implements appliance.Vocabulary.
func (v *Vocabulary) Text(id int32) string {
	if id >= 0 && id < 256 {
		return fmt.Sprintf("<0x%02X>", id)
	}
	return string(v.AppendPiece(nil, id, true))
}

// VocabSize implements appliance.Vocabulary.
func (v *Vocabulary) VocabSize() int { return int(firstPiece) + len(v.pieces) }

// IsEOG implements appliance.Vocabulary.
func (v *Vocabulary) IsEOG(id int32) bool { return id == EOS }

// BOS implements appliance.Vocabulary.
func (v *Vocabulary) BOS() (int32, bool) { return BOS, !v.NoBOS }

// AddBOS implements appliance.Vocabulary.
func (v *Vocabulary) AddBOS() bool { return v.AddsBOS }

// Family implements appliance.Vocabulary: a token for each byte is nearest to that.
func (v *Vocabulary) Family() string { return "bpe" }

// Suppressed implements appliance.Vocabulary.
func (v *Vocabulary) Suppressed() []int32 { return v.Banned }
