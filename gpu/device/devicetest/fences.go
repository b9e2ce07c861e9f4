package devicetest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"ganglion/gpu/device"
)

var fenceChecks = []check{
	{"fence/timeout", func(e *env) {
		p, out, want := e.long(400 * time.Millisecond)
		var f device.Fence
		for try := 1; ; try++ {
			var err error
			f, err = e.Submit(p)
			e.must(err)
			began := time.Now()
			err = f.Wait(10 * time.Millisecond)
			d := time.Since(began)
			if d > 350*time.Millisecond && try < tries { // something else had the processor
				e.must(f.Wait(patience))
				continue
			}
			e.wants("a wait of 10 ms for what takes 400", err, device.ErrTimeout)
			if d > 350*time.Millisecond {
				e.Errorf("a wait of 10 ms took %v", d)
			}
			break
		}
		e.wants("a wait of no time", f.Wait(0), device.ErrTimeout)
		_, err := e.Submit(p)
		e.wants("a second submission before the first was waited for", err, nil)
		e.must(f.Wait(patience))
		e.must(f.Wait(0))
		e.holds("after the wait", out, want)
		e.must(e.Health())
		e.do(p)
	}},
	{"fence/late", func(e *env) {
		p, out, want := e.long(400 * time.Millisecond)
		other, spare := e.program(device.ProgramOptions{}), e.buffer(64, device.Scratch)
		var f device.Fence
		for try := 1; ; try++ {
			var err error
			f, err = e.Submit(p)
			e.must(err)
			err = f.Wait(10 * time.Millisecond)
			if err == nil && try < tries { // something else had the processor until it had ended
				continue
			}
			e.wants("a wait of 10 ms for what takes 400", err, device.ErrTimeout)
			break
		}
		e.wants("the health of a device that is late", e.Health(), device.ErrTimeout)
		_, err := e.Submit(other)
		e.wants("a submission to a device that is late", err, device.ErrTimeout)
		_, err = e.NewBuffer(64, device.Scratch)
		e.wants("a buffer of a device that is late", err, device.ErrTimeout)
		_, err = e.NewKernel(shader("shift"), nil)
		e.wants("a kernel of a device that is late", err, device.ErrTimeout)
		_, err = e.NewProgram(nil, device.ProgramOptions{})
		e.wants("a program of a device that is late", err, device.ErrTimeout)
		e.wants("writing to a device that is late", spare.Write(0, []byte{1}), device.ErrTimeout)
		e.wants("reading from a device that is late", spare.Read(0, []byte{1}), device.ErrTimeout)
		if err := spare.Close(); err != nil && !errors.Is(err, device.ErrTimeout) {
			e.Errorf("closing a buffer of a device that is late: %v", err)
		}
		e.must(f.Wait(patience))
		e.must(e.Health())
		e.holds("after the wait", out, want)
		e.do(p)
	}},
	{"fence/times", func(e *env) {
		const n = 256
		out := e.buffer(4*n, device.Scratch)
		k := e.kernel("spin")
		var commands []device.Command
		for _, rounds := range []uint32{10, 50000, 10} {
			commands = append(commands, command(k, n/64, bind(out), rounds))
		}
		if times := e.do(e.program(device.ProgramOptions{}, commands...)).Times(); times != nil {
			e.Errorf("a program that is not timed took %v", times)
		}
		p := e.program(device.ProgramOptions{Timed: true}, commands...)
		for range 2 {
			e.timed(p)
		}
	}},
}

// tries are how often a check of times is made anew where something else may have had the
// processor in between: one that is right passes once, one that is wrong never.
const tries = 5

// timed checks the times of a program whose second command takes longest.
func (e *env) timed(p device.Program) {
	e.Helper()
	for try := 1; ; try++ {
		began := time.Now()
		f := e.do(p)
		wall := time.Since(began)
		times := f.Times()
		if !e.Caps().Timer {
			if times != nil {
				e.Errorf("times %v from a device without a timer", times)
			}
			return
		}
		if len(times) != p.Commands() {
			e.Fatalf("%d times, want %d", len(times), p.Commands())
		}
		sum := time.Duration(0)
		for _, d := range times {
			if d < 0 {
				e.Errorf("times %v", times)
			}
			sum += d
		}
		switch {
		case sum <= wall+wall/10 && times[1] >= max(times[0], times[2]) && times[1] > 0:
			return
		case try == tries:
			e.Errorf("times %v within %v, the second command does most", times, wall)
			return
		}
	}
}

// long is a program that takes at least as long as asked for, what it writes, and how
// that begins in the end. It grows by workgroups and then by commands, for llvmpipe ends
// an invocation's loops after 65,535 rounds.
func (e *env) long(least time.Duration) (device.Program, device.Buffer, []uint32) {
	e.Helper()
	const wg, rounds, most = 64, 60000, 60000
	out := e.buffer(4*wg*most, device.Readback)
	k := e.kernel("spin", wg)
	for groups := 16; groups < 1<<30; {
		commands := make([]device.Command, (groups+most-1)/most)
		for i := range commands {
			commands[i] = command(k, min(groups, most), bind(out), rounds)
		}
		p := e.program(device.ProgramOptions{}, commands...)
		took := time.Duration(math.MaxInt64)
		for range 2 { // the first run may have waited for a compiler, or for others
			began := time.Now()
			e.do(p)
			if took = min(took, max(time.Since(began), time.Microsecond)); took < least {
				break
			}
		}
		if took >= least {
			return p, out, spin(2*wg, rounds)
		}
		e.must(p.Close())
		groups *= int(min(least/took+2, 64))
	}
	e.Fatalf("nothing takes %v", least)
	return nil, nil, nil
}

func spin(n int, rounds uint32) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		x := uint32(i)
		for range rounds {
			x = x*1664525 + x>>16 + 1013904223
		}
		words[i] = x
	}
	return words
}

var lifetimeChecks = []check{
	{"device/two", func(e *env) {
		const n = 1000
		all := []*env{e, e.another()}
		bufs := make([][2]device.Buffer, 2)
		for i, d := range all {
			bufs[i] = [2]device.Buffer{d.filled(device.Scratch, noise(n, uint32(i))), d.buffer(4*n, device.Scratch)}
		}
		var programs []device.Program
		for i, d := range all {
			k := d.kernel("shift")
			programs = append(programs, d.program(device.ProgramOptions{}, command(k, 16, bind(bufs[i][0], bufs[i][1]), n, 1)))
		}
		for round := range 4 {
			d := all[round%2]
			d.do(programs[round%2])
		}
		for i, d := range all {
			want, src := make([]uint32, n), noise(n, uint32(i))
			for j := range want {
				want[j] = 3*src[(j+1)%n] + 1
			}
			d.holds(fmt.Sprintf("device %d", i), bufs[i][1], want)
		}
		e.must(all[1].Close())
		e.do(programs[0])
	}},
	{"device/close", func(e *env) {
		k := e.kernel("shift")
		b, c := e.buffer(256, device.Scratch), e.buffer(256, device.Scratch)
		p := e.program(device.ProgramOptions{}, command(k, 1, bind(b, c), 64, 1))
		idle := e.program(device.ProgramOptions{})
		e.must(idle.Close())
		_, err := e.Submit(idle)
		e.wants("submitting a closed program", err, device.ErrClosed)
		f := e.do(p)
		spare := e.buffer(16, device.Weights)
		e.must(spare.Close())
		e.wants("writing to a closed buffer", spare.Write(0, []byte{1}), device.ErrClosed)
		e.wants("reading a closed buffer", spare.Read(0, []byte{1}), device.ErrClosed)
		e.must(e.Close())
		e.must(e.Close())
		_, err = e.NewBuffer(4, device.Scratch)
		e.wants("a buffer of a closed device", err, device.ErrClosed)
		_, err = e.NewKernel(shader("shift"), nil)
		e.wants("a kernel of a closed device", err, device.ErrClosed)
		_, err = e.NewProgram(nil, device.ProgramOptions{})
		e.wants("a program of a closed device", err, device.ErrClosed)
		_, err = e.Submit(p)
		e.wants("submitting to a closed device", err, device.ErrClosed)
		e.wants("writing to a closed device", b.Write(0, []byte{1}), device.ErrClosed)
		e.wants("reading from a closed device", b.Read(0, []byte{1}), device.ErrClosed)
		if err := f.Wait(0); err != nil && !errors.Is(err, device.ErrClosed) {
			e.Errorf("waiting for a closed device: %v", err)
		}
		if f.Times() != nil {
			e.Error("times of a closed device")
		}
		e.must(errors.Join(p.Close(), k.Close(), b.Close(), c.Close()))
	}},
	{"device/close-running", func(e *env) {
		p, _, _ := e.long(200 * time.Millisecond)
		_, err := e.Submit(p)
		e.must(err)
		e.must(e.Close())
	}},
	{"program/close-running", func(e *env) {
		p, _, _ := e.long(200 * time.Millisecond)
		_, err := e.Submit(p)
		e.must(err)
		e.must(p.Close())
	}},
}
