package gpu

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/gl"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
	"ganglion/gpu/probe"
	"ganglion/gpu/vulkan"
)

// Drivers are the ways to reach GPUs, the preferred first. What they compile is kept in
// cacheDir, "" keeps nothing.
func Drivers(cacheDir string) []probe.Driver {
	return []probe.Driver{
		{Name: "vulkan", List: vulkan.List, Backend: computeOn, Variants: kernels.Variants, Open: func(id string) (device.Device, error) {
			return vulkan.Open(vulkan.Options{ID: id, CacheDir: cacheDir, Kernels: KernelHash()})
		}},
		{Name: "gl", List: gl.List, Backend: computeOn, Variants: kernels.Variants, Open: func(id string) (device.Device, error) {
			return gl.Open(gl.Options{ID: id, CacheDir: cacheDir})
		}},
	}
}

func computeOn(d device.Device, u probe.Use) ops.Backend {
	return compute.New(d, compute.Options{Inexact: u.Inexact, Variants: u.Variants})
}

// KernelHash names the kernels of this binary: what is known of a device holds for them
// alone. It reads megabytes the first time, so a start that asks no device does without.
var KernelHash = sync.OnceValue(func() string {
	h := sha256.New()
	for _, s := range kernels.All() {
		h.Write([]byte(s.Name))
		h.Write(s.SPIRV)
		h.Write([]byte(s.GLSL))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
})
