package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// Where the caller finds what it is to call, its arguments and the place of its result: in
// the part of the header that is nobody's.
const (
	callWhich  = 0xd8
	callArgs   = 0xdc
	callResult = 0xf0
	callMost   = (callResult - callArgs) / 4 // arguments
)

// Where the tests put what a guest gives, and where it wants results.
const (
	callerPages = 4
	memoryEnd   = callerPages * memoryPage
	inputAt     = 2 * memoryPage
	outputAt    = 3 * memoryPage
)

// caller is a guest whose hooks prompt, plan and logits call the host function that the
// frame names, with arguments from there.
func caller(functions []hostFunction) []byte {
	const get, load, eq, when, end = byte(0x20), byte(0x28), byte(0x46), byte(0x04), byte(0x0b)
	kinds := map[byte]wasm.ValType{'i': wasm.I32, 'I': wasm.I64, 'f': wasm.F32, 'F': wasm.F64}
	store := map[byte]byte{'i': 0x36, 'I': 0x37, 'f': 0x38, 'F': 0x39}
	types := func(letters string) (out []wasm.ValType) {
		for _, l := range []byte(letters) {
			out = append(out, kinds[l])
		}
		return out
	}
	b := &wasmtest.Builder{}
	var code []byte
	for k, f := range functions {
		at := b.ImportFunc("ganglion", f.name, types(f.params), types(f.results))
		code = append(code, wasmtest.Code(get, uint(0), load, uint(2), uint(callWhich), byte(0x41), k, eq, when, byte(0x40), get, uint(0))...)
		for n := range len(f.params) {
			code = append(code, wasmtest.Code(get, uint(0), load, uint(2), uint(callArgs+4*n))...)
		}
		code = append(code, wasmtest.Code(wasm.OpCall, at, store[f.results[0]], uint(2), uint(callResult), end)...)
	}
	b.Memory(callerPages)
	b.Export("gg_abi_1", wasm.KindFunc, b.Func(nil, i32, nil, wasmtest.Code(byte(0x41), 0)))
	// gg_alloc gives what lies before what it gave last, from the end of the second page down.
	top := b.Global(wasm.I32, true, wasmtest.Code(byte(0x41), inputAt))
	b.Export("gg_alloc", wasm.KindFunc, b.Func([]wasm.ValType{wasm.I32, wasm.I32}, i32, nil, wasmtest.Code(
		byte(0x23), top, get, uint(0), byte(0x6b), byte(0x41), -64, byte(0x71), byte(0x24), top, byte(0x23), top)))
	b.Export("gg_open", wasm.KindFunc, b.Func([]wasm.ValType{wasm.I32, wasm.I32}, i32, nil, wasmtest.Code(byte(0x41), 0)))
	hook := b.Func(i32, i32, nil, append(code, wasmtest.Code(byte(0x41), 0)...))
	for _, h := range []string{"gg_prompt", "gg_plan", "gg_logits"} {
		b.Export(h, wasm.KindFunc, hook)
	}
	file := withManifest(b.Bytes(), `,"hooks":["prompt","plan","logits"],"view":{"logits":"topn","n":8,"text":true},
		"capabilities":["kv","clock","vocab","aux-seq"],"limits":{"memory_pages":4,"fuel":{"prompt":4000000,"plan":4000000,"logits":4000000}}`)
	return wasm.AppendCustom(file, abi.SectionAsset+"a", []byte("asset"))
}

// plainSequences are auxiliary sequences whose logits are the ids of their tokens.
type plainSequences struct{ open int }

func (s *plainSequences) Open([]int32) (int, error) { s.open++; return s.open, nil }
func (s *plainSequences) Row(seq int) []float32 {
	if seq != 1 {
		return nil
	}
	row := make([]float32, 1000)
	for k := range row {
		row[k] = float32(k)
	}
	return row
}
func (s *plainSequences) Stats(seq int) (Stats, bool) { return Stats{Max: 999}, seq == 1 }

// piece is a piece of memory among the arguments of a function.
type piece struct {
	at, n int  // which arguments are its place and its length; n < 0: the length is size
	unit  int  // bytes of one of its length
	size  int  // bytes that are touched with the arguments of the table
	out   bool // the function writes there
}

// pointerCase is a host function and a call of it that is permitted and does its work.
type pointerCase struct {
	name   string
	hook   abi.Hook
	args   []uint32
	input  []byte // at inputAt
	want   int32  // a lower bound of the result
	pieces []piece
}

func words(v ...uint32) (b []byte) {
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// pointerCases are all functions that take pointers.
var pointerCases = []pointerCase{
	{"log", abi.HookPlan, []uint32{1, inputAt, 5}, []byte("hello"), 0, []piece{{at: 1, n: 2, unit: 1, size: 5}}},
	{"set_error", abi.HookPlan, []uint32{inputAt, 5}, []byte("hello"), 0, []piece{{at: 0, n: 1, unit: 1, size: 5}}},
	{"open_num", abi.HookPlan, []uint32{inputAt, 12}, []byte("/config/mode"), 0, []piece{{at: 0, n: 1, unit: 1, size: 12}}},
	{"open_str", abi.HookPlan, []uint32{inputAt, 12, outputAt, 64}, []byte("/plugin/name"), 5, []piece{{at: 0, n: 1, unit: 1, size: 12}, {at: 2, n: 3, unit: 1, size: 5, out: true}}},
	{"open_len", abi.HookPlan, []uint32{inputAt, 13}, []byte("/config/words"), 2, []piece{{at: 0, n: 1, unit: 1, size: 13}}},
	{"tok_bytes", abi.HookPlan, []uint32{4, outputAt, 8}, nil, 3, []piece{{at: 1, n: 2, unit: 1, size: 3, out: true}}},
	{"tok_encode", abi.HookPlan, []uint32{inputAt, 3, 0, outputAt, 8}, []byte("aab"), 2, []piece{{at: 0, n: 1, unit: 1, size: 3}, {at: 3, n: 4, unit: 4, size: 8, out: true}}},
	{"tok_decode", abi.HookPlan, []uint32{inputAt, 2, outputAt, 8}, words(1, 2), 3, []piece{{at: 0, n: 1, unit: 4, size: 8}, {at: 2, n: 3, unit: 1, size: 3, out: true}}},
	{"text_tail", abi.HookPlan, []uint32{4, outputAt, 8}, nil, 4, []piece{{at: 1, n: 2, unit: 1, size: 4, out: true}}},
	{"vocab_mask", abi.HookPrompt, []uint32{1, inputAt, 2, outputAt}, []byte("ab"), 3, []piece{{at: 1, n: 2, unit: 1, size: 2}, {at: 3, n: -1, size: 128, out: true}}},
	{"vocab_load", abi.HookPrompt, []uint32{0, outputAt}, nil, 4000, []piece{{at: 1, n: -1, size: 4024, out: true}}},
	{"kv_get", abi.HookPlan, []uint32{inputAt, 3, outputAt, 8}, []byte("old"), 3, []piece{{at: 0, n: 1, unit: 1, size: 3}, {at: 2, n: 3, unit: 1, size: 3, out: true}}},
	{"kv_set", abi.HookPlan, []uint32{inputAt, 3, inputAt + 3, 2}, []byte("newab"), 0, []piece{{at: 0, n: 1, unit: 1, size: 3}, {at: 2, n: 3, unit: 1, size: 2}}},
	{"kv_del", abi.HookPlan, []uint32{inputAt, 3}, []byte("old"), 0, []piece{{at: 0, n: 1, unit: 1, size: 3}}},
	{"asset_read", abi.HookPlan, []uint32{inputAt, 1, 0, outputAt, 64}, []byte("a"), 5, []piece{{at: 0, n: 1, unit: 1, size: 1}, {at: 3, n: 4, unit: 1, size: 5, out: true}}},
	{"meta_set", abi.HookPlan, []uint32{inputAt, 3, inputAt + 3, 2}, []byte("new10"), 0, []piece{{at: 0, n: 1, unit: 1, size: 3}, {at: 2, n: 3, unit: 1, size: 2}}},
	{"aux_open", abi.HookPrompt, []uint32{inputAt, 2, 0}, words(1, 2), 1, []piece{{at: 0, n: 1, unit: 4, size: 8}}},
	{"aux_logits", abi.HookLogits, []uint32{1, inputAt, 2, outputAt}, words(7, 9), 2, []piece{{at: 1, n: 2, unit: 4, size: 8}, {at: 3, n: 2, unit: 4, size: 8, out: true}}},
	{"aux_stats", abi.HookLogits, []uint32{1, outputAt}, nil, 0, []piece{{at: 1, n: -1, size: 20, out: true}}},
}

// outside are places and lengths that a piece of memory may not have: argument a of the
// place and n of the length. Places alone are for pieces of which the host knows the
// length.
func (p piece) outside() map[string][2]uint32 {
	size := uint32(p.size)
	out := map[string][2]uint32{
		"last byte outside": {memoryEnd - size + 1, 0},
		"first byte inside": {memoryEnd - 1, 0},
		"the end":           {memoryEnd, 0},
		"past the end":      {memoryEnd + memoryPage, 0},
		"negative":          {1 << 31, 0},
		"highest":           {math.MaxUint32, 0},
		"sum overflows":     {-size, 0}, // place and length are 2³² together
	}
	if p.size == 1 {
		delete(out, "first byte inside")
	}
	if p.n < 0 || p.out {
		return out
	}
	for name, n := range map[string]uint32{
		"huge": math.MaxUint32, "negative length": 1 << 31, "highest positive": math.MaxInt32, "as long as memory": memoryEnd,
		"a word too long": (memoryEnd-inputAt)/uint32(p.unit) + 1, "bytes overflow to 0": 1 << 30, "bytes overflow to 4": 1<<30 + 1, "half overflows": 1<<31 + 1,
	} {
		out[name] = [2]uint32{inputAt, n}
	}
	return out
}

// callHost makes the guest call a function and returns what it got.
func callHost(t *testing.T, i *Instance, functions []hostFunction, c *pointerCase, args []uint32) (result int64, number float64, err error) {
	t.Helper()
	which := slices.IndexFunc(functions, func(f hostFunction) bool { return f.name == c.name })
	i.put(callWhich, uint32(which))
	for k := range callMost {
		v := uint32(0)
		if k < len(args) {
			v = args[k]
		}
		i.put(callArgs+4*k, v)
	}
	i.put(callResult, 0xDEADBEEF)
	_, fuel, err := i.Call(c.hook)
	if err == nil && fuel < hostCallFuel {
		t.Errorf("%s%v cost %d fuel", c.name, args, fuel)
	}
	if err != nil {
		return 0, 0, err
	}
	return int64(int32(i.get(callResult))), math.Float64frombits(uint64(i.get(callResult)) | uint64(i.get(callResult+4))<<32), nil
}

// badPointers calls a function with every bad place and length, and tells what was wrong.
func badPointers(t *testing.T, p *Plugin, functions []hostFunction, c *pointerCase) (wrong []string) {
	t.Helper()
	// Each call has an instance of its own, as it has quotas, and is permitted.
	call := func(args []uint32) (result int64, number float64, before, after []byte, err error) {
		o := opening(0)
		o.Services.Sequences = &plainSequences{}
		i, err := p.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = i.Close() }()
		i.g.memory.Write(inputAt, c.input)
		memory, _ := i.g.memory.Read(inputAt, memoryEnd-inputAt) // behind the frame
		before = bytes.Clone(memory)
		result, number, err = callHost(t, i, functions, c, args)
		return result, number, before, bytes.Clone(memory), err
	}
	result, number, before, after, err := call(c.args) // the partner: it is permitted
	if err != nil || int32(result) < c.want && c.name != "open_num" || c.name == "open_num" && number != 0 {
		t.Errorf("%s%v is %d, %g, %v; want at least %d", c.name, c.args, result, number, err, c.want)
	}
	writes := slices.ContainsFunc(c.pieces, func(p piece) bool { return p.out })
	if writes == bytes.Equal(before, after) {
		t.Errorf("%s%v writes: %v", c.name, c.args, !writes)
	}
	for _, piece := range c.pieces {
		for name, bad := range piece.outside() {
			args := slices.Clone(c.args)
			args[piece.at] = bad[0]
			if bad[1] != 0 {
				args[piece.n] = bad[1]
			}
			result, number, before, after, err := call(args)
			refused := result == int64(abi.Invalid) || result == int64(abi.OverQuota) && bad[1] != 0 || result == int64(abi.NotFound) && c.name == "asset_read" && bad[1] != 0
			if c.name == "open_num" {
				refused = math.IsNaN(number)
			}
			if err != nil || !refused || !bytes.Equal(before, after) {
				wrong = append(wrong, fmt.Sprintf("%s, argument %d, %s: %s(%#x) is %d, %v, memory is as it was: %v", c.name, piece.at, name, c.name, args, result, err, bytes.Equal(before, after)))
			}
		}
		// Places and lengths that look odd and are in memory are no reason to fall over: null
		// is a place as any other.
		for _, odd := range [][2]uint32{{0, 0}, {memoryEnd, 0}, {0, 1}, {memoryEnd - 1, 1}, {0, 4}} {
			if piece.n < 0 || piece.out && odd[1] != 0 {
				continue
			}
			args := slices.Clone(c.args)
			args[piece.at], args[piece.n] = odd[0], odd[1]
			if _, _, before, after, err := call(args); err != nil || piece.out && !bytes.Equal(before, after) {
				wrong = append(wrong, fmt.Sprintf("%s, argument %d: %s(%#x): %v, memory is as it was: %v", c.name, piece.at, c.name, args, err, bytes.Equal(before, after)))
			}
		}
		if piece.out && piece.n >= 0 && c.name != "aux_logits" { // room is a claim, and what is written is no more than the result
			args := slices.Clone(c.args)
			args[piece.n] = math.MaxUint32
			result, _, before, after, err := call(args)
			end := outputAt - inputAt + piece.size
			if err != nil || int32(result) < c.want || !bytes.Equal(before[end:], after[end:]) {
				wrong = append(wrong, fmt.Sprintf("%s: %s(%#x) is %d, %v", c.name, c.name, args, result, err))
			}
			args[piece.n] = uint32(piece.size/piece.unit) - 1
			if result, _, before, after, err := call(args); err != nil || c.name != "asset_read" && c.name != "text_tail" && (result != int64(abi.TooSmall(piece.size/piece.unit)) || !bytes.Equal(before, after)) {
				wrong = append(wrong, fmt.Sprintf("%s: %s(%#x) is %d, %v", c.name, c.name, args, result, err))
			}
		}
	}
	return wrong
}

// TestBadPointers: every host function that takes places in memory refuses those that are
// not there, where it would do its work otherwise; nothing traps, nothing is written.
func TestBadPointers(t *testing.T) {
	// The partner: a function that looks at the place of its buffer alone is found out.
	careless := hostFunction{"careless", "ii", "i", func(i *Instance, s []uint64) {
		memory, _ := i.bytes(0, i.g.memory.Size())
		s[0] = result(int32(len(memory[arg(s[0]):][:arg(s[1])])))
	}}
	known := hostFunctions
	t.Cleanup(func() { hostFunctions = known })
	hostFunctions = append(slices.Clone(known), careless)
	functions := hostFunctions
	for _, interpreter := range []bool{false, true} {
		r := newRuntime(t, Options{Interpreter: interpreter, AllowSlow: true})
		p := load(t, r, caller(functions))
		for n := range pointerCases {
			c := &pointerCases[n]
			for _, w := range badPointers(t, p, functions, c) {
				t.Errorf("interpreter %v: %s", interpreter, w)
			}
		}
		c := pointerCase{"careless", abi.HookPlan, []uint32{inputAt, 5}, nil, 0, []piece{{at: 0, n: 1, unit: 1, size: 5}}}
		if len(badPointers(t, p, functions, &c)) < 5 {
			t.Error("a function that checks nothing passes")
		}
	}
	for _, f := range known {
		takes := slices.ContainsFunc(pointerCases, func(c pointerCase) bool { return c.name == f.name })
		none := slices.Contains([]string{"tok_special", "tok_is_eog", "vocab_bytes", "rand_u32", "rand_f32", "clock_ms", "rest", "next"}, f.name)
		if takes == none {
			t.Errorf("%s: in the table: %v, takes no pointers: %v", f.name, takes, none)
		}
	}
}

// TestBadNumbers: arguments that are no places, out of range, of calls that are permitted.
func TestBadNumbers(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), caller(hostFunctions))
	huge := []uint32{1 << 31, math.MaxInt32, math.MaxUint32}
	for _, tt := range []struct {
		name  string
		hook  abi.Hook
		args  []uint32
		input []byte
		which int // the argument that changes
		good  int64
		bad   []uint32
		want  []int64
	}{
		{"log", abi.HookPlan, []uint32{1, inputAt, 1}, nil, 0, 0, append(huge, 4), []int64{abi.Invalid}},
		{"tok_bytes", abi.HookPlan, []uint32{4, outputAt, 8}, nil, 0, 3, append(huge, 1000), []int64{abi.Invalid}},
		{"tok_encode", abi.HookPlan, []uint32{inputAt, 3, 3, outputAt, 8}, []byte("aab"), 2, 2, append(huge, 4), []int64{abi.Invalid}},
		{"tok_decode", abi.HookPlan, []uint32{inputAt, 1, outputAt, 8}, words(1, 1000), 1, 2, append(huge, 2, 1<<16+1), []int64{abi.Invalid, abi.OverQuota}},
		{"tok_special", abi.HookPlan, []uint32{1}, nil, 0, 0, append(huge, 5), []int64{abi.Invalid}},
		{"tok_is_eog", abi.HookPlan, []uint32{0}, nil, 0, 1, append(huge, 1000), []int64{abi.Invalid}},
		{"vocab_mask", abi.HookPrompt, []uint32{1, inputAt, 1, outputAt}, []byte("a"), 0, 5, append(huge, 8), []int64{abi.Invalid}},
		{"vocab_bytes", abi.HookPrompt, []uint32{0}, nil, 0, 4024, append(huge, 3), []int64{abi.Invalid}},
		{"vocab_load", abi.HookPrompt, []uint32{0, outputAt}, nil, 0, 4024, append(huge, 3), []int64{abi.Invalid}},
		{"text_tail", abi.HookPlan, []uint32{11, outputAt, 64}, nil, 0, 11, huge, []int64{11}}, // more than there is: all
		{"asset_read", abi.HookPlan, []uint32{inputAt, 1, 0, outputAt, 64}, []byte("a"), 2, 5, append(huge, 5), []int64{0}},
		{"aux_open", abi.HookPrompt, []uint32{inputAt, 1, 0}, words(1, 1000), 1, 1, append(huge, 0, 2), []int64{abi.Invalid}},
		{"aux_logits", abi.HookLogits, []uint32{1, inputAt, 1, outputAt}, words(7, 1000), 0, 1, append(huge, 0, 2), []int64{abi.NotFound}},
		{"aux_logits", abi.HookLogits, []uint32{1, inputAt, 1, outputAt}, words(7, 1000), 2, 1, append(huge, 2), []int64{abi.Invalid}},
		{"aux_stats", abi.HookLogits, []uint32{1, outputAt}, nil, 0, 0, append(huge, 0, 2), []int64{abi.NotFound}},
		{"rest", abi.HookPlan, []uint32{0}, nil, 0, 0, huge, []int64{0}},
		{"next", abi.HookPlan, []uint32{0}, nil, 0, abi.NotPermitted, huge, []int64{abi.NotPermitted}}, // no program runs
	} {
		c := &pointerCase{name: tt.name, hook: tt.hook}
		call := func(v uint32) int64 {
			o := opening(0)
			o.Services.Sequences = &plainSequences{}
			i := open(t, p, o)
			i.g.memory.Write(inputAt, tt.input)
			args := slices.Clone(tt.args)
			args[tt.which] = v
			got, _, err := callHost(t, i, hostFunctions, c, args)
			if err != nil {
				t.Errorf("%s(%d as argument %d): %v", tt.name, v, tt.which, err)
			}
			_ = i.Close()
			return got
		}
		if got := call(tt.args[tt.which]); got != tt.good { // the partner
			t.Errorf("%s%v is %d, want %d", tt.name, tt.args, got, tt.good)
		}
		for _, v := range tt.bad {
			if got := call(v); !slices.Contains(tt.want, got) {
				t.Errorf("%s(%#x as argument %d) is %d, want one of %d", tt.name, v, tt.which, got, tt.want)
			}
		}
	}
}

// TestProgramAnswersBadly: next is called where it is permitted with numbers that are no
// actions.
func TestProgramAnswersBadly(t *testing.T) {
	b := &wasmtest.Builder{}
	next := b.ImportFunc("ganglion", "next", i32, i32)
	base(b, 1, 0)
	const get, constant = byte(0x20), byte(0x41)
	b.Export("gg_run", wasm.KindFunc, b.Func(i32, i32, nil, wasmtest.Code(constant, 0, wasm.OpCall, next, wasm.OpDrop,
		wasm.OpLoop, byte(0x40), get, uint(0), byte(0x28), uint(2), uint(callArgs), wasm.OpCall, next, wasm.OpDrop, byte(0x0c), uint(0), wasm.OpEnd, constant, 0)))
	p := load(t, newRuntime(t, Options{}), withManifest(b.Bytes(), `,"hooks":["run","plan"],"view":{"edits":8}`))
	for actions, want := range map[uint32]Code{
		0: "", uint32(abi.Edits): "", math.MaxUint32: CodeError, 1 << 31: CodeError,
		math.MaxInt32: CodeAction, 1 << 20: CodeAction, uint32(abi.Token): CodeAction, uint32(abi.Edits | abi.Mask): CodeAction,
	} {
		i := open(t, p, opening(0))
		i.put(callArgs, actions)
		got, _, err := i.Call(abi.HookPlan)
		if codeOf(err) != want || err == nil && uint32(got) != actions {
			t.Errorf("%#x: %v, %v, want %q", actions, got, err, want)
		}
		_ = i.Close()
	}
}
