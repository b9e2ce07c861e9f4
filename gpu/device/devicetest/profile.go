package devicetest

import (
	"time"

	"ganglion/gpu/device"
)

// Profile is what a family of devices takes at most, for tests on software renderers,
// which take more than they say and more than any edge device does.
type Profile struct {
	Name   string
	Limits device.Limits
	Caps   device.Caps
	// Budget is the time a submission should stay below: a fifth of the watchdog, at
	// most 100 ms so that a desktop stays calm (gpu-facts 3.8).
	Budget time.Duration
	// Bandwidth of the memory in bytes a second at best, by which the least time of a
	// submission is predicted; 0 = unknown.
	Bandwidth int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// wide is the grid that OpenGL, Vulkan and WebGPU all promise.
var wide = [3]int64{65535, 65535, 65535}

// coarse is the coarsest alignment of a binding that OpenGL and Vulkan let a driver ask
// for. Profiles use it where the number of their drivers is not known.
const coarse = 256

// profiles are the families with the numbers of Mesa's sources (2026) and of the
// specifications; where a family has OpenGL and Vulkan, the smaller number of the two
// stands. None reads by texel fetches: they are a help of software renderers. Precise is
// left to the device: its shading language decides.
var profiles = []Profile{
	{
		// Raspberry Pi 4, V3D 4.2. v3d_limits.h, v3dv_limits.h: 8 storage buffers and
		// allocations of 1 GiB in Vulkan; u_screen.c: 1 << 27 bytes a binding in OpenGL;
		// 256 threads; 16 KiB shared memory before Mesa 23 (b4rtaz/distributed-llama#259).
		// Subgroups have the basic operations only. No timestamps without CPU queues.
		// Watchdog 500 ms (v3d_sched.c). Its memory is no faster than the Pi 5's.
		Name: "v3d42",
		Limits: device.Limits{
			StorageBuffers: 8, BindingBytes: 128 * mib, BufferBytes: gib, OffsetAlign: coarse,
			Invocations: 256, SharedBytes: 16 * kib, ParamBytes: 128, Groups: wide,
		},
		Caps:   device.Caps{Precise: true, HostShare: true},
		Budget: 100 * time.Millisecond, Bandwidth: 17_100_000_000,
	},
	{
		// Raspberry Pi 5, V3D 7.1: the same files, and subgroups of 16 with arithmetic.
		Name: "v3d71",
		Limits: device.Limits{
			StorageBuffers: 8, BindingBytes: 128 * mib, BufferBytes: gib, OffsetAlign: coarse,
			Invocations: 256, SharedBytes: 16 * kib, ParamBytes: 128, Groups: wide,
		},
		Caps:   device.Caps{Precise: true, Subgroup: 16, HostShare: true},
		Budget: 100 * time.Millisecond, Bandwidth: 17_100_000_000, // LPDDR4X-4267, 32 bits
	},
	{
		// Mali G52 (Bifrost) through OpenGL ES 3.2, the only way to it. pan_screen.c: 16
		// storage buffers, 32 KiB, 256 threads; u_screen.c: 1 << 27. No timestamps up to
		// v9. Watchdog 500 ms (panfrost_job.c).
		Name: "mali-g52-gles",
		Limits: device.Limits{
			StorageBuffers: 16, BindingBytes: 128 * mib, BufferBytes: gib, OffsetAlign: coarse,
			Invocations: 256, SharedBytes: 32 * kib, ParamBytes: 128, Groups: wide,
		},
		Caps:   device.Caps{Precise: true, HostShare: true},
		Budget: 100 * time.Millisecond,
	},
	{
		// Mali G610 (RK3588) through panvk: panvk_vX_physical_device.c: bindings of
		// UINT32_MAX, 32 KiB; llama.cpp#17783: subgroups of 16, halves, dot products.
		// The floor stands for its threads and buffers, which depend on the kernel
		// driver. Watchdog 5 s (panthor_sched.c).
		Name: "mali-g610",
		Limits: device.Limits{
			StorageBuffers: 16, BindingBytes: 1<<32 - 1, BufferBytes: 1<<32 - 1, OffsetAlign: coarse,
			Invocations: 256, SharedBytes: 32 * kib, ParamBytes: 128, Groups: wide,
		},
		Caps:   device.Caps{Precise: true, Subgroup: 16, Dot4: true, Half: true, Timer: true, HostShare: true},
		Budget: 100 * time.Millisecond, Bandwidth: 33_800_000_000, // LPDDR4X-4224, 64 bits
	},
	{
		// Adreno 6xx and 7xx through Turnip. tu_device.cc: 128 MiB a binding, as
		// Qualcomm's driver has; 1024 threads; subgroups of 64; a 4 GiB address space,
		// of which a buffer gets a quarter at most. freedreno_screen.c: offsets of 64.
		// Watchdog 250 ms (msm_gpu.h).
		Name: "adreno-128m",
		Limits: device.Limits{
			StorageBuffers: 16, BindingBytes: 128 * mib, BufferBytes: gib, OffsetAlign: 64,
			Invocations: 1024, SharedBytes: 32 * kib, ParamBytes: 128, Groups: wide,
		},
		Caps:   device.Caps{Precise: true, Subgroup: 64, Dot4: true, Half: true, Timer: true, HostShare: true},
		Budget: 50 * time.Millisecond,
	},
	{
		// The default limits of WebGPU, section 3.6.2 of the specification: what every
		// kernel of the base set must fit into.
		Name: "webgpu-floor",
		Limits: device.Limits{
			StorageBuffers: 8, BindingBytes: 128 * mib, BufferBytes: 256 * mib, OffsetAlign: 256,
			Invocations: 256, SharedBytes: 16 * kib, ParamBytes: 128, Groups: wide,
		},
		Caps:   device.Caps{Precise: true},
		Budget: 100 * time.Millisecond,
	},
}

// Profiles lists all profiles.
func Profiles() []Profile { return append([]Profile(nil), profiles...) }

// within gives the limits of a device under a profile: a program must fit both.
func (p Profile) within(l device.Limits) device.Limits {
	q := p.Limits
	q.StorageBuffers = min(q.StorageBuffers, l.StorageBuffers)
	q.BindingBytes = min(q.BindingBytes, l.BindingBytes)
	q.BufferBytes = min(q.BufferBytes, l.BufferBytes)
	q.OffsetAlign = max(q.OffsetAlign, l.OffsetAlign)
	q.Invocations = min(q.Invocations, l.Invocations)
	q.SharedBytes = min(q.SharedBytes, l.SharedBytes)
	q.ParamBytes = min(q.ParamBytes, l.ParamBytes)
	q.Texels = min(q.Texels, l.Texels)
	for i := range q.Groups {
		q.Groups[i] = min(q.Groups[i], l.Groups[i])
	}
	return q
}

// has gives the abilities that a device and a profile share.
func (p Profile) has(c device.Caps) device.Caps {
	q := p.Caps
	if c.Subgroup == 0 || q.Subgroup == 0 {
		c.Subgroup = 0
	}
	return device.Caps{
		Precise: q.Precise && c.Precise, Subgroup: c.Subgroup, Dot4: q.Dot4 && c.Dot4,
		Half: q.Half && c.Half, Timer: q.Timer && c.Timer, HostShare: q.HostShare && c.HostShare,
	}
}
