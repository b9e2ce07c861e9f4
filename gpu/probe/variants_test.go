package probe

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
)

// variants are the kernels of an ability.
func variants(needs device.Ability) (names []string) {
	for _, s := range kernels.Variants() {
		if s.Needs == needs {
			names = append(names, s.Name)
		}
	}
	return names
}

// computing is a driver whose devices run plans on gpu/compute.
func computing() Driver {
	return Driver{Name: "computing", Variants: kernels.Variants, Backend: func(d device.Device, u Use) ops.Backend {
		return compute.New(d, compute.Options{Variants: u.Variants, Deadline: 2 * time.Minute})
	}}
}

// hardware opens Vulkan's renderer, which passes for a GPU.
func hardware(t *testing.T) device.Device {
	t.Helper()
	keep := devicetest.Keep(openers()[0].device(t))
	t.Cleanup(func() { keep.Close() })
	return devicetest.AsHardware(keep)
}

// try runs a trial of an ability on a device, with small workloads.
func try(t *testing.T, d device.Device, needs device.Ability) Trial {
	t.Helper()
	result, err := newTrial(func(message) {}, computing(), d, needs).run(64)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// The questions of a trial make use of every kernel of its ability and of none that needs
// another, and workloads measure each of them.
func TestTrialsUseEveryVariant(t *testing.T) {
	dev := hardware(t)
	for _, a := range device.Abilities() {
		used := map[string]bool{}
		tr := newTrial(nil, computing(), idle{dev, used}, a)
		for _, q := range questionsOf(a) {
			b := tr.backend(tr.d, true)
			if _, err := q.run(b, ops.Fast); err != nil && !strings.Contains(err.Error(), "is not finite") { // what nobody computed
				t.Fatalf("%s: %v", q.name, err)
			}
		}
		for _, s := range kernels.Variants() {
			if want := s.Needs == a; used[s.Name] != want {
				t.Errorf("%s: questions make use of %s: %v, want %v", a, s.Name, used[s.Name], want)
			}
		}
		clear(used)
		for _, w := range workloads(a, 64) {
			s, err := newSide(tr, w, true)
			if err = errors.Join(err, s.close()); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
		}
		for _, name := range variants(a) {
			if !used[name] {
				t.Errorf("%s: no workload makes use of %s", a, name)
			}
		}
	}
}

// A device that keeps to its word has every kernel of an ability measured.
func TestTrialOfSubgroups(t *testing.T) {
	got := try(t, hardware(t), device.Subgroups)
	var names []string
	for _, k := range got.Kernels {
		names = append(names, k.Kernel)
		if k.MS <= 0 || k.BaseMS <= 0 {
			t.Errorf("%+v is not measured", k)
		}
	}
	if got.Fault != "" || !slices.Equal(names, variants(device.Subgroups)) {
		t.Errorf("%+v, want %q", got, variants(device.Subgroups))
	}
}

// A device that says it had an ability and computes something else with it has none of the
// ability's kernels taken, and says why; nor has one whose compiler refuses them.
func TestWrongVariantsAreFound(t *testing.T) {
	dev := hardware(t)
	for _, tt := range []struct {
		fault devicetest.Fault
		want  string
	}{
		{devicetest.Fault{Kind: devicetest.WrongKernel, Kernel: "heads_max_subgroup", Bytes: 4}, "vocabulary with heads_join_subgroup, heads_max_subgroup, "},
		{devicetest.Fault{Kind: devicetest.WrongKernel, Kernel: "heads_top_join_subgroup", How: devicetest.Shifted}, "heads_top_join_subgroup"},
		{devicetest.Fault{Kind: devicetest.CompileFailed, Kernel: "heads_top_subgroup"}, "injected"},
	} {
		got := try(t, devicetest.Inject(dev, tt.fault), device.Subgroups)
		if !strings.Contains(got.Fault, tt.want) || len(got.Kernels) > 0 {
			t.Errorf("%s of %s: %+v, want %q", tt.fault.Kind, tt.fault.Kernel, got, tt.want)
		}
		d := Device{Trials: []Trial{got}}
		if names := append(d.Variants(AllVariants), d.Variants(AutoVariants)...); len(names) > 0 {
			t.Errorf("%s of %s: %q are taken", tt.fault.Kind, tt.fault.Kernel, names)
		}
	}
	wrong := devicetest.Fault{Kind: devicetest.WrongKernel, Kernel: "matmul_q6_k_fast_dot4", Bytes: 4}
	if got := try(t, devicetest.Inject(dev, wrong), device.Dot4); !strings.Contains(got.Fault, "matmul/Q6_K with matmul_q6_k_fast_dot4, ") {
		t.Errorf("%+v", got)
	}
	none := devicetest.Profile{Name: "none", Limits: dev.Limits()}.Wrap(dev)
	if got := try(t, none, device.Subgroups); got.Fault != "" || len(got.Kernels) > 0 || len(none.Violations()) > 0 {
		t.Errorf("without the ability: %+v, %v", got, none.Violations())
	}
}

// What is taken is what was measured to be faster, unless all or none are asked for.
func TestFasterVariantsAreTaken(t *testing.T) {
	d := Device{Trials: []Trial{
		{Needs: device.Subgroups, Kernels: []Timed{{"much faster", 1, 2}, {"by chance", 1, 1.04}, {"slower", 2, 1}, {"not measured", 0, 0}}},
		{Needs: device.Dot4, Fault: "wrong", Kernels: []Timed{{"wrong", 1, 2}}},
	}}
	for which, want := range map[Variants][]string{
		AutoVariants: {"much faster"},
		AllVariants:  {"much faster", "by chance", "slower", "not measured"},
		NoVariants:   nil,
		"":           {"much faster"},
	} {
		if got := d.Variants(which); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", which, got, want)
		}
	}
}

// countTrials notes the abilities that a book has tried.
func countTrials(b *Book) *[]string {
	asked := &[]string{}
	plain := b.Prober.Command
	b.Prober.Command = func(ctx context.Context, args ...string) *exec.Cmd {
		if slices.Contains(args, taskTry) {
			*asked = append(*asked, args[len(args)-1])
		}
		return plain(ctx, args...)
	}
	return asked
}

// A device is tried once, when it is first used, and what came of it is kept. A child that
// ends badly in a trial takes the ability with it and not the device; the two starts after it
// try that ability anew, and no other.
func TestTrialsAreKept(t *testing.T) {
	dir := t.TempDir()
	for id, caps := range map[string]device.Caps{"able": {Subgroup: 16, Dot4: true}, "plain": {}} { // as they have passed their test
		book(dir).keep(Device{Info: device.Info{API: "test", Name: "Double of " + id, ID: id, Driver: "1.0"}, Driven: "able", State: Available, Caps: caps})
	}
	find := func(b *Book, id string) Device {
		b.Drivers = []string{"able"}
		d, _ := b.Find(context.Background(), false).Find("", id)
		return d
	}
	first := book(dir)
	first.Untried = true
	if d := find(first, "able"); d.Tried || d.State != Available {
		t.Errorf("untried: %+v", d)
	}
	want := []Trial{{Needs: device.Subgroups, Kernels: nil}, {Needs: device.Dot4, Fault: "the driver ended the probe: exit status 2: panic: a fault in a compiler"}}
	for i, ends := range []int{1, 1, 2, 3, 3} {
		b := book(dir)
		b.Untried = i == 1 // a start that tries nothing
		asked := countTrials(b)
		d := find(b, "able")
		if !d.Tried || d.State != Available || len(d.Trials) != 2 || d.Trials[0].Fault != "" || !strings.HasPrefix(d.Trials[1].Fault, want[1].Fault) {
			t.Errorf("%+v, want %+v", d.Trials, want)
		}
		if d.Trials[0].Ends != 0 || d.Trials[1].Ends != ends {
			t.Errorf("start %d: %d and %d trials without an end, want 0 and %d", i, d.Trials[0].Ends, d.Trials[1].Ends, ends)
		}
		if got := fmt.Sprint(*asked); got != []string{"[subgroup dot4]", "[]", "[dot4]", "[dot4]", "[]"}[i] {
			t.Errorf("start %d tries %s", i, got)
		}
	}
	if d := find(book(dir), "plain"); !d.Tried || len(d.Trials) > 0 {
		t.Errorf("without abilities: %+v", d.Trials)
	}
}
