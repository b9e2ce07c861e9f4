package encoder_test

import (
	"slices"
	"testing"
	"time"

	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/encoder"
	"ganglion/gpu/gl"
	"ganglion/gpu/ops"
	"ganglion/gpu/vulkan"
)

// gpus are the backends of GPUs by the names of their APIs, as in GANGLION_REQUIRE.
var gpus = map[string]func() (device.Device, error){
	"vulkan": func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) },
	"gl":     func() (device.Device, error) { return gl.Open(gl.Options{}) },
}

// onGPU opens a backend, or skips where there is no driver.
func onGPU(t *testing.T, api string) ops.Backend {
	t.Helper()
	b := compute.New(devicetest.Open(t, api, gpus[api]), compute.Options{Deadline: 5 * time.Minute})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A recorded medium of each family gives the reference's rows on GPUs, too.
func TestRecordedOnGPUs(t *testing.T) {
	cases := map[string][]string{"gemma3": {"a"}, "gemma3_f16": {"b"}, "ultravox": {"b"}, "qwen2audio": {"b"}, "smolvlm": {"b"}, "qwen2vl": {"a"}, "qwen25vl": {"a"}, "qwen3vl": {"c"}, "gemma4": {"a", "aud-b"}}
	for api := range gpus {
		t.Run(api, func(t *testing.T) {
			b := onGPU(t, api)
			for _, r := range records(t) {
				names := cases[r.Family]
				if names == nil {
					continue
				}
				t.Run(r.Family, func(t *testing.T) {
					e := open(t, b, ops.Exact, r.Mmproj)
					for _, c := range r.Cases {
						if slices.Contains(names, c.Name) {
							t.Run(c.Name, func(t *testing.T) { checkCase(t, e, c, map[string]encoder.Piece{}) })
						}
					}
				})
			}
		})
	}
}
