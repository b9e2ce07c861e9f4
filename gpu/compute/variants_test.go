package compute

import (
	"os"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// Models that differ from the plain ones in what real files differ in have the processor's
// bits in exact mode, with dispatches in another order than they were recorded in: on Vulkan,
// in turn with all rows in the form of renderers and with some rows in that of GPUs.
// GANGLION_GPU_ALL runs all models in both forms on every driver with all rows, and holds the
// reference's logits within the bounds of both modes.
func TestVariants(t *testing.T) {
	t.Parallel()
	set, all := archtest.Variants(t), os.Getenv("GANGLION_GPU_ALL") != ""
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chosen := plain[:1]
	if all {
		chosen = drivers
	}
	for _, d := range chosen {
		t.Run(d.name, func(t *testing.T) {
			dev := devicetest.Backwards(d.device(t))
			for n, form := range []struct {
				name string
				dev  device.Device
			}{{"renderer", dev}, {"gpu", devicetest.AsHardware(dev)}} {
				b := New(form.dev, uncut())
				defer b.Close()
				for i, e := range set.Entries {
					rows := len(set.Tokens)
					if n == 1 && !all {
						rows = 3
					}
					if all || i%2 == n {
						t.Run(form.name+"/"+e.Name, func(t *testing.T) { variant(t, b, c, set, e, rows) })
					}
				}
			}
		})
	}
}

// variant runs a model's first rows on a backend and on the processor, c.
func variant(t *testing.T, b, c ops.Backend, set *archtest.Set, e archtest.Entry, rows int) {
	path, tokens := set.Path(t, e.Name), set.Tokens[:rows]
	got := enginetest.Logits(t, b, path, ops.Exact, tokens, 1)
	if !archtest.SameBits(got, enginetest.Logits(t, c, path, ops.Exact, tokens, 1)) {
		t.Error("exact mode: not the processor's bits")
	}
	if os.Getenv("GANGLION_GPU_ALL") == "" {
		return
	}
	within := func(mode ops.Numerics, logits []float32, bound float64) {
		if err := archtest.NMSE(logits, set.Want(t, e)); !(err <= bound) {
			t.Errorf("%s mode: NMSE %.3g, bound %.3g", mode, err, bound)
		}
	}
	within(ops.Exact, got, e.MaxExact)
	within(ops.Fast, enginetest.Logits(t, b, path, ops.Fast, tokens, 1), e.MaxFast)
}
