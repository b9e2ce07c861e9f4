package compute

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// windowed is a backend that looks at how the stacks of experts were cut when a model is
// loaded.
type windowed struct {
	*Backend
	stacks, inside int  // cut ones, and those of them that are cut inside an expert
	exchanged      bool // the first two windows of each that are of one size
}

func (b *windowed) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	rt, err := b.Backend.Load(ctx, p, o, progress)
	if err != nil {
		return nil, err
	}
	for _, m := range rt.(*Runtime).matrices {
		if m.weight.Experts < 2 || len(m.windows) < 2 {
			continue
		}
		b.stacks++
		if m.windows[1].tile%m.tiles != 0 {
			b.inside++
		}
		if w := m.windows; b.exchanged && w[0].tiles == w[1].tiles {
			w[0].region, w[1].region = w[1].region, w[0].region
		}
	}
	return rt, nil
}

// Stacks of experts that no binding sees as a whole, and products of experts that are
// divided to be short, give the processor's bits in both forms: real models have nothing
// else, a stack has hundreds of MiB. Windows begin with an expert where one fits, and
// inside of one where none does.
func TestExpertsInWindows(t *testing.T) {
	t.Parallel()
	set := archtest.Golden(t)
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	keep := devicetest.Keep(plain[0].device(t))
	tokens := set.Tokens[:3] // in two batches: one alone, then two
	for _, tt := range []struct {
		model   string
		windows []int64
		inside  int // so many of the first of these sizes are smaller than an expert
	}{
		{"llama-moe", []int64{8_192, 13_000, 25_000}, 1},
		{"qwen3next-moe", []int64{33_000, 50_000}, 0},
		{"deepseek2-moe", []int64{33_000, 99_000, 200_000}, 1},
	} {
		path := set.Path(t, tt.model)
		want := enginetest.Logits(t, c, path, ops.Exact, tokens, 2)
		for form, dev := range map[string]device.Device{"renderer": keep, "gpu": devicetest.AsHardware(keep)} {
			run := func(window int64, dispatch time.Duration, exchanged bool) (*windowed, bool) {
				b := &windowed{Backend: New(dev, Options{Shared: true, Deadline: 5 * time.Minute, Dispatch: dispatch}), exchanged: exchanged}
				defer b.Close()
				if window > 0 {
					b.window = window
				}
				return b, archtest.SameBits(enginetest.Logits(t, b, path, ops.Exact, tokens, 2), want)
			}
			for i, window := range tt.windows {
				t.Run(fmt.Sprintf("%s/%s/%d", tt.model, form, window), func(t *testing.T) {
					b, same := run(window, 0, false)
					if !same {
						t.Error("not the processor's bits")
					}
					if b.stacks == 0 || (b.inside > 0) != (i < tt.inside) {
						t.Errorf("%d stacks of experts are cut, %d inside an expert: the test tests something else", b.stacks, b.inside)
					}
				})
			}
			t.Run(tt.model+"/"+form+"/pieces", func(t *testing.T) {
				b, _ := run(0, time.Hour, false)
				whole := b.Stats().Dispatches
				for _, bound := range []time.Duration{10 * time.Microsecond, time.Microsecond} { // some tiles, one
					b, same := run(0, bound, false)
					if !same {
						t.Errorf("dispatches of at most %v: not the processor's bits", bound)
					}
					if n := b.Stats().Dispatches; n <= whole {
						t.Errorf("%d dispatches of at most %v, %d without a bound", n, bound, whole)
					}
				}
			})
			t.Run(tt.model+"/"+form+"/partner", func(t *testing.T) { // windows that are not what they are thought to be
				if _, same := run(tt.windows[len(tt.windows)-1], 0, true); same {
					t.Error("windows are exchanged and nothing changes")
				}
			})
		}
	}
}
