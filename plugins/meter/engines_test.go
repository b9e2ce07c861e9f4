package meter

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"ganglion/plugins/wasm"
)

// alone returns a module whose function "f" takes the operands of one instruction from
// memory, 16 bytes apart, and writes its result to address 64.
func alone(op wasm.Op, lane byte) []byte {
	s, _ := op.Signature()
	load := map[wasm.ValType][]byte{
		wasm.I32: code(wasm.Op(0x28), uint(0)), wasm.I64: code(wasm.Op(0x29), uint(0)),
		wasm.F32: code(wasm.Op(0x2a), uint(0)), wasm.F64: code(wasm.Op(0x2b), uint(0)), wasm.V128: code(wasm.Op(0xfd00), uint(0)),
	}
	store := map[wasm.ValType][]byte{
		wasm.I32: code(wasm.Op(0x36), uint(0)), wasm.I64: code(wasm.Op(0x37), uint(0)),
		wasm.F32: code(wasm.Op(0x38), uint(0)), wasm.F64: code(wasm.Op(0x39), uint(0)), wasm.V128: code(wasm.Op(0xfd0b), uint(0)),
	}
	body := code(wasm.OpI32Const, 64)
	for i, t := range s.Pop {
		body = code(body, wasm.OpI32Const, 16*i, load[t], uint(0))
	}
	body = code(body, op)
	switch {
	case op == wasm.OpShuffle:
		body = code(body, []byte{0, 31, 2, 17, 30, 5, 6, 7, 8, 19, 10, 11, 22, 13, 14, lane})
	case s.Lanes > 0:
		body = code(body, lane)
	}
	return function(nil, nil, nil, code(body, store[s.Push[0]], uint(0)))
}

// edges are bit patterns at which instructions part ways.
var edges = []uint64{
	0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, 0x80000000, 0x7fffffff, 0x7f80000000000000 >> 32, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff7fffffff, 0x8000000080000000,
	math.Float64bits(1.5), math.Float64bits(-2.5), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), math.Float64bits(math.NaN()), 0x7ff0000000000001, 0xfff8000000000000,
	math.Float64bits(1e300), math.Float64bits(2147483647.5), math.Float64bits(-2147483649), math.Float64bits(9.3e18), 1, 0x000fffffffffffff,
	uint64(math.Float32bits(1.5)) * (1<<32 + 1), uint64(math.Float32bits(3e9)) * (1<<32 + 1), uint64(math.Float32bits(-3e9)) * (1<<32 + 1), 0x7fc000007f800000, 0x3f8000007fc00000, 0xff80000080000000, 0x00000001007fffff,
}

// TestEnginesAgree runs every instruction that computes, compiled and interpreted, on
// edges and random bits, and compares the results. They agree in every bit, but for the
// bits of a NaN: which of two NaNs an addition hands on is an engine's own affair, by the
// specification. A guest that looks at the bits of NaNs may see different ones.
func TestEnginesAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for _, base := range []wasm.Op{0, 0xfc00, 0xfd00} {
		for i := range wasm.Op(256) {
			op := base + i
			s, ok := op.Signature()
			if !ok || s.Memory || len(s.Push) != 1 || len(s.Pop) == 0 || op == wasm.OpMemoryGrow {
				continue
			}
			tried++
			lane := byte(0)
			if s.Lanes > 0 {
				lane = byte(s.Lanes - 1)
			}
			module := alone(op, lane)
			fast, slow := open(t, module, policy{}, false), open(t, module, policy{}, true)
			shown := 0
			for range 500 {
				in := make([]byte, 48)
				for at := 0; at < 48; at += 8 {
					v := edges[r.IntN(len(edges))]
					if r.IntN(4) == 0 {
						v = r.Uint64()
					}
					binary.LittleEndian.PutUint64(in[at:], v)
				}
				a, b := try(fast, in), try(slow, in)
				if !bytes.Equal(oneNaN(a, s.Push[0], op), oneNaN(b, s.Push[0], op)) && shown < 3 {
					shown++
					t.Errorf("%s of %x: compiled %x, interpreted %x", op, in[:16*len(s.Pop)], a, b)
				}
			}
		}
	}
	t.Logf("%d instructions", tried)
}

func try(g *guest, in []byte) []byte {
	g.m.Memory().Write(0, in)
	g.m.Memory().Write(64, make([]byte, 16))
	_, left, err := g.call(1000, "f")
	out, _ := g.m.Memory().Read(64, 16)
	if err != nil {
		return []byte(kind(err))
	}
	return append([]byte{byte(left), byte(left >> 8)}, out...)
}

// oneNaN replaces every NaN in a result of floats by the same one.
func oneNaN(result []byte, t wasm.ValType, op wasm.Op) []byte {
	result = bytes.Clone(result)
	double := t == wasm.F64 || op >= 0xfd00+236 && op <= 0xfd00+247
	single := t == wasm.F32 || op >= 0xfd00+224 && op <= 0xfd00+235
	for at := 2; len(result) == 18 && at < 18; at += 4 {
		if double && at%8 == 2 && math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(result[at:]))) {
			copy(result[at:], "one NaN!")
		}
		if single && math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(result[at:])))) {
			copy(result[at:], "NaN!")
		}
	}
	return result
}
