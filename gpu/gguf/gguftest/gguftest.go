// Package gguftest writes GGUF files: small models for tests, and the raw material of
// hostile ones. It imports gpu/tensor only, so that gpu/gguf's own tests can use it.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"

	"ganglion/gpu/tensor"
)

// Model is the content of a file.
type Model struct {
	Version   uint32 // 0 means 3; any other number is written as it is
	Alignment int    // of tensor data, written as general.alignment; 0 means the default, 32
	KV        []KV
	Tensors   []Tensor
}

// KV is one metadata key. The value's Go type is the GGUF type: uint8 … uint64, int8 …
// int64 (not int and uint), float32, float64, bool, string, or a slice of those or of
// slices.
type KV struct {
	Key   string
	Value any
}

// Tensor is one tensor. Nil data means zeros.
type Tensor struct {
	Name string
	Type tensor.Type
	Dims []int // GGUF order: row length first
	Data []byte
}

// F32 returns the bytes of float32 values.
func F32(values ...float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Write writes a model to path, which it creates or replaces.
func Write(path string, m Model) error {
	b, err := Encode(m)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// WriteSplit writes a model as parts dir/name-00001-of-0000N.gguf and returns their
// paths: metadata in the first part, the tensors dealt out in runs of about the same
// number, the split keys in every part.
func WriteSplit(dir, name string, m Model, parts int) ([]string, error) {
	var paths []string
	for i := range parts {
		p := Model{Version: m.Version, Alignment: m.Alignment}
		if i == 0 {
			p.KV = append(p.KV, m.KV...)
		}
		p.KV = append(p.KV,
			KV{"split.no", uint16(i)},
			KV{"split.count", uint16(parts)},
			KV{"split.tensors.count", int32(len(m.Tensors))})
		p.Tensors = m.Tensors[len(m.Tensors)*i/parts : len(m.Tensors)*(i+1)/parts]
		path := filepath.Join(dir, fmt.Sprintf("%s-%05d-of-%05d.gguf", name, i+1, parts))
		if err := Write(path, p); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Encode returns the bytes of a model's file.
func Encode(m Model) ([]byte, error) {
	align := 32
	kv := m.KV
	if m.Alignment != 0 {
		align = m.Alignment
		kv = append([]KV{{"general.alignment", uint32(align)}}, kv...)
	}
	version := m.Version
	if version == 0 {
		version = 3
	}
	b := []byte("GGUF")
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(m.Tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(kv)))
	for _, e := range kv {
		b = appendString(b, e.Key)
		v := reflect.ValueOf(e.Value)
		id, err := typeOf(v)
		if err != nil {
			return nil, fmt.Errorf("gguftest: key %q: %w", e.Key, err)
		}
		b = binary.LittleEndian.AppendUint32(b, id)
		if b, err = appendValue(b, v); err != nil {
			return nil, fmt.Errorf("gguftest: key %q: %w", e.Key, err)
		}
	}
	return appendTensors(b, m.Tensors, align)
}

// appendTensors appends the tensor index and the data.
func appendTensors(b []byte, tensors []Tensor, align int) ([]byte, error) {
	var data bytes.Buffer
	pad := func(n int) []byte { return make([]byte, (align-n%align)%align) }
	for _, t := range tensors {
		content, err := t.content()
		if err != nil {
			return nil, err
		}
		data.Write(pad(data.Len()))
		b = appendString(b, t.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(data.Len()))
		data.Write(content)
	}
	data.Write(pad(data.Len()))
	b = append(b, pad(len(b))...)
	return append(b, data.Bytes()...), nil
}

// content returns the tensor's bytes. Data of a known type must have the right length.
func (t Tensor) content() ([]byte, error) {
	if !t.Type.Known() {
		return t.Data, nil
	}
	cols, rows := 1, 1
	for i, d := range t.Dims {
		if i == 0 {
			cols = d
		} else {
			rows *= d
		}
	}
	row, err := tensor.RowBytes(t.Type, cols)
	if err != nil {
		return nil, fmt.Errorf("gguftest: tensor %q: %w", t.Name, err)
	}
	switch {
	case t.Data == nil:
		return make([]byte, row*rows), nil
	case len(t.Data) != row*rows:
		return nil, fmt.Errorf("gguftest: tensor %q: %v of %v are %d bytes, got %d", t.Name, t.Dims, t.Type, row*rows, len(t.Data))
	}
	return t.Data, nil
}

// Adapter returns a LoRA file for models of an architecture: the keys, and the pairs of
// tensors NAME.lora_a and NAME.lora_b as they are given.
func Adapter(arch string, alpha float32, tensors ...Tensor) Model {
	return Model{
		KV: []KV{
			{"general.architecture", arch}, {"general.type", "adapter"}, {"adapter.type", "lora"}, {"adapter.lora.alpha", alpha},
		},
		Tensors: tensors,
	}
}
