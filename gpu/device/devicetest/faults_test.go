package devicetest

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// rig is a device with faults, and a program of three kernels in a row on it: each adds
// one and the eight words before: a → b → c → out.
type rig struct {
	t       *testing.T
	d       *Faulty
	buffers []device.Buffer
	program device.Program
}

func newRig(t *testing.T, faults ...Fault) *rig {
	t.Helper()
	r := &rig{t: t, d: Inject(roomy(), faults...)}
	for _, u := range []device.Usage{device.Upload, device.Scratch, device.Scratch, device.Readback} {
		b, err := r.d.NewBuffer(64, u)
		r.check(err)
		r.buffers = append(r.buffers, b)
	}
	var commands []device.Command
	for i, name := range []string{"first", "second", "third"} {
		k, err := r.d.NewKernel(adder(name), nil)
		r.check(err)
		commands = append(commands, device.Command{Kernel: k, Bindings: bind(r.buffers[i], r.buffers[i+1]), Groups: [3]uint32{1, 1, 1}})
	}
	var err error
	r.program, err = r.d.NewProgram(commands, device.ProgramOptions{})
	r.check(err)
	return r
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// run clears the buffers, submits the program and gives the fate and what it wrote.
func (r *rig) run() ([]uint32, error) {
	for _, b := range r.buffers[1:3] {
		if err := b.Write(0, make([]byte, 32)); err != nil {
			return nil, err
		}
	}
	out := r.buffers[3]
	if err := out.Write(0, make([]byte, 32)); err != nil {
		return nil, err
	}
	f, err := r.d.Submit(r.program)
	if err != nil {
		return nil, err
	}
	if err := f.Wait(5 * time.Millisecond); err != nil {
		return nil, err
	}
	data := make([]byte, 32)
	if err := out.Read(0, data); err != nil {
		return nil, err
	}
	words := make([]uint32, 8)
	for i := range words {
		words[i] = uint32(data[4*i]) | uint32(data[4*i+1])<<8 | uint32(data[4*i+2])<<16 | uint32(data[4*i+3])<<24
	}
	return words, nil
}

// runs gives what each of n runs came to: the words it wrote, or the error's sentinel.
func (r *rig) runs(n int) (all []any) {
	for range n {
		words, err := r.run()
		switch {
		case errors.Is(err, device.ErrLost):
			all = append(all, device.ErrLost)
		case errors.Is(err, device.ErrTimeout):
			all = append(all, device.ErrTimeout)
		case err != nil:
			r.t.Fatal(err)
		default:
			all = append(all, words)
		}
	}
	return all
}

func eight(v uint32) []uint32 { return slices.Repeat([]uint32{v}, 8) }

// altered is eight words of which some have the bit that alter flips.
func altered(v, bit uint32, which ...int) []uint32 {
	words := eight(v)
	for _, i := range which {
		words[i] = v + bit
	}
	return words
}

func TestFaults(t *testing.T) {
	const bit = 1 << 22
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	good := eight(3)
	for _, tt := range []struct {
		name   string
		faults []Fault
		want   []any
		fired  int
	}{
		{"none", nil, []any{good, good, good}, 0},
		{"lost at 1", []Fault{{Kind: Lost, N: 1}}, []any{device.ErrLost, device.ErrLost, device.ErrLost}, 1},
		{"lost at 2", []Fault{{Kind: Lost, N: 2}}, []any{good, device.ErrLost, device.ErrLost}, 1},
		{"hang at 2", []Fault{{Kind: Hang, N: 2}}, []any{good, device.ErrTimeout, device.ErrTimeout}, 1},
		{"stale at 2", []Fault{{Kind: Stale, N: 2}}, []any{good, eight(0), good}, 1},
		{"stale from 2", []Fault{{Kind: Stale, N: 2, From: true}}, []any{good, eight(0), eight(0)}, 2},
		{"tile at 2", []Fault{{Kind: WrongTile, N: 2, Usage: device.Readback, Offset: 8, Bytes: 8}}, []any{good, altered(3, bit, 2, 3), good}, 1},
		{"tile of every one", []Fault{{Kind: WrongTile, Usage: device.Readback}}, []any{altered(3, bit, all...), altered(3, bit, all...), altered(3, bit, all...)}, 3},
		{"tile of a buffer that nobody reads any more", []Fault{{Kind: WrongTile, N: 1, Usage: device.Scratch, Buffer: 1}}, []any{good, good, good}, 1},
		{"first kernel", []Fault{{Kind: WrongKernel, Kernel: "first"}}, []any{altered(3, bit, all...), altered(3, bit, all...), altered(3, bit, all...)}, 3},
		{"second kernel at 2", []Fault{{Kind: WrongKernel, Kernel: "second", N: 2, Bytes: 4, Offset: 20}}, []any{good, altered(3, bit, 5), good}, 1},
		{"last kernel from 2", []Fault{{Kind: WrongKernel, Kernel: "third", N: 2, From: true, Bytes: 4}}, []any{good, altered(3, bit, 0), altered(3, bit, 0)}, 2},
		{"another kernel", []Fault{{Kind: WrongKernel, Kernel: "fourth"}}, []any{good, good, good}, 0},
		{"stale, then lost", []Fault{{Kind: Lost, N: 3}, {Kind: Stale, N: 1}}, []any{eight(0), good, device.ErrLost}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Twice: a fault strikes the same each time.
			for range 2 {
				r := newRig(t, tt.faults...)
				if got := r.runs(3); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got  %v\nwant %v", got, tt.want)
				}
				if fired := r.d.Fired(); len(fired) != tt.fired {
					t.Errorf("fired %v, want %d times", fired, tt.fired)
				}
				r.check(r.program.Close())
				if n := r.program.Commands(); n != 3 {
					t.Errorf("%d commands", n)
				}
			}
		})
	}
}

// A lost or hanging device says so everywhere.
func TestFateIsFinal(t *testing.T) {
	for kind, want := range map[FaultKind]error{Lost: device.ErrLost, Hang: device.ErrTimeout} {
		r := newRig(t, Fault{Kind: kind, N: 1})
		r.check(r.d.Health())
		f, err := r.d.Submit(r.program)
		r.check(err)
		r.check(r.d.Health())
		began := time.Now()
		if err := f.Wait(20 * time.Millisecond); !errors.Is(err, want) {
			t.Errorf("%s: wait: %v", kind, err)
		}
		if took := time.Since(began); kind == Hang && took < 20*time.Millisecond {
			t.Errorf("a hang was noticed after %v", took)
		}
		_, newBuffer := r.d.NewBuffer(4, device.Scratch)
		_, newKernel := r.d.NewKernel(adder("first"), nil)
		_, newProgram := r.d.NewProgram(nil, device.ProgramOptions{})
		_, submit := r.d.Submit(r.program)
		for i, err := range []error{r.d.Health(), newBuffer, newKernel, newProgram, submit, f.Wait(0), r.buffers[0].Write(0, nil), r.buffers[0].Read(0, nil)} {
			if !errors.Is(err, want) {
				t.Errorf("%s: call %d: %v", kind, i, err)
			}
		}
		if kind == Hang { // the same, without the wait
			r := newRig(t, Fault{Kind: Hang, N: 1, Soon: true})
			f, err := r.d.Submit(r.program)
			r.check(err)
			if err := f.Wait(time.Hour); !errors.Is(err, want) || !errors.Is(r.d.Health(), want) {
				t.Errorf("a hang that is known soon: %v, health %v", err, r.d.Health())
			}
		}
		r.check(r.d.Close())
		if !r.d.Device.(*adding).closed {
			t.Error("the device under the faults was left open")
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for _, from := range []bool{false, true} {
			d := Inject(roomy(), Fault{Kind: OutOfMemory, N: n, From: from})
			for i := 1; i <= 6; i++ {
				_, err := d.NewBuffer(4, device.Scratch)
				want := i == n || from && i > n
				if want != errors.Is(err, device.ErrOutOfMemory) || !want && err != nil {
					t.Errorf("fault at %d, from %v: allocation %d: %v", n, from, i, err)
				}
			}
		}
	}
}

func TestCompileFailure(t *testing.T) {
	d := Inject(roomy(), Fault{Kind: CompileFailed, Kernel: "bad"})
	if _, err := d.NewKernel(adder("bad"), nil); !errors.Is(err, device.ErrCompile) {
		t.Errorf("the kernel that does not compile: %v", err)
	}
	if _, err := d.NewKernel(adder("good"), nil); err != nil {
		t.Errorf("another: %v", err)
	}
}

// A fault that names what is not there is an error, not a test that passes by itself.
func TestFaultOutsideBuffers(t *testing.T) {
	for _, f := range []Fault{
		{Kind: WrongTile, Usage: device.Readback, Buffer: 1},
		{Kind: WrongTile, Usage: device.Weights},
		{Kind: WrongTile, Usage: device.Readback, Offset: 64},
	} {
		if _, err := newRig(t, f).run(); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
}
