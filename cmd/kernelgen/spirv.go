package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ganglion/gpu/device"
)

// The instructions and numbers of SPIR-V (Khronos, SPIR-V 1.3) that are looked at.
const (
	magic = 0x07230203

	opName           = 5
	opCapability     = 17
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
	sizes    map[uint32]string      // of what array lengths are made of: expressions of the constants' values
	specs    map[uint32]uint32      // number of a specialisation constant
	bindings map[uint32]uint32      // number of a buffer variable
	readOnly map[uint32]bool        // variables and structs that are not written
	offsets  map[uint32]uint32      // of a struct: the largest offset of a member
	vars     []instruction
	needs    []uint32 // capabilities
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
	m := &module{names: map[uint32]string{}, types: map[uint32]instruction{}, values: map[uint32]uint32{}, sizes: map[uint32]string{},
		specs: map[uint32]uint32{}, bindings: map[uint32]uint32{}, readOnly: map[uint32]bool{}, offsets: map[uint32]uint32{}}
	for _, i := range list {
		m.read(i)
	}
	return m, nil
}

func (m *module) read(i instruction) {
	w := i.words
	switch i.op {
	case opCapability:
		m.needs = append(m.needs, w[0])
	case opName:
		m.names[w[0]] = text(w[1:])
	case opTypeInt, opTypeFloat, opTypeVector, opTypeImage, opTypeSampled, opTypeArray, opTypeStruct, opTypePointer:
		m.types[w[0]] = instruction{i.op, w[1:]}
	case opConstant:
		m.values[w[1]], m.sizes[w[1]] = w[2], strconv.FormatUint(uint64(w[2]), 10)
	case opSpecConstant: // its number was decorated before
		m.values[w[1]], m.sizes[w[1]] = w[2], fmt.Sprintf("c[%d]", m.specs[w[1]])
	case opSpecConstantOp:
		if len(w) == 5 {
			m.sizes[w[1]] = expression(w[2], m.sizes[w[3]], m.sizes[w[4]])
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

// operators are the operations on specialisation constants that sizes of shared arrays are
// made of.
var operators = map[uint32]string{opIAdd: "+", opISub: "-", opIMul: "*", opUDiv: "/", opShiftLeft: "<<", opShiftRight: ">>"}

// expression is an operation in Go, "" when it or an operand is not understood. Constants
// are unsigned and of 32 bits on both sides. What is divided by is a number.
func expression(op uint32, a, b string) string {
	_, err := strconv.ParseUint(b, 10, 32)
	if operators[op] == "" || a == "" || b == "" || op == opUDiv && (err != nil || b == "0") {
		return ""
	}
	return fmt.Sprintf("(%s %s %s)", a, operators[op], b)
}

// size is the bytes of a type as shared memory, an expression in Go.
func (m *module) size(id uint32) (string, error) {
	switch t := m.types[id]; t.op {
	case opTypeInt, opTypeFloat:
		return strconv.Itoa(int(t.words[0]) / 8), nil
	case opTypeVector:
		n, err := m.size(t.words[0])
		return times(n, strconv.Itoa(int(t.words[1]))), err
	case opTypeArray:
		n, err := m.size(t.words[0])
		length := m.sizes[t.words[1]]
		if length == "" {
			return "", errors.New("kernelgen: shared array whose length is not understood")
		}
		return times(n, length), err
	}
	return "", errors.New("kernelgen: shared variable of a type that is not understood")
}

// times is the product of a size and a number of elements.
func times(size, n string) string {
	a, err := strconv.Atoi(size)
	b, err2 := strconv.Atoi(n)
	switch {
	case err == nil && err2 == nil:
		return strconv.Itoa(a * b)
	case err2 == nil:
		return size + "*" + n
	}
	return size + "*int" + parenthesised(n)
}

func parenthesised(e string) string {
	if strings.HasPrefix(e, "(") {
		return e
	}
	return "(" + e + ")"
}

// abilities are the capabilities that modules may ask for (SPIR-V, section 3.31): those of
// the floor, and those of abilities.
var abilities = map[uint32]device.Ability{
	0: "", 1: "", 46: "", // Matrix, Shader, SampledBuffer
	61: device.Subgroups, 63: device.Subgroups, // GroupNonUniform, GroupNonUniformArithmetic
	6018: device.Dot4, 6019: device.Dot4, // DotProductInput4x8BitPacked, DotProduct
}

// ability is what a module needs beyond the floor.
func (m *module) ability() (needs device.Ability, err error) {
	for _, c := range m.needs {
		a, known := abilities[c]
		switch {
		case !known:
			return "", fmt.Errorf("kernelgen: capability %d is neither of the floor nor of an ability", c)
		case a != "" && needs != "" && a != needs:
			return "", fmt.Errorf("kernelgen: abilities %s and %s in one kernel", needs, a)
		case a != "":
			needs = a
		}
	}
	return needs, nil
}

// kernel is what is made of a text: the table's entry, and the shared memory as an
// expression in Go of the values c of the constants.
type kernel struct {
	device.Shader
	shared string
}

// plus adds a size to an expression.
func plus(sum, size string) string {
	if sum == "" {
		return size
	}
	return sum + " + " + size
}

// reflect reads the table's entry of a kernel back from its module. The module has names
// and all that is declared, so it is not the optimised one.
func reflect(name string, spirv []byte) (kernel, error) {
	s := kernel{Shader: device.Shader{Name: name}}
	m, err := parse(spirv)
	if err != nil {
		return s, err
	}
	if s.Needs, err = m.ability(); err != nil {
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
			s.shared = plus(s.shared, n)
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
