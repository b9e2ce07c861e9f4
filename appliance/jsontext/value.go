package jsontext

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind int

// The kinds. None is the kind of the zero Value.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String is the kind with its article, for messages.
func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// ErrSurrogate tells that a string has a \uD800–\uDFFF escape without its other
// half: such a string is JSON but no Unicode text.
var ErrSurrogate = errors.New("jsontext: a surrogate escape has no other half")

// Value is a view of one value inside a checked text. The zero Value is absent.
type Value struct{ raw []byte }

// Raw is the value as written. It must not be changed.
func (v Value) Raw() []byte { return v.raw }

// Offset is where a value stands in the text that it was parsed from, which must be as long
// as it was.
func (v Value) Offset(text []byte) int { return cap(text) - cap(v.raw) }

// Kind is the kind of the value.
func (v Value) Kind() Kind {
	if len(v.raw) == 0 {
		return None
	}
	switch v.raw[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// Present tells whether the value is there and is not null.
func (v Value) Present() bool { return len(v.raw) > 0 && v.raw[0] != 'n' }

// True tells whether the value is true.
func (v Value) True() bool { return len(v.raw) > 0 && v.raw[0] == 't' }

// Text decodes a string. It fails with [ErrSurrogate] where the string is no
// Unicode text.
func (v Value) Text() (string, error) {
	b, err := v.TextBytes()
	return string(b), err
}

// TextBytes is Text as bytes. They are part of the text where it has no escapes,
// so they must not be changed.
func (v Value) TextBytes() ([]byte, error) {
	if v.Kind() != String {
		return nil, errors.New("jsontext: not a string")
	}
	return unquote(v.raw[1:len(v.raw)-1], false)
}

// unquote decodes what stands between the quotes of a checked string. Halves of a
// surrogate pair that stand alone are an error, or with keep are written as three
// bytes each, so that different names stay different.
func unquote(s []byte, keep bool) ([]byte, error) {
	next := bytes.IndexByte(s, '\\')
	if next < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for next >= 0 {
		out = append(out, s[:next]...)
		s = s[next:]
		n := 2
		if s[1] == 'u' {
			r := hex4(s)
			n = 6
			if utf16.IsSurrogate(r) {
				pair := utf8.RuneError
				if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
					pair = utf16.DecodeRune(r, hex4(s[6:]))
				}
				switch {
				case pair != utf8.RuneError:
					r, n = pair, 12
				case !keep:
					return nil, ErrSurrogate
				default:
					out = append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
					s = s[n:]
					next = bytes.IndexByte(s, '\\')
					continue
				}
			}
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, unescape(s[1]))
		}
		s = s[n:]
		next = bytes.IndexByte(s, '\\')
	}
	return append(out, s...), nil
}

func hex4(s []byte) rune {
	var r rune
	for _, b := range s[2:6] {
		r = r<<4 | rune(hexValue(b))
	}
	return r
}

func unescape(b byte) byte {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return b // quote, backslash, slash
}

// Float is the number as the nearest float64; ok is false when it is too large
// to be one.
func (v Value) Float() (f float64, ok bool) {
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil && (f > 1 || f < -1) {
		return f, false
	}
	return f, true // a number too small becomes 0, which is the nearest
}

// Whole says how a number stands to the integers of 64 bits.
type Whole int

// The answers of [Value.Int].
const (
	IsInt    Whole = iota // the number is this integer
	Fraction              // it has a fractional part
	TooLarge              // whole, above the largest
	TooSmall              // whole, below the smallest
)

// Int reads a number without going through a float, so that no digit is lost:
// 8, 8.0, 80e-1 and 0.8e1 are all 8.
func (v Value) Int() (int64, Whole) {
	negative, digits, exp := v.decimal()
	switch {
	case len(digits) == 0:
		return 0, IsInt
	case exp < 0:
		return 0, Fraction
	case int64(len(digits))+exp > 19:
		return outOfRange(negative)
	}
	var u uint64
	for _, d := range digits {
		u = u*10 + uint64(d-'0')
	}
	for ; exp > 0; exp-- {
		u *= 10 // at most 19 digits: below 10^19 < 2^64
	}
	switch {
	case negative && u <= 1<<63:
		return -int64(u-1) - 1, IsInt
	case !negative && u <= math.MaxInt64:
		return int64(u), IsInt
	}
	return outOfRange(negative)
}

func outOfRange(negative bool) (int64, Whole) {
	if negative {
		return math.MinInt64, TooSmall
	}
	return math.MaxInt64, TooLarge
}

// decimal splits a number into sign, digits without zeros at either end, and the
// power of ten they are multiplied by. No digits means zero.
func (v Value) decimal() (negative bool, digits []byte, exp int64) {
	s := v.raw
	if s[0] == '-' {
		negative, s = true, s[1:]
	}
	mantissa := s
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		exp = exponent(s[i+1:])
	}
	if i := bytes.IndexByte(mantissa, '.'); i >= 0 {
		exp -= int64(len(mantissa) - i - 1)
		digits = append(append(digits, mantissa[:i]...), mantissa[i+1:]...)
	} else {
		digits = mantissa
	}
	digits = bytes.TrimLeft(digits, "0")
	kept := bytes.TrimRight(digits, "0")
	return negative, kept, exp + int64(len(digits)-len(kept))
}

// exponent reads an exponent and keeps it within ±2^40: beyond that the number is
// out of every range, and sums of it cannot overflow.
func exponent(s []byte) int64 {
	negative := s[0] == '-'
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	var e int64
	for _, d := range s {
		if e = e*10 + int64(d-'0'); e > 1<<40 {
			e = 1 << 40
			break
		}
	}
	if negative {
		return -e
	}
	return e
}

// Elements yields the elements of an array with their indices; nothing for other
// kinds.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != Array {
			return
		}
		i := skipSpace(v.raw, 1)
		for n := 0; v.raw[i] != ']'; n++ {
			end := skip(v.raw, i)
			if !yield(n, Value{v.raw[i:end]}) {
				return
			}
			i = afterComma(v.raw, end)
		}
	}
}

// Members yields the names and values of an object in order; nothing for other
// kinds.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		i := skipSpace(v.raw, 1)
		for v.raw[i] != '}' {
			end := skip(v.raw, i)
			name, _ := unquote(v.raw[i+1:end-1], true)
			i = skipSpace(v.raw, skipSpace(v.raw, end)+1) // behind ':'
			end = skip(v.raw, i)
			if !yield(string(name), Value{v.raw[i:end]}) {
				return
			}
			i = afterComma(v.raw, end)
		}
	}
}

// Bytes reads an array of integers from 0 to 255; ok is false for anything else.
// It allocates one byte for each element, however long the array is written.
func (v Value) Bytes() (data []byte, ok bool) {
	if v.Kind() != Array {
		return nil, false
	}
	for _, e := range v.Elements() {
		if e.Kind() != Number {
			return nil, false
		}
		n, whole := e.Int()
		if whole != IsInt || n < 0 || n > 255 {
			return nil, false
		}
		data = append(data, byte(n))
	}
	return data, true
}

// The functions below walk a text that Parse has checked.

func skipSpace(s []byte, i int) int {
	for isSpace(s[i]) {
		i++
	}
	return i
}

func afterComma(s []byte, i int) int {
	if i = skipSpace(s, i); s[i] == ',' {
		i = skipSpace(s, i+1)
	}
	return i
}

// skip is the offset behind the value at i.
func skip(s []byte, i int) int {
	depth := 0
	for {
		switch b := s[i]; b {
		case '"':
			i = skipString(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++ // only between the parts of a container
		default:
			for i < len(s) && !isDelimiter(s[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// skipString is the offset behind the string at i. Strings of media are long, so it
// searches for quotes and backslashes; each byte is searched once for either.
func skipString(s []byte, i int) int {
	i++
	quote := i + bytes.IndexByte(s[i:], '"')
	for {
		escape := bytes.IndexByte(s[i:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		if i += escape + 2; i > quote {
			quote = i + bytes.IndexByte(s[i:], '"')
		}
	}
}

func isDelimiter(b byte) bool {
	return b == ',' || b == ']' || b == '}' || b == ':' || isSpace(b)
}
