//go:build cgo && (linux || windows)

package gl

import (
	"runtime"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// A submission is one call into C, however many commands there are. The thread makes it,
// and a buffer behind it tells when: that takes a few calls of its own.
func TestSubmissionIsOneCall(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		d := open(t, Options{Dialect: name})
		b, k := must(d.NewBuffer(64, device.Scratch)), must(d.NewKernel(nothing, nil))
		var calls []int64
		for _, n := range []int{0, 1, 165} {
			commands := make([]device.Command, n)
			for i := range commands {
				commands[i] = device.Command{Kernel: k, Bindings: []device.Range{{Buffer: b}}, Params: words(1), Groups: [3]uint32{1, 1, 1}, Barrier: true}
			}
			p := must(d.NewProgram(commands, device.ProgramOptions{}))
			must(d.NewBuffer(64, device.Scratch))
			before := runtime.NumCgoCall()
			f := must(d.Submit(p))
			must(d.NewBuffer(64, device.Scratch))
			calls = append(calls, runtime.NumCgoCall()-before)
			wants(t, f.Wait(time.Minute), nil, "")
		}
		for i, n := range calls { // one more or less: what the thread does behind a job
			if n < calls[0]-1 || n > calls[0]+1 || n < 2 {
				t.Errorf("submitting %d commands took %d calls into C, none take %d", []int{0, 1, 165}[i], n, calls[0])
			}
		}
	})
}
