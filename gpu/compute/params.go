package compute

import (
	"encoding/binary"
	"math"
)

// params is the parameter block of a dispatch, built in the order in which the shader
// declares it: params{}.u32(…).f32(…). Its length is checked against the shader.
type params []byte

func (p params) u32(v ...uint32) params {
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, x)
	}
	return p
}

func (p params) i32(v ...int) params {
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, uint32(int32(x)))
	}
	return p
}

func (p params) f32(v ...float32) params {
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

// view appends where a view's first column lies in row 0, and its stride.
func (p params) view(o operand) params { return p.u32(o.at, o.stride) }

// bytes appends parameters that were built elsewhere.
func (p params) bytes(o params) params { return append(p, o...) }
