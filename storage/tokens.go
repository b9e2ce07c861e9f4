package storage

import (
	"encoding/binary"
	"errors"
	"math"

	"ganglion/appliance"
)

// The tokens of a record are one blob:
//
//	version  byte, 1
//	count    uvarint
//	count × token:
//	  id      uvarint
//	  logprob 8 bytes, IEEE 754 double, little endian: replay compares them exactly
//	  offset  uvarint, of the token's text in the answer
//	  text    uvarint 2·length + inline; inline 0: the bytes are those of the answer
//	          at offset, which is nearly always so; 1: they follow
//	  top     uvarint, number of alternatives
//	  top × alternative:
//	    id      uvarint
//	    logprob 8 bytes
//	    text    uvarint length, bytes
//
// That is 12 to 14 bytes a token without alternatives.
const tokensVersion = 1

var errTokens = errors.New("storage: a record's tokens are damaged")

// appendTokens encodes the tokens of an answer. It returns nil for none.
func appendTokens(tokens []appliance.Token, text string) []byte {
	if len(tokens) == 0 {
		return nil
	}
	b := make([]byte, 0, 16+14*len(tokens))
	b = append(b, tokensVersion)
	b = binary.AppendUvarint(b, uint64(len(tokens)))
	for i := range tokens {
		t := &tokens[i]
		b = binary.AppendUvarint(b, uint64(uint32(t.ID)))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.Logprob))
		b = binary.AppendUvarint(b, uint64(max(t.Offset, 0)))
		n := uint64(len(t.Text)) << 1
		if s, ok := share(text, t.Offset, len(t.Text)); ok && s == t.Text {
			b = binary.AppendUvarint(b, n)
		} else {
			b = append(binary.AppendUvarint(b, n|1), t.Text...)
		}
		b = binary.AppendUvarint(b, uint64(len(t.Top)))
		for _, a := range t.Top {
			b = binary.AppendUvarint(b, uint64(uint32(a.ID)))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(a.Logprob))
			b = append(binary.AppendUvarint(b, uint64(len(a.Text))), a.Text...)
		}
	}
	return b
}

// share returns n bytes of the text at an offset.
func share(text string, offset, n int) (string, bool) {
	if offset < 0 || n < 0 || offset > len(text) || n > len(text)-offset {
		return "", false
	}
	return text[offset : offset+n], true
}

// parseTokens is the reverse of appendTokens.
func parseTokens(b []byte, text string) ([]appliance.Token, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] != tokensVersion {
		return nil, errTokens
	}
	d := tokenReader{b: b[1:]}
	const least = 1 + 8 + 1 + 1 + 1 // bytes of a token, so that a count allocates in proportion
	tokens := make([]appliance.Token, d.count(least))
	for i := range tokens {
		t := &tokens[i]
		t.ID = int32(uint32(d.uvarint()))
		t.Logprob = d.float()
		t.Offset = int(min(d.uvarint(), math.MaxInt32))
		n := d.uvarint()
		if n&1 == 1 {
			t.Text = d.text(n >> 1)
		} else if s, ok := share(text, t.Offset, int(min(n>>1, math.MaxInt32))); ok {
			t.Text = s
		} else {
			d.bad = true
		}
		if k := d.count(1 + 8 + 1); k > 0 {
			t.Top = make([]appliance.Alternative, k)
		}
		for j := range t.Top {
			t.Top[j] = appliance.Alternative{ID: int32(uint32(d.uvarint())), Logprob: d.float(), Text: d.text(d.uvarint())}
		}
		if d.bad {
			return nil, errTokens
		}
	}
	if d.bad || len(d.b) > 0 {
		return nil, errTokens
	}
	return tokens, nil
}

// tokenReader reads the parts of a blob; after the first that is not there it is bad
// and gives zeros.
type tokenReader struct {
	b   []byte
	bad bool
}

func (d *tokenReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things of which each takes at least the given bytes.
func (d *tokenReader) count(each int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/each) {
		d.b, d.bad = nil, true
		return 0
	}
	return int(n)
}

func (d *tokenReader) float() float64 {
	s := d.text(8)
	if len(s) < 8 {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(s)))
}

func (d *tokenReader) text(n uint64) string {
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
