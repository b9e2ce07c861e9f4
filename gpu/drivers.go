package gpu

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/gl"
	"ganglion/gpu/kernels"
	"ganglion/gpu/ops"
	"ganglion/gpu/probe"
	"ganglion/gpu/vulkan"
)

// Drivers are the ways to reach GPUs, the preferred first. What they compile is kept in
// cacheDir, "" keeps nothing; kernels names the set of kernels, "" is KernelHash.
func Drivers(cacheDir, kernelSet string) []probe.Driver {
	if kernelSet == "" {
		kernelSet = KernelHash()
	}
	return []probe.Driver{
		{Name: "vulkan", List: vulkan.List, Backend: computeOn, Open: func(id string) (device.Device, error) {
			return vulkan.Open(vulkan.Options{ID: id, CacheDir: cacheDir, Kernels: kernelSet})
		}},
		{Name: "gl", List: gl.List, Backend: computeOn, Open: func(id string) (device.Device, error) {
			return gl.Open(gl.Options{ID: id, CacheDir: cacheDir})
		}},
	}
}

// softwareDeadline is for renderers, which compile a kernel when it is first submitted: on
// a busy processor that takes many seconds, and is no reason to give the device up.
const softwareDeadline = 2 * time.Minute

func computeOn(d device.Device, inexact bool) ops.Backend {
	o := compute.Options{Inexact: inexact}
	if d.Info().Software {
		o.Deadline = softwareDeadline
	}
	return compute.New(d, o)
}

// KernelHash names the kernels of this binary: what is known of a device holds for them
// alone.
var KernelHash = sync.OnceValue(func() string {
	h := sha256.New()
	for _, s := range kernels.All() {
		h.Write([]byte(s.Name))
		h.Write(s.SPIRV)
		h.Write([]byte(s.GLSL))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
})
