package gguf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ValueType is the number GGUF gives the type of a metadata value.
type ValueType uint32

// The types of metadata values.
const (
	Uint8   ValueType = 0
	Int8    ValueType = 1
	Uint16  ValueType = 2
	Int16   ValueType = 3
	Uint32  ValueType = 4
	Int32   ValueType = 5
	Float32 ValueType = 6
	Bool    ValueType = 7
	String  ValueType = 8
	Array   ValueType = 9
	Uint64  ValueType = 10
	Int64   ValueType = 11
	Float64 ValueType = 12
)

// valueTypes holds name and size of each type; strings and arrays have the size of
// their smallest encoding.
var valueTypes = [...]struct {
	name string
	size int
}{
	Uint8: {"u8", 1}, Int8: {"i8", 1}, Uint16: {"u16", 2}, Int16: {"i16", 2},
	Uint32: {"u32", 4}, Int32: {"i32", 4}, Float32: {"f32", 4}, Bool: {"bool", 1},
	String: {"string", 8}, Array: {"array", 12},
	Uint64: {"u64", 8}, Int64: {"i64", 8}, Float64: {"f64", 8},
}

func (t ValueType) known() bool { return int64(t) < int64(len(valueTypes)) }

// String returns the short name of the type, such as "u32".
func (t ValueType) String() string {
	if t.known() {
		return valueTypes[t].name
	}
	return fmt.Sprintf("value type %d", uint32(t))
}

// maxDepth bounds arrays inside arrays.
const maxDepth = 4

// Value is one metadata value. It stays valid after the file is closed.
type Value struct {
	Type ValueType
	Elem ValueType // element type of an array, equal to Type otherwise
	Len  int       // elements of an array, bytes of a string, 1 otherwise

	start, end int    // where the elements or the scalar stand in the header
	raw        []byte // header bytes start…end
}

// resolve gives the value its bytes once the header is complete.
func (v *Value) resolve(header []byte) { v.raw = header[v.start:v.end:v.end] }

// readValue reads type and value of the key that field names.
func readValue(r *reader, field string) (Value, error) {
	at := r.off
	n, err := r.u32(field + ": value type")
	if err != nil {
		return Value{}, err
	}
	t := ValueType(n)
	if !t.known() {
		return Value{}, r.fail(at, field+": value type", "%d is unknown", n)
	}
	v := Value{Type: t, Elem: t, Len: 1, start: r.off}
	switch t {
	case String:
		v.Len, err = r.strLen(field + ": value")
		if err != nil {
			return Value{}, err
		}
		v.start = r.off
		err = r.skip(field+": value", v.Len)
	case Array:
		v.Elem, v.Len, v.start, err = readArray(r, field, 1)
	default:
		err = skipFixed(r, field+": value", t, 1)
	}
	v.end = r.off
	return v, err
}

// readArray reads an array's element type and length and steps over its elements, all
// checked. start is the offset of the first element.
func readArray(r *reader, field string, depth int) (elem ValueType, n, start int, err error) {
	if depth > maxDepth {
		return 0, 0, 0, r.fail(r.off, field+": array type", "arrays are nested more than %d deep", maxDepth)
	}
	at := r.off
	id, err := r.u32(field + ": array type")
	if err != nil {
		return 0, 0, 0, err
	}
	elem = ValueType(id)
	if !elem.known() {
		return 0, 0, 0, r.fail(at, field+": array type", "%d is unknown", id)
	}
	at = r.off
	count, err := r.u64(field + ": array length")
	if err != nil {
		return 0, 0, 0, err
	}
	if err := r.room(at, field+": array length", count, valueTypes[elem].size); err != nil {
		return 0, 0, 0, err
	}
	n, start = int(count), r.off
	switch elem {
	case String:
		err = skipStrings(r, field, n)
	case Array:
		for range n {
			if _, _, _, err = readArray(r, field, depth+1); err != nil {
				break
			}
		}
	default:
		err = skipFixed(r, field+": array", elem, n)
	}
	return elem, n, start, err
}

// skipFixed steps over n values of a type of fixed size; truth values must be 0 or 1.
func skipFixed(r *reader, field string, t ValueType, n int) error {
	at := r.off
	b, err := r.take(field, n*valueTypes[t].size)
	if err != nil || t != Bool {
		return err
	}
	for i, c := range b {
		if c > 1 {
			return r.fail(at+i, field, "%d is not a truth value (0 or 1)", c)
		}
	}
	return nil
}

// skipStrings steps over n strings. The common case, a string whose bytes are in the
// buffer, is done here without building the field's name: vocabularies are long.
func skipStrings(r *reader, field string, n int) error {
	for i := range n {
		if have := r.buf[r.off:]; len(have) >= 8 {
			if size := le64(have); size <= uint64(len(have)-8) {
				r.off += 8 + int(size)
				continue
			}
		}
		elem := fmt.Sprintf("%s: element %d", field, i)
		size, err := r.strLen(elem)
		if err != nil {
			return err
		}
		if err := r.skip(elem, size); err != nil {
			return err
		}
	}
	return nil
}

// shortBytes and shortElems bound what Value.String shows.
const (
	shortBytes = 80
	shortElems = 8
)

// String returns the value for display: a text quoted, long ones cut, an array with
// its first elements.
func (v Value) String() string {
	switch v.Type {
	case Array:
		return v.arrayString()
	case String:
		return shortQuote(v.raw)
	}
	return scalarString(v.Type, v.raw)
}

func (v Value) arrayString() string {
	if v.Elem == Array {
		return fmt.Sprintf("[%d arrays]", v.Len)
	}
	var b strings.Builder
	b.WriteByte('[')
	raw := v.raw
	for i := range min(v.Len, shortElems) {
		if i > 0 {
			b.WriteString(", ")
		}
		if v.Elem == String {
			n := int(le64(raw))
			b.WriteString(shortQuote(raw[8 : 8+n]))
			raw = raw[8+n:]
			continue
		}
		b.WriteString(scalarString(v.Elem, raw))
		raw = raw[valueTypes[v.Elem].size:]
	}
	if v.Len > shortElems {
		fmt.Fprintf(&b, ", … %d in all", v.Len)
	}
	b.WriteByte(']')
	return b.String()
}

// shortQuote quotes a text and cuts it at a character's start.
func shortQuote(raw []byte) string {
	if len(raw) <= shortBytes {
		return strconv.Quote(string(raw))
	}
	cut := shortBytes
	for cut > shortBytes-utf8.UTFMax && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", raw[:cut], len(raw))
}

// scalarString formats the scalar at the start of raw.
func scalarString(t ValueType, raw []byte) string {
	switch t {
	case Bool:
		return strconv.FormatBool(raw[0] != 0)
	case Float32:
		return strconv.FormatFloat(float64(math.Float32frombits(le32(raw))), 'g', -1, 32)
	case Float64:
		return strconv.FormatFloat(math.Float64frombits(le64(raw)), 'g', -1, 64)
	case Uint8, Uint16, Uint32, Uint64:
		u, _ := decodeUint(t, raw)
		return strconv.FormatUint(u, 10)
	}
	i, _ := decodeInt(t, raw)
	return strconv.FormatInt(i, 10)
}
