package gguftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// typeIDs are GGUF's numbers of the value types.
var typeIDs = map[reflect.Kind]uint32{
	reflect.Uint8: 0, reflect.Int8: 1, reflect.Uint16: 2, reflect.Int16: 3,
	reflect.Uint32: 4, reflect.Int32: 5, reflect.Float32: 6, reflect.Bool: 7,
	reflect.String: 8, reflect.Slice: 9,
	reflect.Uint64: 10, reflect.Int64: 11, reflect.Float64: 12,
}

func typeOf(v reflect.Value) (uint32, error) {
	if !v.IsValid() {
		return 0, fmt.Errorf("no value")
	}
	return kindID(v.Type())
}

func kindID(t reflect.Type) (uint32, error) {
	id, ok := typeIDs[t.Kind()]
	if !ok {
		return 0, fmt.Errorf("no GGUF type for %v", t)
	}
	return id, nil
}

// appendValue appends a value without its own type.
func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Slice:
		id, err := kindID(v.Type().Elem())
		if err != nil {
			return nil, err
		}
		b = binary.LittleEndian.AppendUint32(b, id)
		b = binary.LittleEndian.AppendUint64(b, uint64(v.Len()))
		for i := range v.Len() {
			if b, err = appendValue(b, v.Index(i)); err != nil {
				return nil, err
			}
		}
		return b, nil
	case reflect.String:
		return appendString(b, v.String()), nil
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.Float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Float()))), nil
	case reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float())), nil
	}
	var bits uint64
	if v.CanUint() {
		bits = v.Uint()
	} else {
		bits = uint64(v.Int())
	}
	for range v.Type().Size() {
		b = append(b, byte(bits))
		bits >>= 8
	}
	return b, nil
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
