package builtin

import (
	"testing"
	"time"

	"ganglion/plugins/abi"
)

// TestMasksWithinFuel: in the state that allows nearly every token, the costliest one, a
// mask over 262,144 tokens stays within what a hook may use, and the second time
// costs nearly nothing.
func TestMasksWithinFuel(t *testing.T) {
	file, _ := Module("json-schema")
	i := opening(t, newHost(t), file, needed["json-schema"])
	f, l := i.Frame(), i.Layout()
	for k, c := range []byte(`["a`) {
		copy(f[l.In:], []byte{c, 0, 0, 0})
		f[abi.OffInN], f[abi.OffStep] = 1, byte(k)
		if _, _, err := i.Call(abi.HookAccept); err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			continue
		}
		start := time.Now()
		a, fuel, err := i.Call(abi.HookPlan)
		t.Logf("behind %q: %d fuel, %v", `["a`[:k+1], fuel, time.Since(start))
		if most := []int64{0, abi.MaxStepFuel, 100_000}[k]; err != nil || a != abi.Mask || fuel > most {
			t.Errorf("actions %v, %v, %d fuel, at most %d", a, err, fuel, most)
		}
	}
}
