package compute

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// Software renderers run dispatches in the order in which they were recorded; a GPU runs
// those between two barriers beside each other. Here such dispatches run from the last to
// the first, so that a barrier which a plan lacks changes the results. TestArchitectures
// has this order on Vulkan for the form that renderers get, with all models, and TestHeads
// for what chooses tokens and makes statistics.

// inGPUForm are models that together use every kernel and every operation that any of the
// golden models uses on a GPU (TestFormsAreCovered), and some of the usual families.
var inGPUForm = []string{"qwen35moe-moe", "gemma2-dense", "bloom-dense", "falcon-h1-dense", "jamba-dense", "llama4-moe",
	"deepseek2-moe", "gpt-oss-moe", "gemma3-dense", "qwen3-dense", "gemma4-shared-kv"}

// uncut keeps a plan in one program: cuts would bring barriers of their own.
func uncut() Options { return Options{Shared: true, Deadline: 5 * time.Minute, Slice: time.Hour} }

// What GPUs get has the processor's bits for whole models as well, one row and some, with
// dispatches in another order than they were recorded in. GANGLION_GPU_ALL has all models.
func TestArchitecturesAsOnGPUs(t *testing.T) {
	t.Parallel()
	set, all := archtest.Golden(t), os.Getenv("GANGLION_GPU_ALL") != ""
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tokens := set.Tokens[:3] // in two batches: one alone, then two
	back := devicetest.Backwards(plain[0].device(t))
	b := New(devicetest.AsHardware(back), uncut())
	defer b.Close()
	for _, entry := range set.Entries {
		if !all && !slices.Contains(inGPUForm, entry.Name) {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			path := set.Path(t, entry.Name)
			back.Moved = 0
			got, want := enginetest.Heads(t, b, path, ops.Exact, tokens, 2), enginetest.Heads(t, c, path, ops.Exact, tokens, 2)
			if err := sameHeads(got, want); err != nil {
				t.Errorf("not the processor's bits: %v", err)
			}
			if back.Moved == 0 {
				t.Error("no dispatch has another beside it: the order tests nothing")
			}
		})
	}
}

// sameHeads compares logits and what is told of them to the bit.
func sameHeads(got, want []ops.Head) error {
	for i := range want {
		if err := sameHead(got[i], want[i]); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		if !archtest.SameBits(got[i].Row, want[i].Row) {
			return fmt.Errorf("row %d: other logits", i)
		}
	}
	return nil
}

// forgetful is a device that leaves out one barrier of all that are recorded on it.
type forgetful struct {
	device.Device
	omit, seen int
	of         map[device.Program][]int // the barriers of a program
	ran        []int                    // barriers of programs that were submitted
}

func (d *forgetful) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	commands = slices.Clone(commands)
	var barriers []int
	for i := range commands {
		if i > 0 && commands[i].Barrier { // the first one is no plan's
			commands[i].Barrier = d.seen != d.omit
			barriers = append(barriers, d.seen)
			d.seen++
		}
	}
	p, err := d.Device.NewProgram(commands, o)
	d.of[p] = barriers
	return p, err
}

func (d *forgetful) Submit(p device.Program) (device.Fence, error) {
	d.ran = append(d.ran, d.of[p]...)
	return d.Device.Submit(p)
}

// The partner: in both forms each barrier of a plan is found to be missing when it alone is
// left out. It shows too that the plan has no barrier which it could do without.
func TestMissingBarriersAreFound(t *testing.T) {
	t.Parallel()
	set := archtest.Golden(t)
	keep := devicetest.Keep(plain[0].device(t))
	path, tokens := set.Path(t, "qwen3-dense"), set.Tokens[:2]
	for form, as := range map[string]func(device.Device) device.Device{
		"renderer": func(d device.Device) device.Device { return d },
		"gpu":      devicetest.AsHardware,
	} {
		t.Run(form, func(t *testing.T) {
			run := func(omit int) (heads []ops.Head, barriers []int) {
				d := &forgetful{Device: devicetest.Backwards(keep), omit: omit, of: map[device.Program][]int{}}
				b := New(as(d), uncut())
				defer b.Close()
				return enginetest.Heads(t, b, path, ops.Exact, tokens, 1), d.ran
			}
			want, barriers := run(-1)
			if len(barriers) < 20 {
				t.Errorf("%d barriers: the test tests little", len(barriers))
			}
			for _, omit := range barriers {
				if got, _ := run(omit); sameHeads(got, want) == nil {
					t.Errorf("barrier %d is left out and nothing changes", omit)
				}
			}
		})
	}
}

// used are the kernels of a model on a GPU and the operations of its plan.
func used(t *testing.T, path string) map[string]bool {
	t.Helper()
	r := described(t, New(newFake(), Options{}), path, ops.Exact)
	names := map[string]bool{}
	for _, s := range []ops.Shape{{Rows: 1, Outs: 1}, {Rows: 2, Outs: 2}} {
		l, err := lower(r, s, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range l.list {
			names["kernel "+l.list[i].shader.Name] = true
		}
	}
	for _, op := range r.plan.Ops {
		names["operation "+op.Name()] = true
	}
	return names
}

// The models that are run in the form of GPUs leave out no operation.
func TestFormsAreCovered(t *testing.T) {
	set, chosen := archtest.Golden(t), map[string]bool{}
	for _, name := range inGPUForm {
		for use := range used(t, set.Path(t, name)) {
			chosen[use] = true
		}
	}
	for _, e := range set.Entries {
		for use := range used(t, set.Path(t, e.Name)) {
			if !chosen[use] {
				t.Errorf("%s of %s is in none of the models that are run", use, e.Name)
				chosen[use] = true
			}
		}
	}
}
