//go:build cgo

package vulkan

import (
	"runtime"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// A submission is one call into C, however many commands there are.
func TestSubmissionIsOneCall(t *testing.T) {
	d := openTest(t, Options{})
	b, err := d.NewBuffer(256, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.NewKernel(copyShader(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 165} {
		commands := make([]device.Command, n)
		for i := range commands {
			commands[i] = device.Command{Kernel: k, Bindings: []device.Range{{Buffer: b}, {Buffer: b}}, Params: make([]byte, 12), Groups: [3]uint32{1, 1, 1}, Barrier: true}
		}
		p, err := d.NewProgram(commands, device.ProgramOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.NumCgoCall()
		f, err := d.Submit(p)
		calls := runtime.NumCgoCall() - before
		if err != nil {
			t.Fatal(err)
		}
		if calls != 1 {
			t.Errorf("submitting %d commands took %d calls into C, want 1", n, calls)
		}
		if err := f.Wait(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}
