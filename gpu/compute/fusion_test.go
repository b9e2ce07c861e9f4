package compute

import (
	"context"
	"errors"
	"math"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// planCatcher is a backend that keeps the plan which it is given.
type planCatcher struct {
	ops.Backend
	plan *ops.Plan
	opts ops.Options
}

var errCaught = errors.New("the plan is caught")

func (c *planCatcher) Load(_ context.Context, p *ops.Plan, o ops.Options, _ func(done, total int64)) (ops.Runtime, error) {
	c.plan, c.opts = p, o
	return nil, errCaught
}

// renderer is a fake device that is read by texel fetches.
func renderer() *fakeDevice {
	d := newFake()
	d.software, d.limits.Texels = true, 1<<27
	return d
}

// described is a model's runtime of which nothing is on the device yet.
func described(t *testing.T, b *Backend, path string, n ops.Numerics) *Runtime {
	t.Helper()
	c := &planCatcher{Backend: b}
	_, err := engine.Open(context.Background(), engine.Config{Backend: c, Path: path, Numerics: n, Context: 4096, Slots: 1})
	if !errors.Is(err, errCaught) {
		t.Fatal(err)
	}
	r := newRuntime(b, c.plan, c.opts)
	if err := r.describe(); err != nil {
		t.Fatal(err)
	}
	return r
}

// dispatches counts those of a decoded token whose sequence has some chunks of positions.
func dispatches(t *testing.T, d *fakeDevice, path string, o Options, n ops.Numerics, chunks int) int {
	t.Helper()
	l, err := lower(described(t, New(d, o), path, n), ops.Shape{Rows: 1, Outs: 1}, chunks)
	if err != nil {
		t.Fatal(err)
	}
	return len(l.list)
}

// A token of the small model takes few dispatches, however long its sequence is.
func TestDispatchesOfAToken(t *testing.T) {
	path := realModel(t)
	// Beyond a chunk of positions attention takes one more dispatch in exact mode.
	for _, tt := range []struct {
		mode   ops.Numerics
		chunks int
		most   int
	}{
		{ops.Fast, 1, 137}, {ops.Fast, 2, 137}, {ops.Fast, 16, 137},
		{ops.Exact, 1, 137}, {ops.Exact, 2, 155}, {ops.Exact, 16, 155},
	} {
		for kind, d := range map[string]*fakeDevice{"a GPU": newFake(), "a software renderer": renderer()} {
			plain, fused := dispatches(t, d, path, Options{Plain: true}, tt.mode, tt.chunks), dispatches(t, d, path, Options{}, tt.mode, tt.chunks)
			if fused > tt.most || plain <= tt.most {
				t.Errorf("%s, %s mode, %d chunks: %d dispatches, want %d at most; %d when nothing is fused", kind, tt.mode, tt.chunks, fused, tt.most, plain)
			}
		}
	}
}

// fusedFamilies have what is fused in different arrangements.
var fusedFamilies = []string{"gemma3-dense", "llama-dense", "qwen3-dense"}

// Exact mode gives the same bits whether operations are fused or not, and fusion does
// something for each family.
func TestFusionKeepsBits(t *testing.T) {
	set := archtest.Golden(t)
	dev := drivers[0].device(t)
	plain, fused := New(dev, Options{Shared: true, Plain: true}), New(dev, Options{Shared: true})
	defer plain.Close()
	defer fused.Close()
	for _, name := range fusedFamilies {
		t.Run(name, func(t *testing.T) {
			path := set.Path(t, name)
			before, after := dispatches(t, newFake(), path, Options{Plain: true}, ops.Exact, 1), dispatches(t, newFake(), path, Options{}, ops.Exact, 1)
			t.Logf("%d dispatches, %d when nothing is fused", after, before)
			if after >= before {
				t.Errorf("%d dispatches of %d are left: nothing is fused", after, before)
			}
			want, got := enginetest.Logits(t, plain, path, ops.Exact, set.Tokens, 1), enginetest.Logits(t, fused, path, ops.Exact, set.Tokens, 1)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("logit %d is %v fused and %v apart", i, got[i], want[i])
				}
			}
		})
	}
}
