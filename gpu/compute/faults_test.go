package compute

import (
	"context"
	"fmt"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
)

// faultRig runs one model on a device with faults, beside the processor.
type faultRig struct {
	inner   device.Device
	cpu     ops.Backend
	path    string
	backend string          // the name of the device's
	stride  int             // from one submission that is lost to the next
	want    []float32       // what the story gives undisturbed
	kernels map[string]bool // that it makes use of
}

// outcome is how a disturbed story ended.
type outcome struct {
	logits []float32
	fired  int
	info   engine.Info
	err    error
}

// storySteps is how many single tokens a story runs behind its prompt: more than the
// number of submissions that are lost in turn.
const storySteps = 50

// play opens the model on a device with faults and runs a story of some steps: two
// prompts in one batch, then tokens one by one in turns.
func (r *faultRig) play(t *testing.T, o Options, steps int, faults ...devicetest.Fault) outcome {
	t.Helper()
	dev := devicetest.Inject(r.inner, faults...)
	o.Shared = true
	b := New(dev, o)
	e, err := engine.Open(context.Background(), engine.Config{
		Backend: b, Path: r.path, Numerics: ops.Exact, Threads: 1, Context: 128, Slots: 2, MaxRows: 16,
		Recover: func(error, int) (ops.Backend, error) { return r.cpu, nil },
	})
	if err != nil {
		t.Fatalf("%v: %v", faults, err)
	}
	logits, err := story(e, steps)
	out := outcome{logits, len(dev.Fired()), e.Info(), err}
	if err := e.Close(); err != nil {
		t.Errorf("%v: %v", faults, err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("%v: %v", faults, err)
	}
	return out
}

func story(e *engine.Engine, steps int) (out []float32, err error) {
	vocab := int32(e.Info().Vocab)
	token := func(i int) int32 { return (3 + int32(i)*37) % vocab }
	run := func(rows ...engine.Row) error {
		heads, err := e.Run(rows)
		for _, h := range heads {
			out = append(append(out, h.Row...), float32(h.Best), h.LogSumExp)
		}
		return err
	}
	var slots [2]int
	var rows []engine.Row
	for s := range slots {
		slots[s], _, _ = e.Acquire([]int32{-1 - int32(s), -1}, 0)
		for i := range 5 {
			rows = append(rows, engine.Row{Slot: slots[s], Token: token(i + 9*s), Want: i == 4, Read: ops.Want{Kind: ops.WantRow}})
		}
	}
	err = run(rows...)
	for i := 0; err == nil && i < steps; i++ {
		err = run(engine.Row{Slot: slots[i%2], Token: token(i + 20), Want: true, Read: ops.Want{Kind: ops.WantRow}})
	}
	return out, err
}

// holds checks that a fault struck, that the model went on on the processor, and that
// nothing of it is to be seen in what came out.
func (r *faultRig) holds(t *testing.T, what string, o outcome, loaded bool) {
	t.Helper()
	if o.fired == 0 {
		t.Errorf("%s: nothing went wrong, so nothing was tested", what)
	}
	if o.info.Backend != "cpu" || o.info.Moved == "" || (loaded && o.info.Moves != 1) {
		t.Errorf("%s: %d moves, now on %s: %q", what, o.info.Moves, o.info.Backend, o.info.Moved)
	}
	if o.err != nil {
		t.Errorf("%s: %v", what, o.err)
	}
	if len(o.logits) == 0 || !archtest.SameBits(o.logits, r.want[:min(len(o.logits), len(r.want))]) {
		t.Errorf("%s: the logits differ from those of an undisturbed run", what)
	}
}

// A device that fails beneath a model changes nothing of what comes out in exact mode:
// the processor goes on. One model has attention, the other recurrent states as well.
func TestFaultsChangeNothing(t *testing.T) {
	set := archtest.Golden(t)
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	models, stride := []string{"gemma3-dense", "lfm2-dense"}, 1
	if raceDetector {
		models, stride = models[1:], 16
	}
	for _, d := range plain {
		t.Run(d.name, func(t *testing.T) {
			inner := devicetest.Keep(d.device(t))
			t.Cleanup(func() { inner.Close() })
			for _, model := range models {
				t.Run(model, func(t *testing.T) { faultsChangeNothing(t, inner, c, set.Path(t, model), stride) })
			}
		})
	}
}

func faultsChangeNothing(t *testing.T, inner device.Device, c ops.Backend, path string, stride int) {
	r := &faultRig{inner: inner, cpu: c, path: path, stride: stride, backend: string(inner.Info().API), kernels: map[string]bool{}}
	o := r.play(t, Options{Shaders: func(name string) *device.Shader {
		r.kernels[name] = true
		return kernels.Get(name)
	}}, storySteps)
	if o.err != nil || o.info.Backend != r.backend || o.info.Moves != 0 {
		t.Fatalf("undisturbed: on %s: %s, %v", o.info.Backend, o.info.Moved, o.err)
	}
	lost := r.play(t, Options{}, storySteps, devicetest.Fault{Kind: devicetest.OutOfMemory})
	if lost.info.Backend != "cpu" || !archtest.SameBits(lost.logits, o.logits) {
		t.Fatalf("on %s the logits are others", lost.info.Backend)
	}
	r.want = o.logits
	t.Run("lost", r.lost)
	t.Run("memory", r.outOfMemory)
	t.Run("hang", r.hang)
	t.Run("compile", r.doesNotCompile)
	t.Run("seen", r.wrongResultsShow)
}

// lost loses the device at submissions 1 to 50: with one of them a batch, which loses
// it between and within the steps of the story, and with one a dispatch, which loses it
// in the middle of batches.
func (r *faultRig) lost(t *testing.T) {
	for n := 1; n <= 50; n += r.stride {
		fault := devicetest.Fault{Kind: devicetest.Lost, N: n}
		r.holds(t, fmt.Sprintf("lost at submission %d", n), r.play(t, Options{}, storySteps, fault), true)
		r.holds(t, fmt.Sprintf("lost at dispatch %d", n), r.play(t, Options{Slice: 1}, 2, fault), true)
	}
}

// outOfMemory refuses one allocation after another, until none is left to refuse.
func (r *faultRig) outOfMemory(t *testing.T) {
	for n := 1; ; n++ {
		o := r.play(t, Options{}, 3, devicetest.Fault{Kind: devicetest.OutOfMemory, N: n})
		if o.fired == 0 {
			if n <= 10 || o.info.Backend != r.backend {
				t.Errorf("%d allocations, now on %s", n-1, o.info.Backend)
			}
			return
		}
		r.holds(t, fmt.Sprintf("out of memory at allocation %d", n), o, false)
	}
}

// hang has a fence never pass, in the prompt, behind it and at the story's end.
func (r *faultRig) hang(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 20, 35, storySteps} {
		o := r.play(t, Options{}, storySteps, devicetest.Fault{Kind: devicetest.Hang, N: n, Soon: true})
		r.holds(t, fmt.Sprintf("hangs at submission %d", n), o, true)
	}
}

// doesNotCompile has the driver refuse each of the kernels.
func (r *faultRig) doesNotCompile(t *testing.T) {
	for name := range r.kernels {
		o := r.play(t, Options{}, 2, devicetest.Fault{Kind: devicetest.CompileFailed, Kernel: name})
		r.holds(t, name+" does not compile", o, false)
	}
}

// wrongResultsShow is the partner: nobody can tell a stale or a wrong result while it
// runs, which gpu/probe is for, so the story differs from the undisturbed one or ends with
// numbers that are not finite.
func (r *faultRig) wrongResultsShow(t *testing.T) {
	for _, f := range []devicetest.Fault{
		{Kind: devicetest.Stale, N: 1}, {Kind: devicetest.Stale, N: 3}, {Kind: devicetest.WrongKernel, Kernel: "heads_join"},
		{Kind: devicetest.WrongKernel, Kernel: "rmsnorm", N: 2},
	} {
		o := r.play(t, Options{}, 4, f)
		if o.fired == 0 || o.info.Moves != 0 || o.err == nil && archtest.SameBits(o.logits, r.want[:len(o.logits)]) {
			t.Errorf("%+v: struck %d times and changed nothing", f, o.fired)
		}
	}
}
