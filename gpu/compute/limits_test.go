package compute

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/probe"
)

// reaches tells whether a family's devices are used through a driver.
func (d driver) reaches(p devicetest.Profile) bool {
	return (d.name == "es31") == (p.Name == "v3d42" || strings.HasSuffix(p.Name, "-gles"))
}

// Under the limits of each family of devices every kernel gives the reference's results
// and a model the processor's bits, and nothing is asked for beyond the limits. The
// questions of gpu/probe make use of each kernel in each of its forms; they take minutes on
// a renderer without texel fetches, so they are asked under the tightest limits, and under
// those of all families with GANGLION_GPU_ALL, which runs the suite of operations as well.
func TestLimitProfiles(t *testing.T) {
	t.Parallel()
	set := archtest.Golden(t)
	path := set.Path(t, "gemma3-dense")
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := enginetest.Logits(t, c, path, ops.Exact, set.Tokens, 1)
	for _, d := range plain {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			inner := d.device(t) // for all profiles, so that kernels are compiled once
			for _, p := range devicetest.Profiles() {
				if d.reaches(p) {
					t.Run(p.Name, func(t *testing.T) { underLimits(t, p.Wrap(inner), path, set.Tokens, want) })
				}
			}
		})
	}
}

// underLimits asks a device all questions, runs a model on it and looks for violations.
func underLimits(t *testing.T, dev *devicetest.Limited, path string, tokens []int32, want []float32) {
	used := map[string]bool{}
	o := Options{Shared: true, Deadline: 5 * time.Minute, Variants: allVariants(), Shaders: func(name string) *device.Shader {
		used[name] = true
		return kernels.Get(name)
	}}
	b := New(dev, o)
	defer b.Close()
	clear(used) // New looks for variants
	all := os.Getenv("GANGLION_GPU_ALL") != ""
	if asked := all || strings.HasSuffix(t.Name(), "/webgpu-floor"); asked {
		probe.Ask(b, []ops.Numerics{ops.Exact, ops.Fast}, func(a probe.Answer) {
			if a.Fault != "" {
				t.Errorf("%+v", a)
			}
		})
		defer everyKernel(t, dev.Caps(), used)
	}
	got := enginetest.Logits(t, b, path, ops.Exact, tokens, 1)
	if !archtest.SameBits(got, want) {
		t.Error("the model's logits are not those of the processor")
	}
	if all {
		opstest.Run(t, func(t *testing.T) ops.Backend { return New(dev, o) })
	}
	for _, v := range dev.Violations() {
		t.Error(v)
	}
}

// everyKernel reports kernels that were not used, but for those of texel fetches, which no
// family has: the _texels variants, and attention_queries, which lays queries out for them;
// for products by tiles and what chooses the best tokens and makes statistics, which renderers
// do not get (TestTiledProducts and TestHeads have them); for the measurement of reads, which
// is no part of a model; and for variants, which families without abilities do not get.
func everyKernel(t *testing.T, caps device.Caps, used map[string]bool) {
	for _, s := range kernels.All() {
		apart := strings.HasPrefix(s.Name, "heads_top") || strings.HasPrefix(s.Name, "heads_stats")
		if !caps.Has(s.Needs) && used[s.Name] {
			t.Errorf("%s was used without %s", s.Name, s.Needs)
		}
		if s.Needs == "" && !used[s.Name] && !apart && !strings.HasSuffix(s.Name, texelsSuffix) && !strings.HasSuffix(s.Name, tiledSuffix) && s.Name != "attention_queries" && s.Name != "read" {
			t.Errorf("kernel %s was not tested", s.Name)
		}
	}
}

// boasting is a device that says it had other limits than it has.
type boasting struct {
	*devicetest.Limited
	says device.Limits
}

func (d boasting) Limits() device.Limits { return d.says }

// The partner: a device with less than the kernels need of any one thing is found.
func TestViolatedLimitsAreFound(t *testing.T) {
	for limit, lower := range map[string]func(l *device.Limits){
		"nothing":                   func(*device.Limits) {},
		"buffer bytes":              func(l *device.Limits) { l.BufferBytes = 64 },
		"binding bytes":             func(l *device.Limits) { l.BindingBytes = 64 },
		"bytes of offset alignment": func(l *device.Limits) { l.OffsetAlign = 1 << 20 },
		"storage buffers":           func(l *device.Limits) { l.StorageBuffers = 1 },
		"shared bytes":              func(l *device.Limits) { l.SharedBytes = 64 },
		"invocations":               func(l *device.Limits) { l.Invocations = 16 },
		"parameter bytes":           func(l *device.Limits) { l.ParamBytes = 4 },
		"workgroups on axis 0":      func(l *device.Limits) { l.Groups[0] = 1 },
		"workgroups on axis 1":      func(l *device.Limits) { l.Groups[1] = 1 },
	} {
		t.Run(limit, func(t *testing.T) {
			fake := newFake()
			p := devicetest.Profile{Name: "small", Limits: fake.limits}
			lower(&p.Limits)
			dev := boasting{p.Wrap(fake), fake.limits}
			b := New(dev, Options{})
			defer b.Close()
			failed := runNorms(b)
			seen := slices.ContainsFunc(dev.Violations(), func(v devicetest.Violation) bool { return v.Limit == limit })
			if want := limit != "nothing"; seen != want || (failed != nil) != want {
				t.Errorf("%v, violations %v", failed, dev.Violations())
			}
		})
	}
}

// runNorms runs a plan of some norms for a batch of some rows.
func runNorms(b *Backend) error {
	const rows, width = 8, 4096
	plan := opstest.Plan("norms", width, func(b *ops.Builder, row ops.View) ops.View {
		return b.RMSNorm("groups", nil, 1e-6, 64, b.Sum("sum", row, row))
	})
	rt, err := b.Load(context.Background(), plan, passOptions(rows), nil)
	if err != nil {
		return err
	}
	defer rt.Close()
	prog, err := rt.Compile(ops.Shape{Rows: rows, Outs: rows})
	if err != nil {
		return err
	}
	batch := passBatch(rows, width, 0, 3, 7)
	batch.Pages = make([]int32, rt.(*Runtime).paging.Entries())
	return prog.Run(batch, &ops.Result{})
}
