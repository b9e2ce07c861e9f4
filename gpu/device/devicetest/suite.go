// Package devicetest is the suite that every driver of gpu/device passes: Run with what
// opens a device. Its shaders are made by cmd/kernelgen as those of gpu/kernels are; they
// are tiny, and what they should give is computed in Go beside them.
package devicetest

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// patience is how long a submission of the suite may take on a slow machine.
const patience = 2 * time.Minute

// check is one promise of a device.
type check struct {
	name string
	run  func(e *env)
}

// checks are all promises, in the order of a driver that is being written.
func checks() []check {
	return slices.Concat(bufferChecks, kernelChecks, programChecks, fenceChecks, lifetimeChecks)
}

// Run checks a driver. open gives a new device, which belongs to the test that asked for
// it and is closed, if it is not yet, at that test's end; a device that cannot be opened
// fails or skips the test there.
func Run(t *testing.T, open func(t testing.TB) device.Device) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(newEnv(t, open)) })
	}
}

// RunWrapped checks a driver in wrappers: in the fault injector without a fault, and under
// the limits of the families that are named.
func RunWrapped(t *testing.T, open func(t testing.TB) device.Device, families ...string) {
	t.Run("faults", func(t *testing.T) {
		Run(t, func(t testing.TB) device.Device { return Inject(open(t)) })
	})
	for _, name := range families {
		i := slices.IndexFunc(Profiles(), func(p Profile) bool { return p.Name == name })
		if i < 0 {
			t.Fatalf("there is no profile %q", name)
		}
		t.Run(name, func(t *testing.T) {
			Run(t, func(t testing.TB) device.Device { return Profiles()[i].Wrap(open(t)) })
		})
	}
}

// env is a device under test with helpers that fail the test.
type env struct {
	testing.TB
	device.Device
	open func(testing.TB) device.Device
}

func newEnv(t testing.TB, open func(testing.TB) device.Device) *env {
	return &env{t, open(t), open}
}

// another opens a second device.
func (e *env) another() *env { return newEnv(e.TB, e.open) }

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// wants fails unless err wraps the wanted one; any error will do for nil.
func (e *env) wants(what string, err, want error) {
	e.Helper()
	if err == nil || (want != nil && !errors.Is(err, want)) {
		if want == nil {
			want = errors.New("an error")
		}
		e.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (e *env) buffer(size int64, u device.Usage) device.Buffer {
	e.Helper()
	b, err := e.NewBuffer(size, u)
	e.must(err)
	if b.Size() != size {
		e.Fatalf("a buffer of %d bytes, want %d", b.Size(), size)
	}
	return b
}

// filled is a buffer of words.
func (e *env) filled(u device.Usage, words []uint32) device.Buffer {
	e.Helper()
	b := e.buffer(4*int64(len(words)), u)
	e.must(b.Write(0, bytesOf(words)))
	return b
}

func (e *env) kernel(name string, constants ...uint32) device.Kernel {
	e.Helper()
	k, err := e.NewKernel(shader(name), constants)
	e.must(err)
	if k.Shader().Name != name {
		e.Fatalf("kernel of shader %q, want %q", k.Shader().Name, name)
	}
	return k
}

func (e *env) program(o device.ProgramOptions, commands ...device.Command) device.Program {
	e.Helper()
	p, err := e.NewProgram(commands, o)
	e.must(err)
	if p.Commands() != len(commands) {
		e.Fatalf("a program of %d commands, want %d", p.Commands(), len(commands))
	}
	return p
}

// do runs a program to its end.
func (e *env) do(p device.Program) device.Fence {
	e.Helper()
	f, err := e.Submit(p)
	e.must(err)
	e.must(f.Wait(patience))
	return f
}

// words reads the first n words of a buffer.
func (e *env) words(b device.Buffer, n int) []uint32 {
	e.Helper()
	data := make([]byte, 4*n)
	e.must(b.Read(0, data))
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return words
}

// holds compares the beginning of a buffer with words.
func (e *env) holds(what string, b device.Buffer, want []uint32) {
	e.Helper()
	got := e.words(b, len(want))
	wrong, first := 0, 0
	for i := range want {
		if got[i] != want[i] {
			if wrong == 0 {
				first = i
			}
			wrong++
		}
	}
	if wrong > 0 {
		e.Errorf("%s: %d of %d words are wrong, the first is word %d: %d, want %d", what, wrong, len(want), first, got[first], want[first])
	}
}

// bind makes the bindings of whole buffers.
func bind(all ...device.Buffer) []device.Range {
	r := make([]device.Range, len(all))
	for i, b := range all {
		r[i].Buffer = b
	}
	return r
}

// command is a dispatch over the x axis, behind a barrier.
func command(k device.Kernel, groups int, bindings []device.Range, params ...uint32) device.Command {
	return device.Command{Kernel: k, Bindings: bindings, Params: bytesOf(params), Groups: [3]uint32{uint32(groups), 1, 1}, Barrier: true}
}

// beside is a command without the barrier.
func beside(c device.Command) device.Command {
	c.Barrier = false
	return c
}

func bytesOf(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// noise is a sequence of words that tell their places apart.
func noise(n int, seed uint32) []uint32 {
	words := make([]uint32, n)
	x := seed*2654435761 + 12345
	for i := range words {
		x = x*1664525 + 1013904223
		words[i] = x>>8 ^ x<<13
	}
	return words
}
