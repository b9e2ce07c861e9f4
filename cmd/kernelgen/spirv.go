package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"ganglion/gpu/device"
)

// The instructions and numbers of SPIR-V (Khronos, SPIR-V 1.3) that are looked at.
const (
	magic = 0x07230203

	opName           = 5
	opTypeInt        = 21
	opTypeFloat      = 22
	opTypeVector     = 23
	opTypeImage      = 25
	opTypeSampled    = 27
	opTypeArray      = 28
	opTypeStruct     = 30
	opTypePointer    = 32
	opConstant       = 43
	opSpecConstant   = 50
	opSpecConstantOp = 52
	opVariable       = 59
	opDecorate       = 71
	opMemberDecorate = 72
	opIAdd           = 128
	opISub           = 130
	opIMul           = 132
	opUDiv           = 134
	opShiftRight     = 194
	opShiftLeft      = 196

	decorationSpecID      = 1
	decorationNonWritable = 24
	decorationBinding     = 33
	decorationOffset      = 35

	classConstant      = 0
	classUniform       = 2
	classWorkgroup     = 4
	classPushConstant  = 9
	classStorageBuffer = 12
)

// instruction is one instruction: its operands without the first word.
type instruction struct {
	op    uint32
	words []uint32
}

// instructions cuts a module into its instructions.
func instructions(spirv []byte) ([]instruction, error) {
	if len(spirv) < 20 || len(spirv)%4 != 0 || binary.LittleEndian.Uint32(spirv) != magic {
		return nil, errors.New("kernelgen: no SPIR-V module")
	}
	words := make([]uint32, len(spirv)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(spirv[4*i:])
	}
	var list []instruction
	for at := 5; at < len(words); {
		n := int(words[at] >> 16)
		if n == 0 || at+n > len(words) {
			return nil, fmt.Errorf("kernelgen: instruction at word %d has %d words", at, n)
		}
		list = append(list, instruction{words[at] & 0xFFFF, words[at+1 : at+n]})
		at += n
	}
	return list, nil
}

// module is what a module declares, by result id.
type module struct {
	names    map[uint32]string
	types    map[uint32]instruction // by id; operands behind the id
	values   map[uint32]uint32      // of integer constants; specialisation constants have their defaults
	specs    map[uint32]uint32      // number of a specialisation constant
	bindings map[uint32]uint32      // number of a buffer variable
	readOnly map[uint32]bool        // variables and structs that are not written
	offsets  map[uint32]uint32      // of a struct: the largest offset of a member
	vars     []instruction
}

// text reads a literal string.
func text(words []uint32) string {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func parse(spirv []byte) (*module, error) {
	list, err := instructions(spirv)
	if err != nil {
		return nil, err
	}
	m := &module{names: map[uint32]string{}, types: map[uint32]instruction{}, values: map[uint32]uint32{},
		specs: map[uint32]uint32{}, bindings: map[uint32]uint32{}, readOnly: map[uint32]bool{}, offsets: map[uint32]uint32{}}
	for _, i := range list {
		m.read(i)
	}
	return m, nil
}

func (m *module) read(i instruction) {
	w := i.words
	switch i.op {
	case opName:
		m.names[w[0]] = text(w[1:])
	case opTypeInt, opTypeFloat, opTypeVector, opTypeImage, opTypeSampled, opTypeArray, opTypeStruct, opTypePointer:
		m.types[w[0]] = instruction{i.op, w[1:]}
	case opConstant, opSpecConstant:
		m.values[w[1]] = w[2]
	case opSpecConstantOp:
		if len(w) == 5 {
			m.values[w[1]] = evaluate(w[2], m.values[w[3]], m.values[w[4]])
		}
	case opVariable:
		m.vars = append(m.vars, i)
	case opDecorate:
		switch w[1] {
		case decorationSpecID:
			m.specs[w[0]] = w[2]
		case decorationBinding:
			m.bindings[w[0]] = w[2]
		case decorationNonWritable:
			m.readOnly[w[0]] = true
		}
	case opMemberDecorate:
		switch w[2] {
		case decorationOffset:
			m.offsets[w[0]] = max(m.offsets[w[0]], w[3])
		case decorationNonWritable:
			m.readOnly[w[0]] = true
		}
	}
}

// evaluate computes an operation on specialisation constants, as sizes of shared arrays
// are made of them.
func evaluate(op, a, b uint32) uint32 {
	switch op {
	case opIAdd:
		return a + b
	case opISub:
		return a - b
	case opIMul:
		return a * b
	case opUDiv:
		return a / max(b, 1)
	case opShiftLeft:
		return a << b
	case opShiftRight:
		return a >> b
	}
	return 0
}

// size is the bytes of a type as shared memory.
func (m *module) size(id uint32) (int, error) {
	switch t := m.types[id]; t.op {
	case opTypeInt, opTypeFloat:
		return int(t.words[0]) / 8, nil
	case opTypeVector:
		n, err := m.size(t.words[0])
		return n * int(t.words[1]), err
	case opTypeArray:
		n, err := m.size(t.words[0])
		if m.values[t.words[1]] == 0 {
			return 0, errors.New("kernelgen: shared array whose length is not understood")
		}
		return n * int(m.values[t.words[1]]), err
	}
	return 0, errors.New("kernelgen: shared variable of a type that is not understood")
}

// reflect reads the table's entry of a kernel back from its module. The module has names
// and all that is declared, so it is not the optimised one.
func reflect(name string, spirv []byte) (device.Shader, error) {
	s := device.Shader{Name: name}
	m, err := parse(spirv)
	if err != nil {
		return s, err
	}
	bindings := map[uint32]device.Binding{}
	for _, v := range m.vars {
		id, class := v.words[1], v.words[2]
		pointee := m.types[v.words[0]].words[1]
		switch class {
		case classStorageBuffer:
			bindings[m.bindings[id]] = device.Binding{Name: m.names[pointee], ReadOnly: m.readOnly[id] || m.readOnly[pointee]}
		case classConstant:
			if t := m.types[pointee].op; t != opTypeSampled && t != opTypeImage {
				return s, errors.New("kernelgen: a binding that is neither a storage nor a texel buffer")
			}
			bindings[m.bindings[id]] = device.Binding{Name: m.names[id], ReadOnly: true, Texels: true}
		case classPushConstant:
			s.ParamBytes = int(m.offsets[pointee]) + 4
		case classWorkgroup:
			n, err := m.size(pointee)
			if err != nil {
				return s, err
			}
			s.Shared += n
		case classUniform:
			return s, errors.New("kernelgen: a uniform block beside the parameters")
		}
	}
	constants := map[uint32]device.Constant{}
	for id, number := range m.specs {
		if m.names[id] == "" {
			continue // the workgroup size repeats constant 0 without its name and default
		}
		constants[number] = device.Constant{Name: m.names[id], Default: m.values[id]}
	}
	if s.Bindings, err = inOrder(bindings, "binding"); err != nil {
		return s, err
	}
	s.Constants, err = inOrder(constants, "constant")
	return s, err
}

// inOrder turns numbered things into a list without gaps.
func inOrder[T any](by map[uint32]T, what string) ([]T, error) {
	list := make([]T, len(by))
	for i := range list {
		v, ok := by[uint32(i)]
		if !ok {
			return nil, fmt.Errorf("kernelgen: %s %d is left out or declared twice", what, i)
		}
		list[i] = v
	}
	return list, nil
}
