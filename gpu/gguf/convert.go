package gguf

import "math"

// decodeInt reads the integer of type t at the start of raw, if it fits int64.
func decodeInt(t ValueType, raw []byte) (int64, bool) {
	switch t {
	case Uint8:
		return int64(raw[0]), true
	case Int8:
		return int64(int8(raw[0])), true
	case Uint16:
		return int64(le16(raw)), true
	case Int16:
		return int64(int16(le16(raw))), true
	case Uint32:
		return int64(le32(raw)), true
	case Int32:
		return int64(int32(le32(raw))), true
	case Int64:
		return int64(le64(raw)), true
	case Uint64:
		u := le64(raw)
		return int64(u), u <= math.MaxInt64
	}
	return 0, false
}

// decodeUint reads the integer of type t at the start of raw, if it is not negative.
func decodeUint(t ValueType, raw []byte) (uint64, bool) {
	if t == Uint64 {
		return le64(raw), true
	}
	i, ok := decodeInt(t, raw)
	return uint64(i), ok && i >= 0
}

// decodeFloat reads the number of type t at the start of raw.
func decodeFloat(t ValueType, raw []byte) (float64, bool) {
	switch t {
	case Float32:
		return float64(math.Float32frombits(le32(raw))), true
	case Float64:
		return math.Float64frombits(le64(raw)), true
	case Uint64:
		return float64(le64(raw)), true
	}
	i, ok := decodeInt(t, raw)
	return float64(i), ok
}

func (v Value) asUint() (uint64, bool) { return decodeUint(v.Type, v.raw) }

// elements decodes an array of fixed-size values, or reports false when one of them
// has no counterpart in T.
func elements[T any](v Value, decode func(ValueType, []byte) (T, bool)) ([]T, bool) {
	if v.Type != Array || v.Elem == String || v.Elem == Array {
		return nil, false
	}
	size := valueTypes[v.Elem].size
	out := make([]T, v.Len)
	for i := range out {
		x, ok := decode(v.Elem, v.raw[i*size:])
		if !ok {
			return nil, false
		}
		out[i] = x
	}
	return out, true
}

// texts decodes an array of strings. They share one copy of the array's bytes.
func (v Value) texts() ([]string, bool) {
	if v.Type != Array || v.Elem != String {
		return nil, false
	}
	all := string(v.raw)
	out := make([]string, v.Len)
	at := 0
	for i := range out {
		n := int(le64(v.raw[at:]))
		out[i] = all[at+8:][:n]
		at += 8 + n
	}
	return out, true
}
