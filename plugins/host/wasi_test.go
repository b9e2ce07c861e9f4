package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ganglion/plugins/abi"
)

// Places in a guest's memory that the calls below use, and one that there is not.
const (
	wasiA    = 1 << 14
	wasiB    = 1<<14 + 256
	wasiC    = 1<<14 + 4096
	wasiOut  = 1<<15 + 512
	wasiFar  = math.MaxUint32 - 2
	wasiFull = 0xA5 // what stands in memory before each call
)

// wasiCall is a call of WASI and all that it does.
type wasiCall struct {
	name  string
	args  []uint64
	from  map[uint32][]byte // that stands in memory
	want  uint64            // error number
	trap  string            // or how it ends the call
	wrote map[uint32][]byte // and nothing else
	lines []string          // logged, at the latest at the end of the call
	time  uint64            // of the clock after it; 0: where it began
}

func u32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// waitFor is a subscription of poll_oneoff: user data 7, then what is waited for.
func waitFor(tag byte, what uint32, timeout uint64, flags uint16) []byte {
	b := make([]byte, wasiSubscriptionBytes)
	b[0], b[8] = 7, tag
	binary.LittleEndian.PutUint32(b[16:], what)
	binary.LittleEndian.PutUint64(b[24:], timeout)
	binary.LittleEndian.PutUint16(b[40:], flags)
	return b
}

// happened is an event of it.
func happened(tag byte, failure uint16) []byte {
	b := make([]byte, wasiEventBytes)
	b[0], b[10] = 7, tag
	binary.LittleEndian.PutUint16(b[8:], failure)
	return b
}

// poll is a call of poll_oneoff for these subscriptions, with what it answers.
func poll(time uint64, events [][]byte, subscriptions ...[]byte) wasiCall {
	c := wasiCall{name: "poll_oneoff", args: []uint64{wasiA, wasiOut, uint64(len(subscriptions)), wasiC}, time: time}
	c.from = map[uint32][]byte{wasiA: bytes.Join(subscriptions, nil)}
	c.wrote = map[uint32][]byte{wasiOut: bytes.Join(events, nil), wasiC: u32(uint32(len(events)))}
	return c
}

// writeTo is a call of fd_write with these pieces.
func writeTo(file uint64, lines []string, pieces ...string) wasiCall {
	c := wasiCall{name: "fd_write", args: []uint64{file, wasiA, uint64(len(pieces)), wasiOut}, lines: lines}
	c.from = map[uint32][]byte{}
	total, at := uint32(0), uint32(wasiC)
	for _, p := range pieces {
		c.from[wasiA] = append(c.from[wasiA], u32(at, uint32(len(p)))...)
		if p != "" {
			c.from[at] = []byte(p)
		}
		at, total = at+uint32(len(p)), total+uint32(len(p))
	}
	c.wrote = map[uint32][]byte{wasiOut: u32(total)}
	return c
}

// wasiCalls are what ABI.md says of WASI, section 7.
func wasiCalls() (calls []wasiCall) {
	const s = wasiClockStart
	add := func(c ...wasiCall) { calls = append(calls, c...) }
	for _, name := range []string{"args_sizes_get", "environ_sizes_get"} {
		add(wasiCall{name: name, args: []uint64{wasiA, wasiB}, wrote: map[uint32][]byte{wasiA: u32(0), wasiB: u32(0)}})
		add(wasiCall{name: name, args: []uint64{wasiFar, wasiB}, want: wasiFault})
		add(wasiCall{name: name, args: []uint64{wasiA, wasiFar}, want: wasiFault, wrote: map[uint32][]byte{wasiA: u32(0)}})
	}
	for _, name := range []string{"args_get", "environ_get"} {
		add(wasiCall{name: name, args: []uint64{wasiA, wasiB}})
	}
	for id := range uint64(4) {
		add(wasiCall{name: "clock_time_get", args: []uint64{id, 1, wasiA}, wrote: map[uint32][]byte{wasiA: u64(s)}, time: s + 1000})
		add(wasiCall{name: "clock_res_get", args: []uint64{id, wasiA}, wrote: map[uint32][]byte{wasiA: u64(1000)}})
	}
	add(wasiCall{name: "clock_time_get", args: []uint64{4, 1, wasiA}, want: wasiInvalid},
		wasiCall{name: "clock_time_get", args: []uint64{1, 1, wasiFar}, want: wasiFault},
		wasiCall{name: "clock_res_get", args: []uint64{4, wasiA}, want: wasiInvalid},
		wasiCall{name: "clock_res_get", args: []uint64{0, wasiFar}, want: wasiFault})

	hour, minute := waitFor(wasiWaitClock, 1, 3_600e9, 0), waitFor(wasiWaitClock, 0, 60e9, 0)
	rung := happened(wasiWaitClock, 0)
	add(poll(s+3_600e9, [][]byte{rung}, hour),
		poll(s+60e9, [][]byte{rung}, hour, minute),
		poll(s+60e9, [][]byte{rung, rung}, minute, minute),
		poll(0, [][]byte{rung}, waitFor(wasiWaitClock, 1, 0, 0)),
		poll(5*s, [][]byte{rung}, waitFor(wasiWaitClock, 1, 5*s, wasiAbsolute)),
		poll(0, [][]byte{rung}, waitFor(wasiWaitClock, 1, s/2, wasiAbsolute), hour),
		poll(wasiClockEnd, [][]byte{rung}, waitFor(wasiWaitClock, 1, math.MaxUint64, 0)),
		poll(wasiClockEnd, [][]byte{rung}, waitFor(wasiWaitClock, 1, math.MaxUint64, wasiAbsolute)),
		poll(0, [][]byte{happened(wasiWaitRead, wasiBadFile)}, hour, waitFor(wasiWaitRead, 0, 0, 0)),
		poll(0, [][]byte{happened(wasiWaitRead, wasiBadFile)}, waitFor(wasiWaitRead, 1, 0, 0)),
		poll(0, [][]byte{happened(wasiWaitWrite, 0), happened(wasiWaitWrite, wasiBadFile)}, waitFor(wasiWaitWrite, 2, 0, 0), waitFor(wasiWaitWrite, 3, 0, 0)),
		poll(0, [][]byte{happened(wasiWaitClock, wasiInvalid)}, hour, waitFor(wasiWaitClock, 4, 1, 0)),
		poll(0, [][]byte{happened(9, wasiInvalid)}, waitFor(9, 1, 1, 0)))
	for _, args := range [][]uint64{{wasiA, wasiOut, 0, wasiC}, {wasiA, wasiOut, math.MaxUint32, wasiC}} {
		add(wasiCall{name: "poll_oneoff", args: args, want: wasiInvalid})
	}
	for _, args := range [][]uint64{{wasiFar, wasiOut, 1, wasiC}, {wasiA, wasiFar, 1, wasiC}, {wasiA, wasiOut, 1 << 24, wasiC}} {
		add(wasiCall{name: "poll_oneoff", args: args, from: map[uint32][]byte{wasiA: hour}, want: wasiFault})
	}

	add(writeTo(1, []string{"INFO hello"}, "hello\n"),
		writeTo(2, []string{"WARN hello"}, "hello\n"),
		writeTo(1, []string{"INFO pieces"}, "pie", "", "ces"),
		writeTo(1, []string{"INFO one", "INFO two", "INFO three"}, "one\ntw", "o\n\n\nthree"),
		writeTo(1, nil), writeTo(1, nil, "", "\n\n"),
		writeTo(1, []string{"INFO " + strings.Repeat("x", maxLogLine), "INFO xxxxx"}, strings.Repeat("x", maxLogLine+5)))
	for _, file := range []uint64{0, 3, math.MaxUint32} {
		c := writeTo(file, nil, "hello\n")
		c.want, c.wrote = wasiBadFile, nil
		add(c, wasiCall{name: "fd_fdstat_get", args: []uint64{file, wasiA}, want: wasiBadFile})
	}
	for _, args := range [][]uint64{{1, wasiFar, 1, wasiOut}, {1, wasiA, 1, wasiOut}, {1, wasiB, 1, wasiFar}} {
		add(wasiCall{name: "fd_write", args: args, from: map[uint32][]byte{wasiA: u32(wasiFar, 9), wasiB: u32(wasiC, 0)}, want: wasiFault})
	}
	for file := uint64(1); file <= 2; file++ {
		b := make([]byte, wasiFdstatBytes)
		b[0], b[8] = 2, 64
		add(wasiCall{name: "fd_fdstat_get", args: []uint64{file, wasiA}, wrote: map[uint32][]byte{wasiA: b}},
			wasiCall{name: "fd_fdstat_get", args: []uint64{file, wasiFar}, want: wasiFault})
	}
	random := wasiWords(10)
	add(wasiCall{name: "random_get", args: []uint64{wasiA, 10}, wrote: map[uint32][]byte{wasiA: random}},
		wasiCall{name: "random_get", args: []uint64{wasiA, 0}},
		wasiCall{name: "random_get", args: []uint64{wasiFar, 10}, want: wasiFault},
		wasiCall{name: "sched_yield"},
		wasiCall{name: "proc_exit", args: []uint64{7}, trap: "proc_exit(7)"},
		wasiCall{name: "proc_exit", args: []uint64{0}, trap: "proc_exit(0)"})
	said := map[string]bool{}
	for _, c := range calls {
		said[c.name] = true
	}
	for _, f := range wasiFunctions() {
		if want := uint64(wasiNotImplemented); !said[f.name] {
			if strings.HasPrefix(f.name, "fd_") {
				want = wasiBadFile
			}
			add(wasiCall{name: f.name, args: []uint64{1, wasiA, wasiA, wasiA, wasiA, wasiA, wasiA, wasiA, wasiA}, want: want})
		}
	}
	return calls
}

// wasiWords are random bytes of the test's request at hook plan of step 0, after the eight
// words of the frame.
func wasiWords(n int) (b []byte) {
	i := &Instance{key: wasiKey, step: 0, hook: abi.HookPlan}
	for len(b) < n {
		b = append(b, u32(i.random())...)
	}
	return b[:n]
}

const wasiKey = 4711

// wasiFailures makes all calls with these functions and says what was otherwise, by name.
func wasiFailures(t *testing.T, p *Plugin, functions []hostFunction) map[string][]string {
	t.Helper()
	failed := map[string][]string{}
	for n, c := range wasiCalls() {
		var s said
		o := opening(0)
		o.Services.Log = s.logger()
		i := open(t, p, o)
		i.key = wasiKey
		all, _ := i.g.memory.Read(0, i.g.memory.Size())
		for at := range all {
			all[at] = wasiFull
		}
		for at, b := range c.from {
			copy(all[at:], b)
		}
		want := bytes.Clone(all)
		for at, b := range c.wrote {
			copy(want[at:], b)
		}
		stack := append(slices.Clone(c.args), make([]uint64, 10-len(c.args))...)
		i.begin(abi.HookPlan)
		i.fuel(1 << 40)
		trap := ""
		func() {
			defer func() {
				if e, ok := recover().(error); ok {
					trap = e.Error()
				}
			}()
			functions[slices.IndexFunc(functions, func(f hostFunction) bool { return f.name == c.name })].call(i, stack)
		}()
		i.endLines()
		wrong := func(format string, args ...any) {
			failed[c.name] = append(failed[c.name], fmt.Sprintf("call %d, %v: ", n, c.args)+fmt.Sprintf(format, args...))
		}
		switch {
		case (trap != "") != (c.trap != "") || !strings.Contains(trap, c.trap):
			wrong("ends the call with %q, want %q", trap, c.trap)
		case c.trap == "" && c.name != "proc_exit" && stack[0] != c.want:
			wrong("error %d, want %d", stack[0], c.want)
		}
		for at := range all {
			if all[at] != want[at] {
				wrong("byte %#x of memory is %#x, want %#x", at, all[at], want[at])
				break
			}
		}
		if got := s.take(); !slices.Equal(got, c.lines) {
			wrong("says %q, want %q", got, c.lines)
		}
		if got := max(c.time, wasiClockStart); i.time != got {
			wrong("the clock is at %d, want %d", i.time, got)
		}
		_ = i.Close()
	}
	return failed
}

// Each function of WASI does what ABI.md says, and no byte more.
func TestWASI(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	for _, wrong := range wasiFailures(t, p, wasiFunctions()) {
		t.Error(wrong)
	}
}

// The partner: a function that does nothing, that finds every file, or that fails, is found.
func TestWASIFindsWhatIsWrong(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	all := wasiFunctions()
	for kind, call := range map[string]func(f hostFunction) func(*Instance, []uint64){
		"does nothing": func(hostFunction) func(*Instance, []uint64) { return func(_ *Instance, s []uint64) { s[0] = 0 } },
		"fails":        func(hostFunction) func(*Instance, []uint64) { return func(_ *Instance, s []uint64) { s[0] = 44 } },
		"takes any file": func(f hostFunction) func(*Instance, []uint64) {
			return func(i *Instance, s []uint64) { s[0] = 1; f.call(i, s) }
		},
	} {
		other := slices.Clone(all)
		for k, f := range all {
			other[k].call = call(f)
		}
		failed := wasiFailures(t, p, other)
		for _, f := range all {
			silent := kind == "does nothing" && slices.Contains([]string{"args_get", "environ_get", "sched_yield"}, f.name)
			deaf := kind == "takes any file" && f.name != "fd_write" && f.name != "fd_fdstat_get"
			if !silent && !deaf && len(failed[f.name]) == 0 {
				t.Errorf("%s %s: not found; found were %v", f.name, kind, slices.Sorted(maps.Keys(failed)))
			}
		}
	}
}

// What standard output takes has the quota of the log, and is paid for like its lines.
func TestWASIOutputIsBounded(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	var s said
	o := opening(0)
	o.Services.Log = s.logger()
	i := open(t, p, o)
	i.begin(abi.HookPlan)
	i.fuel(1 << 40)
	begun := i.left()
	for range maxLogLines + 50 {
		i.write(1, []byte("line\n"))
	}
	if got := len(s.take()); got != maxLogLines {
		t.Errorf("%d lines, want %d", got, maxLogLines)
	}
	if paid, least := begun-i.left(), int64((maxLogLines+50)*logFuel); paid < least {
		t.Errorf("%d fuel, want %d or more", paid, least)
	}
	// Line feeds alone are no lines, and no work for nothing.
	begun = i.left()
	i.write(1, bytes.Repeat([]byte{'\n'}, 1000))
	if paid := begun - i.left(); paid < 1000*hostCallFuel {
		t.Errorf("1,000 line feeds cost %d fuel", paid)
	}
	i.fuel(hostCallFuel)
	var e *Error
	func() {
		defer func() { err, _ := recover().(error); errors.As(err, &e) }()
		i.write(1, []byte("line\n"))
	}()
	if e == nil || e.Code != CodeFuel {
		t.Errorf("a line without fuel: %v", e)
	}
}

// A guest's clock goes on where its memory does: in a snapshot, and in the pool.
func TestWASIClockIsState(t *testing.T) {
	p := load(t, newRuntime(t, Options{Idle: 1}), testGuest(ordinary))
	i := open(t, p, opening(0))
	read := func(i *Instance) uint64 {
		stack := []uint64{1, 0, wasiA, 0}
		i.begin(abi.HookPlan)
		i.fuel(1 << 40)
		wasiClock(i, stack)
		v, _ := i.g.memory.ReadUint64Le(wasiA)
		return v
	}
	first, second := read(i), read(i)
	state, err := i.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	third := read(i)
	if first != wasiClockStart || second != first+wasiClockStep || third != second+wasiClockStep {
		t.Errorf("the clock says %d, %d, %d", first, second, third)
	}
	_ = read(i)
	if err := i.Restore(state); err != nil {
		t.Fatal(err)
	}
	if got := read(i); got != third {
		t.Errorf("after a restore %d, want %d", got, third)
	}
	_ = i.Close()
	if got := read(open(t, p, opening(0))); got != first {
		t.Errorf("the next request's begins at %d, want %d", got, first)
	}
	p.image.time = 5 * wasiClockStart // as if initialisation had slept
	if got := read(open(t, p, opening(0))); got != 5*wasiClockStart {
		t.Errorf("after initialisation %d", got)
	}
}
