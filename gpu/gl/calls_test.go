//go:build cgo && (linux || windows)

package gl

import (
	"runtime"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// seen is how many calls into C there had been when the thread of a device came to a job
// that makes none.
var seen int64

// look is that job; it is asked for nothing of the context that it is given.
func look[T any](T) { seen = runtime.NumCgoCall() }

// A submission is one call into C, however many commands there are, as the thread makes it.
// Behind each job comes one that is the thread's own.
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
			c := d.(*context)
			c.call(look)
			before := seen
			f := must(d.Submit(p))
			c.call(look)
			calls = append(calls, seen-before)
			wants(t, f.Wait(time.Minute), nil, "")
		}
		for i, n := range calls {
			if n != 3 { // one behind the first look, the submission, one behind it
				t.Errorf("submitting %d commands took %d calls into C, want 3", []int{0, 1, 165}[i], n)
			}
		}
	})
}
