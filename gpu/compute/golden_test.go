package compute

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/ops"
)

// inEveryDialect are the models that also run in the dialects of OpenGL: one for each
// kind of operation.
var inEveryDialect = []string{"gemma3-dense", "llama-dense", "llama-moe", "qwen3-dense"}

// Every architecture gives the processor's bits in exact mode, and the reference's logits
// within its bounds in both modes. On Vulkan what stands between two barriers runs in
// another order than it was recorded in (order_test.go). GANGLION_GPU_ALL runs all models on
// every driver and in fast mode.
func TestArchitectures(t *testing.T) {
	t.Parallel()
	set, all := archtest.Golden(t), os.Getenv("GANGLION_GPU_ALL") != ""
	exact := map[string][]float32{}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			dev, o := d.device(t), Options{Shared: true, Deadline: 5 * time.Minute}
			if d.name == "vulkan" {
				dev, o = devicetest.Backwards(dev), uncut()
			}
			b := New(dev, o)
			defer b.Close()
			for _, entry := range set.Entries {
				chosen := slices.Contains(inEveryDialect, entry.Name)
				if !all && !chosen && (d.name != "vulkan" || raceDetector) {
					continue
				}
				t.Run(entry.Name, func(t *testing.T) {
					path := set.Path(t, entry.Name)
					if exact[entry.Name] == nil {
						c, err := cpu.New(cpu.Options{})
						if err != nil {
							t.Fatal(err)
						}
						defer c.Close()
						exact[entry.Name] = enginetest.Logits(t, c, path, ops.Exact, set.Tokens, 1)
					}
					got := enginetest.Logits(t, b, path, ops.Exact, set.Tokens, 1)
					for i, w := range exact[entry.Name] {
						if math.Float32bits(got[i]) != math.Float32bits(w) {
							t.Fatalf("exact mode: logit %d is %v, the processor has %v", i, got[i], w)
						}
					}
					if e := archtest.NMSE(got, set.Want(t, entry)); !(e <= entry.MaxExact) {
						t.Errorf("exact mode: NMSE %.3g, bound %.3g", e, entry.MaxExact)
					}
					if !all && !chosen {
						return
					}
					got = enginetest.Logits(t, b, path, ops.Fast, set.Tokens, 1)
					if e := archtest.NMSE(got, set.Want(t, entry)); !(e <= entry.MaxFast) {
						t.Errorf("fast mode: NMSE %.3g, bound %.3g", e, entry.MaxFast)
					}
				})
			}
		})
	}
}
