//go:build wasip1

// The Go side of the Ganglion plugin ABI 1.0 (plugins/abi/ABI.md): one file that is
// compiled with the plugin, as its package main.
//
// A plugin sets Hooks in an init function and has an empty main:
//
//	func init() { Hooks = Plugin{Open: open, Logits: logits} }
//	func main() {}
//
// The manifest's hooks must be those that are set, and its capabilities hold wasi-stubs,
// for Go's runtime needs them.

package main

import (
	"math"
	"unsafe"
)

// Frame is what one call knows and answers; ABI.md tells what each field means.
type Frame struct {
	Magic, Size, ABI, Hook, Flags, Step, Position, Sequence  uint32
	Vocab, LastToken, NPrompt, NGenerated                    uint32
	historyOff, historyLen, HistoryPos                       uint32
	CandCap, CandN, candIDsOff, candLogitsOff                uint32
	gatherN, gatherIDsOff, gatherLogitsOff, fullOff, maskOff uint32
	editOff, editCap, EditN, outOff, outCap, OutN, inOff     uint32
	inN                                                      uint32
	Max, Mean, Std, LogSumExp, Entropy, CandMass, Temp       float32
	NFinite                                                  uint32
	Random                                                   [8]uint32
	Token, Backtrack, StopReason, WakeStep                   uint32
	Fuel                                                     uint64
	_                                                        [10]uint32
}

var _ [256]byte = [unsafe.Sizeof(Frame{})]byte{}

// Action bits.
const (
	Edits = 1 << iota
	Mask
	Cands
	Full
	Temp
	Token
	Force
	Backtrack
	Stop
	Text
	Idle
)

// What an edit does to a logit.
const (
	OpAdd = iota
	OpSet
	OpMulSigned
	OpBan
	OpMin
	OpMax
)

func ggPart[T any](f *Frame, off, n uint32) []T {
	if off == 0 {
		return nil
	}
	// The host laid the block out behind the frame, in one allocation of gg_alloc.
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(f), off)), n)
}

// IDs and Logits are the candidates, best first.
func (f *Frame) IDs() []uint32      { return ggPart[uint32](f, f.candIDsOff, f.CandN) }
func (f *Frame) Logits() []float32  { return ggPart[float32](f, f.candLogitsOff, f.CandN) }
func (f *Frame) Gather() []float32  { return ggPart[float32](f, f.gatherLogitsOff, f.gatherN) }
func (f *Frame) Full() []float32    { return ggPart[float32](f, f.fullOff, f.Vocab) }
func (f *Frame) Mask() []uint32     { return ggPart[uint32](f, f.maskOff, (f.Vocab+31)/32) }
func (f *Frame) History() []uint32  { return ggPart[uint32](f, f.historyOff, f.historyLen) }
func (f *Frame) TokensIn() []uint32 { return ggPart[uint32](f, f.inOff, f.inN) }
func (f *Frame) TextIn() []byte     { return ggPart[byte](f, f.inOff, f.inN) }

// Edit appends an edit; false where there is no room for one more.
func (f *Frame) Edit(id, op uint32, value float32) bool {
	if f.EditN >= f.editCap {
		return false
	}
	r := ggPart[uint32](f, f.editOff, 2*f.editCap)[2*f.EditN:]
	r[0], r[1] = id|op<<28, math.Float32bits(value)
	f.EditN++
	return true
}

// Force appends a token that must come next.
func (f *Frame) Force(id uint32) bool {
	if f.OutN >= f.outCap/4 {
		return false
	}
	ggPart[uint32](f, f.outOff, f.outCap/4)[f.OutN] = id
	f.OutN++
	return true
}

// Say makes text the answer of hook text; return the action Text.
func (f *Frame) Say(text []byte) bool {
	f.OutN = uint32(copy(ggPart[byte](f, f.outOff, f.outCap), text))
	return int(f.OutN) == len(text)
}

// Plugin is what a plugin does at its hooks; nil where it has none. Open returns 0, 1 for
// "not interested in this request", or Fail(text).
type Plugin struct {
	Open                                                      func() int32
	Prompt, Plan, Logits, Choose, Accept, Text, End, Rollback func(*Frame) int32
}

// Hooks is set by the plugin.
var Hooks Plugin

func ggCall(hook func(*Frame) int32, f unsafe.Pointer) int32 {
	if hook == nil {
		return 0
	}
	return hook((*Frame)(f))
}

var ggBlocks [][]uint64 // keeps what the host was given from the collector

//go:wasmexport gg_abi_1
func ggABI() int32 { return 0 }

//go:wasmexport gg_alloc
func ggAlloc(size, align uint32) uint32 {
	b := make([]uint64, (size+align)/8+1)
	ggBlocks = append(ggBlocks, b)
	at := uint32(uintptr(unsafe.Pointer(&b[0])))
	return (at + align - 1) &^ (align - 1)
}

//go:wasmexport gg_open
func ggOpen(uint32, uint32) int32 {
	if Hooks.Open == nil {
		return 0
	}
	return Hooks.Open()
}

//go:wasmexport gg_prompt
func ggPrompt(f unsafe.Pointer) int32 { return ggCall(Hooks.Prompt, f) }

//go:wasmexport gg_plan
func ggPlan(f unsafe.Pointer) int32 { return ggCall(Hooks.Plan, f) }

//go:wasmexport gg_logits
func ggLogits(f unsafe.Pointer) int32 { return ggCall(Hooks.Logits, f) }

//go:wasmexport gg_choose
func ggChoose(f unsafe.Pointer) int32 { return ggCall(Hooks.Choose, f) }

//go:wasmexport gg_accept
func ggAccept(f unsafe.Pointer) int32 { return ggCall(Hooks.Accept, f) }

//go:wasmexport gg_text
func ggText(f unsafe.Pointer) int32 { return ggCall(Hooks.Text, f) }

//go:wasmexport gg_end
func ggEnd(f unsafe.Pointer) int32 { return ggCall(Hooks.End, f) }

//go:wasmexport gg_rollback
func ggRollback(f unsafe.Pointer) int32 { return ggCall(Hooks.Rollback, f) }

//go:wasmimport ganglion set_error
func hostSetError(text unsafe.Pointer, n uint32) int32

//go:wasmimport ganglion log
func hostLog(level int32, text unsafe.Pointer, n uint32) int32

//go:wasmimport ganglion open_num
func hostOpenNum(pointer unsafe.Pointer, n uint32) float64

//go:wasmimport ganglion open_str
func hostOpenStr(pointer unsafe.Pointer, n uint32, out unsafe.Pointer, room uint32) int32

//go:wasmimport ganglion open_len
func hostOpenLen(pointer unsafe.Pointer, n uint32) int32

//go:wasmimport ganglion tok_bytes
func hostTokBytes(id uint32, out unsafe.Pointer, room uint32) int32

//go:wasmimport ganglion tok_encode
func hostTokEncode(text unsafe.Pointer, n, flags uint32, out unsafe.Pointer, room uint32) int32

//go:wasmimport ganglion tok_is_eog
func hostTokIsEOG(id uint32) int32

//go:wasmimport ganglion rand_u32
func RandU32() uint32

//go:wasmimport ganglion rest
func hostRest() int32

// Rest lets others run: for loops that last milliseconds.
func Rest() { hostRest() }

func ggBytes(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

// Fail gives the host a message and is the value to return.
func Fail(text string) int32 {
	p, n := ggBytes(text)
	hostSetError(p, n)
	return -1
}

// Log writes a line: level 0 debug, 1 info, 2 warning, 3 error.
func Log(level int32, text string) {
	p, n := ggBytes(text)
	hostLog(level, p, n)
}

// Number reads a number of the text of gg_open by JSON pointer; other where there is none.
func Number(pointer string, other float64) float64 {
	p, n := ggBytes(pointer)
	if v := hostOpenNum(p, n); v == v {
		return v
	}
	return other
}

// String reads a string of the text of gg_open.
func String(pointer string) (string, bool) {
	p, n := ggBytes(pointer)
	b := make([]byte, 256)
	got := hostOpenStr(p, n, unsafe.Pointer(&b[0]), uint32(len(b)))
	if got <= -100 {
		b = make([]byte, -got-100)
		got = hostOpenStr(p, n, unsafe.Pointer(&b[0]), uint32(len(b)))
	}
	if got < 0 {
		return "", false
	}
	return string(b[:got]), true
}

// Length is the number of elements at a JSON pointer.
func Length(pointer string) int {
	p, n := ggBytes(pointer)
	return int(hostOpenLen(p, n))
}

// TokenBytes are the bytes of a token, valid until the next call.
func TokenBytes(id uint32) []byte {
	n := hostTokBytes(id, unsafe.Pointer(&ggPiece[0]), uint32(len(ggPiece)))
	return ggPiece[:max(n, 0)]
}

var ggPiece [1024]byte

// Encode makes tokens of a text; flags: 1 special tokens by name, 2 with the first token.
func Encode(text string, flags uint32) []uint32 {
	p, n := ggBytes(text)
	ids := make([]uint32, len(text)+2)
	return ids[:max(hostTokEncode(p, n, flags, unsafe.Pointer(&ids[0]), uint32(len(ids))), 0)]
}

// IsEOG tells whether a token ends a text.
func IsEOG(id uint32) bool { return hostTokIsEOG(id) == 1 }
