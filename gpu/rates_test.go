package gpu

import (
	"strings"
	"testing"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/gl"
	"ganglion/gpu/kernels"
	"ganglion/gpu/probe"
	"ganglion/gpu/vulkan"
)

// The rate of memory is measured on every API, and a kernel that leaves something out
// measures nothing.
func TestReadRate(t *testing.T) {
	for api, open := range map[string]func() (device.Device, error){
		"vulkan": func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) },
		"gl":     func() (device.Device, error) { return gl.Open(gl.Options{}) },
	} {
		t.Run(api, func(t *testing.T) {
			d := devicetest.Open(t, api, open)
			if rate, err := probe.ReadRate(d, kernels.Get); err != nil || rate <= 0 {
				t.Errorf("%v GB/s: %v", rate, err)
			} else {
				t.Logf("%.2f GB/s", rate)
			}
			// The partner, of a text that leaves out each invocation's last read.
			lazy := func(name string) *device.Shader {
				s := *kernels.Get(name)
				s.GLSL = strings.Replace(s.GLSL, "n < LOADS", "n + 1u < LOADS", 1)
				return &s
			}
			if api == "gl" {
				if _, err := probe.ReadRate(d, lazy); err == nil {
					t.Error("a kernel that leaves reads out was measured")
				}
			}
		})
	}
}
