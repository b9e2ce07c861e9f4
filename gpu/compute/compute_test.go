package compute

import (
	"os"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/gl"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/vulkan"
)

// A driver opens a device for tests, or skips where there is none.
type driver struct {
	name, api string // api as in GANGLION_REQUIRE
	open      func() (device.Device, error)
}

var drivers = []driver{
	{"vulkan", "vulkan", func() (device.Device, error) {
		// Dispatches side by side write other columns of one arena, which the validation
		// of synchronisation cannot tell from the same ones; lowering_test.go has them.
		return vulkan.Open(vulkan.Options{Validation: true, NoSync: true})
	}},
	{"gl43", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL430}) }},
	{"es32", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL320ES}) }},
	{"es31", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL310ES}) }},
}

// plain opens devices without the layer of validation, under which TestOps runs: for
// tests of what lies above the drivers.
var plain = []driver{
	{"vulkan", "vulkan", func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) }},
	{"es31", "gl", func() (device.Device, error) { return gl.Open(gl.Options{Dialect: device.GLSL310ES}) }},
}

// device opens a device that is closed at the end of the test; a message of the
// validation layer fails it.
func (d driver) device(t testing.TB) device.Device {
	t.Helper()
	return devicetest.Open(t, d.api, d.open)
}

// Every backend passes the suite of gpu/ops. One device serves all checks of a driver, so
// that its kernels are compiled once. The drivers run the same kernels and divide the suite
// between them, and take types of cache in turn, for software renderers take minutes to
// compile the kernels of all shapes; GANGLION_GPU_ALL runs all of it on each.
func TestOps(t *testing.T) {
	t.Parallel()
	share := map[string][]int{"vulkan": {0, 4}, "gl43": {1}, "es32": {3}, "es31": {2, 5}}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			parts := 6
			if raceDetector {
				parts = 48
			}
			runOps(t, d.device(t), share[d.name], parts)
		})
	}
}

// So does a renderer that passes for a GPU, which gets larger workgroups that divide a row
// among their parts, and no texel fetches.
func TestOpsAsOnGPUs(t *testing.T) {
	t.Parallel()
	share := map[string][]int{"vulkan": {3, 15}, "gl43": {7}}
	for _, d := range drivers {
		if all := os.Getenv("GANGLION_GPU_ALL") != ""; all || share[d.name] != nil {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				runOps(t, devicetest.AsHardware(d.device(t)), share[d.name], 24)
			})
		}
	}
}

// runOps runs a share of the suite: some of so many parts.
func runOps(t *testing.T, dev device.Device, share []int, parts int) {
	open := func(t *testing.T) ops.Backend { return New(dev, Options{Shared: true, Deadline: 5 * time.Minute}) }
	if os.Getenv("GANGLION_GPU_ALL") != "" {
		opstest.Run(t, open)
		return
	}
	for _, i := range share {
		opstest.Run(t, open, opstest.Part(i, parts), opstest.KVInTurn())
	}
}
