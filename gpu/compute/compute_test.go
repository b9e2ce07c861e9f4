package compute

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/device"
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
	dev, err := d.open()
	if errors.Is(err, device.ErrUnsupported) && !slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), d.api) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if v, ok := dev.(interface{ Messages() []string }); ok {
			for _, m := range v.Messages() {
				t.Errorf("validation: %s", m)
			}
		}
	})
	return dev
}

// Every backend passes the suite of gpu/ops. One device serves all checks of a driver, so
// that its kernels are compiled once. The drivers run the same kernels and divide the suite
// between them, for software renderers take minutes to compile the
// kernels of all shapes; GANGLION_GPU_ALL runs all of it on each.
func TestOps(t *testing.T) {
	share := map[string][]int{"vulkan": {0, 4}, "gl43": {1}, "es32": {3}, "es31": {2, 5}}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dev := d.device(t)
			open := func(t *testing.T) ops.Backend { return New(dev, Options{Shared: true}) }
			if os.Getenv("GANGLION_GPU_ALL") != "" {
				opstest.Run(t, open)
				return
			}
			for _, i := range share[d.name] {
				if raceDetector {
					opstest.Run(t, open, opstest.Part(i, 48))
				} else {
					opstest.Run(t, open, opstest.Part(i, 6))
				}
			}
		})
	}
}
