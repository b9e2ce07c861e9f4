package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/abi"
	"ganglion/plugins/meter"
)

// Instance is a plugin as one sequence runs it. It belongs to one goroutine at a time.
type Instance struct {
	p     *Plugin
	g     *guest // nil: closed
	ctx   context.Context
	stack [2]uint64

	// The frame. Where it is and how it is laid out never changes; block is looked at
	// anew after each call.
	at     uint32
	layout *abi.Layout
	gather []int32 // tokens whose logits it wants
	block  []byte

	services Services
	text     []byte // of gg_open
	doc      any    // text, parsed at first use
	key      uint64 // of the random words
	sequence uint32
	vocab    uint32

	hook abi.Hook // being called; 0: none
	step uint32
	draw uint32 // random words that host functions gave in this call
	time uint64 // of WASI's clock, in ns

	until  *deadline // nil: none, but for loading
	rested int64     // fuel that was left when a call of the host last let others run

	// What is left of the fuel for opening: gg_alloc, gg_open and what runs at load share
	// it.
	opening int64

	said   string    // set_error
	cried  string    // first line that this call wrote to standard error
	lines  [2][]byte // that standard output and standard error stand in, during a call
	thrown *Error    // why a host function ended the call
	err    *Error    // the first failure: nothing is called afterwards

	state   kept
	logged  *LogCount
	opened  int // auxiliary sequences
	meta    int
	program *program // gg_run
}

// callContext carries the instance to the host functions of a call.
type callContext struct {
	context.Context
	i *Instance
}

func newInstance(p *Plugin, g *guest) *Instance {
	i := &Instance{p: p, g: g, logged: new(LogCount), opening: p.Fuel(abi.HookOpen), time: max(p.image.time, wasiClockStart)}
	sum := sha256.Sum256([]byte(p.manifest.Name))
	i.key = binary.LittleEndian.Uint64(sum[:])
	i.ctx = &callContext{context.Background(), i}
	return i
}

// look takes the frame's bytes anew: memory may have moved.
func (i *Instance) look() {
	i.block, _ = i.g.memory.Read(i.at, uint32(i.layout.Size)) // it was there, and memory does not shrink
}

func (i *Instance) put(off int, v uint32) { binary.LittleEndian.PutUint32(i.block[off:], v) }
func (i *Instance) get(off int) uint32    { return binary.LittleEndian.Uint32(i.block[off:]) }

// Plugin is what the instance is of.
func (i *Instance) Plugin() *Plugin { return i.p }

// Has tells whether the plugin has a hook.
func (i *Instance) Has(h abi.Hook) bool { return i.p.hooks.Has(h) }

// Frame is the frame with its buffers, in the guest's memory. It is valid until the next
// call, nil once the instance is closed.
func (i *Instance) Frame() []byte { return i.block }

// Layout tells where the buffers are. It does not change.
func (i *Instance) Layout() *abi.Layout { return i.layout }

// Gathered are the tokens of the gather buffer. They do not change, whatever the guest
// writes there, and are only read.
func (i *Instance) Gathered() []int32 { return i.gather }

// Close gives the instance back. It may be called twice.
func (i *Instance) Close() error {
	if i.g == nil {
		return nil
	}
	if i.program != nil {
		i.program.end()
	}
	g := i.g
	i.g, i.block = nil, nil
	if i.err == nil {
		i.p.giveBack(g)
	} else {
		g.close()
	}
	i.p.Close()
	return nil
}

// fail keeps the first failure.
func (i *Instance) fail(code Code, format string, args ...any) *Error {
	if i.err == nil {
		i.err = i.Failure(code, format, args...)
	}
	return i.err
}

// invoke calls a function of the guest with the fuel of a hook. Its arguments are in
// i.stack, its result, if it has one, is returned.
func (i *Instance) invoke(f api.Function, h abi.Hook) (int32, *Error) {
	i.begin(h)
	fuel := i.p.Fuel(h)
	if h == abi.HookOpen {
		fuel = i.opening
	}
	i.fuel(fuel)
	i.rested = fuel
	release := func() {}
	if i.until != nil {
		release = i.until.watch(i)
	}
	err := f.CallWithStack(i.ctx, i.stack[:])
	release()
	i.endLines()
	i.hook = 0
	if h == abi.HookOpen {
		i.opening = max(i.left(), 0)
	}
	if err != nil {
		return 0, i.judge(err, fuel)
	}
	if i.left() < 0 { // behind its last charge that looks at the counter
		if i.until.late() {
			return 0, i.fail(CodeFuel, errLate, i.until.time)
		}
		return 0, i.fail(CodeFuel, "used all of %d", fuel)
	}
	return int32(uint32(i.stack[0])), nil
}

// begin forgets what the call before left.
func (i *Instance) begin(h abi.Hook) { i.hook, i.draw, i.said, i.cried = h, 0, "", "" }

// fuel gives the guest fuel for a call, or what is left of it: a breath of it at a time,
// behind which its code lets others in (see meter.Breath).
func (i *Instance) fuel(all int64) {
	if d := i.until; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		all = d.taken(all)
	}
	now := min(all, meter.Breath)
	i.g.fuel.Set(uint64(now))
	i.g.rest.Set(uint64(all - now))
}

// left is what the guest has left of the fuel of a call.
func (i *Instance) left() int64 {
	if d := i.until; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
	}
	return int64(i.g.fuel.Get() + i.g.rest.Get())
}

// rest lets others run where the guest burnt much since they last could: the collector and
// other goroutines had to wait.
func (i *Instance) rest() {
	if left := i.left(); i.rested-left > restFuel {
		i.rested = left
		runtime.Gosched()
	}
}

// judge says what ended a call.
func (i *Instance) judge(err error, fuel int64) *Error {
	left := i.left()
	text := err.Error()
	switch {
	case left < 0 && i.until.late():
		return i.fail(CodeFuel, errLate, i.until.time)
	case i.thrown != nil:
		i.err = i.thrown
		return i.err
	case strings.HasPrefix(text, "wasm error: unreachable") && left < 0:
		return i.fail(CodeFuel, "used all of %d", fuel)
	case strings.HasPrefix(text, "wasm error: unreachable") && i.g.linear.refused:
		return i.fail(CodeMemory, "ended itself after its memory of %s pages was full: %s", strconv.Itoa(i.p.manifest.MemoryPages), trapMessage(err))
	case strings.HasPrefix(text, "wasm error: ") || strings.HasPrefix(text, "stack overflow"):
		return i.fail(CodeTrap, "%s%s", trapMessage(err), i.lastWords())
	}
	return i.fail(CodePanic, "%s", trapMessage(err))
}

// lastWords are what runtimes say when they end themselves: a panic, and its reason.
func (i *Instance) lastWords() string {
	if i.cried == "" {
		return ""
	}
	return fmt.Sprintf(", having said %q", i.cried)
}

// throw ends the call from inside a host function.
func (i *Instance) throw(code Code, format string, args ...any) {
	i.thrown = i.Failure(code, format, args...)
	panic(i.thrown)
}

// finite tells whether a number can stand in a distribution.
func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
