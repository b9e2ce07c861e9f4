package tokenizer

import "unicode/utf8"

// pieceStyle is how the texts of normal tokens are written in the vocabulary.
type pieceStyle uint8

const (
	spacedPieces pieceStyle = iota // UTF-8 with the space mark for a space
	bytePieces                     // one character of the byte alphabet per byte
)

// AppendPiece appends the bytes of one token as running text shows them. A
// token may hold part of a character only. Control and unknown tokens render
// nothing unless special is true, user-defined tokens always render, and ids
// outside the vocabulary never do.
func (t *Tokenizer) AppendPiece(dst []byte, id TokenID, special bool) []byte {
	if !t.v.isToken(id) {
		return dst
	}
	a, text := t.v.attrs[id], t.v.texts[id]
	switch {
	case a&(attrControl|attrUnknown) != 0:
		if special {
			dst = append(dst, text...)
		}
	case a&attrUserDefined != 0:
		dst = append(dst, text...)
	case a&attrNormal != 0 && t.pieces == bytePieces:
		dst = appendAlphabetBytes(dst, text)
	case a&attrNormal != 0:
		dst = appendUnescaped(dst, text)
	case a&attrByte != 0:
		if b, ok := parseByteToken(text); ok {
			dst = append(dst, b)
		}
	}
	return dst
}

// Decode returns the bytes of ids in running text, piece after piece: nothing
// is cleaned up or trimmed, and ill-formed UTF-8 stays as it is.
func (t *Tokenizer) Decode(ids []TokenID, special bool) []byte {
	dst := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		dst = t.AppendPiece(dst, id, special)
	}
	return dst
}

// appendUnescaped appends text with every space mark written as a space.
func appendUnescaped(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c == spaceMark[0] && len(text)-i >= len(spaceMark) && text[i:i+len(spaceMark)] == spaceMark {
			dst = append(dst, ' ')
			i += len(spaceMark) - 1
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// parseByteToken reads the notation <0xXX>.
func parseByteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	hi, ok1 := hexDigit(s[3])
	lo, ok2 := hexDigit(s[4])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// Pieces renders single tokens; *Tokenizer does.
type Pieces interface {
	// AppendPiece appends the bytes of a token, see Tokenizer.AppendPiece.
	AppendPiece(dst []byte, id TokenID, special bool) []byte
}

// Decoder renders a stream of tokens as valid UTF-8. It never splits a
// character over two results and writes one U+FFFD for each maximal subpart of
// an ill-formed sequence (Unicode 15, section 3.9), so the joined results are
// the same however the tokens arrive. It belongs to one goroutine.
type Decoder struct {
	p    Pieces
	held []byte // begins a character that is not complete yet; at most 3 bytes
	out  []byte
}

// NewDecoder returns a decoder that renders no control tokens.
func (t *Tokenizer) NewDecoder() *Decoder { return NewDecoder(t) }

// NewDecoder returns a decoder over anything that renders tokens; it renders no
// control tokens.
func NewDecoder(p Pieces) *Decoder { return &Decoder{p: p} }

// Push returns the text that id completes, which may be empty. The slice is
// valid until the next call.
func (d *Decoder) Push(id TokenID) []byte {
	d.held = d.p.AppendPiece(d.held, id, false)
	var rest []byte
	d.out, rest = appendWellFormed(d.out[:0], d.held)
	d.held = d.held[:copy(d.held, rest)]
	return d.out
}

// Flush returns what the end of the stream leaves of the text held back: a
// replacement character for an unfinished character, else nothing. The decoder
// is then as new.
func (d *Decoder) Flush() []byte {
	d.out = d.out[:0]
	if len(d.held) > 0 {
		d.out = append(d.out, "\uFFFD"...)
		d.held = d.held[:0]
	}
	return d.out
}

// appendWellFormed appends src with ill-formed parts replaced. It stops before
// a character that src begins and does not finish, and returns that rest.
func appendWellFormed(dst, src []byte) (out, rest []byte) {
	for i := 0; i < len(src); {
		if src[i] < utf8.RuneSelf {
			dst = append(dst, src[i])
			i++
			continue
		}
		n, state := scanChar(src[i:])
		switch state {
		case complete:
			dst = append(dst, src[i:i+n]...)
		case illFormed:
			dst = append(dst, "\uFFFD"...)
		case unfinished:
			return dst, src[i:]
		}
		i += n
	}
	return dst, nil
}

type charState uint8

const (
	complete charState = iota
	illFormed
	unfinished
)

// scanChar looks at the sequence that b begins with, a byte above 0x7F. For an
// ill-formed sequence n is the size of its maximal subpart: the longest
// beginning of a well-formed sequence, or one byte.
func scanChar(b []byte) (n int, state charState) {
	size, lo, hi := byte(0), byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		size = 2
	case c >= 0xE0 && c <= 0xEF:
		size = 3
		switch c {
		case 0xE0:
			lo = 0xA0 // no overlong forms
		case 0xED:
			hi = 0x9F // no surrogates
		}
	case c >= 0xF0 && c <= 0xF4:
		size = 4
		switch c {
		case 0xF0:
			lo = 0x90 // no overlong forms
		case 0xF4:
			hi = 0x8F // nothing above U+10FFFF
		}
	default:
		return 1, illFormed
	}
	for n = 1; n < int(size); n++ {
		if n == len(b) {
			return n, unfinished
		}
		if b[n] < lo || b[n] > hi {
			return n, illFormed
		}
		lo, hi = 0x80, 0xBF
	}
	return n, complete
}
