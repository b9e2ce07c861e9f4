package devicetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/gpu/device"
)

// A device that keeps all promises passes.
func TestSuiteAccepts(t *testing.T) {
	runOnOwnClock(t, func() device.Device { return newFake("") })
}

// runOnOwnClock is Run for devices in Go, on a clock that goes on when everybody waits: what
// takes 400 ms does so on a busy machine too.
func runOnOwnClock(t *testing.T, open func() device.Device) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.run(newEnv(t, func(t testing.TB) device.Device {
					d := open()
					t.Cleanup(func() { _ = d.Close() })
					return d
				}))
			})
		})
	}
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Logf(string, ...any)       {}
func (r *recorder) Errorf(f string, a ...any) { r.failures = append(r.failures, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(a ...any)            { r.failures = append(r.failures, fmt.Sprint(a...)) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }
func (r *recorder) Fatal(a ...any)            { r.Error(a...); runtime.Goexit() }

// failures runs a check on a device with a flaw, on a clock of its own.
func failures(t *testing.T, c check, flaw string) []string {
	r := &recorder{}
	synctest.Test(t, func(*testing.T) {
		one := newFake(flaw)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(newEnv(r, func(testing.TB) device.Device {
				if flaw == "one device" {
					return one
				}
				return newFake(flaw)
			}))
		}()
		<-done
		time.Sleep(time.Hour) // what a flawed device left running ends
	})
	return r.failures
}

// Each check notices the flaw it is there for.
func TestSuiteNotices(t *testing.T) {
	flaws := map[string]string{
		"limits/floor":          "small limits",
		"buffer/zeros":          "dirty buffers",
		"buffer/copies":         "offsets of words",
		"buffer/bounds":         "no bounds",
		"buffer/sizes":          "any size, no limit of buffers",
		"kernel/constants":      "default constants",
		"kernel/parameters":     "few parameters",
		"kernel/workgroups":     "small workgroups",
		"kernel/bindings":       "bindings in reverse",
		"kernel/texels":         "texels of three",
		"kernel/contraction":    "contraction",
		"kernel/refused":        "any kernel",
		"program/offsets":       "no offsets",
		"program/barriers":      "no barriers",
		"program/side-by-side":  "no barriers",
		"program/many":          "few commands",
		"program/grids":         "flat grids",
		"program/resubmission":  "runs once",
		"program/order":         "no order",
		"program/refused":       "any program",
		"program/large-binding": "no limit of bindings",
		"program/empty":         "no empty programs",
		"fence/timeout":         "no timeouts, submits twice",
		"fence/late":            "forgets timeouts, no health",
		"fence/times":           "times of nothing",
		"device/two":            "one device",
		"device/close":          "works when closed",
		"device/close-running":  "closes early",
		"program/close-running": "programs do not wait",
	}
	for _, c := range checks() {
		if flaws[c.name] == "" {
			t.Errorf("%s: no flaw shows that it can fail", c.name)
		}
		for flaw := range strings.SplitSeq(flaws[c.name], ", ") {
			if len(failures(t, c, flaw)) == 0 {
				t.Errorf("%s: a device with %q passes", c.name, flaw)
			}
		}
	}
}

// The table is what is used.
func TestShadersAreUsed(t *testing.T) {
	for _, s := range table {
		if len(s.SPIRV) != 0 {
			t.Errorf("%s: the table is changed", s.Name)
		}
		if got := shader(s.Name); len(got.SPIRV) == 0 || strings.Contains(got.GLSL, "#include") {
			t.Errorf("%s is not complete", s.Name)
		}
	}
	names := slices.Collect(func(yield func(string) bool) {
		for _, c := range checks() {
			if !yield(c.name) {
				return
			}
		}
	})
	slices.Sort(names)
	if len(slices.Compact(names)) != len(checks()) {
		t.Error("two checks have one name")
	}
}
