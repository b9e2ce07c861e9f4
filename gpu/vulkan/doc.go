// Package vulkan drives GPUs through Vulkan 1.1 and newer: it implements
// [device.Device] and imports nothing else of ours.
//
// The library is opened at run time (library.c), so a binary starts on a machine without
// Vulkan, and List and Open say that it is missing. The declarations are our own (vk.h),
// so that no headers are needed to build. C does what Go tells it, a function each
// (gv.h); what to do, and every check, is Go's.
//
// It promises
//
//   - a program is recorded once: descriptor sets are written, commands recorded, and a
//     submission is one call into C that records and allocates nothing;
//   - barriers stand where Command.Barrier asks for them, one at a program's beginning
//     for what was submitted before, and one at its end for the host's reads;
//   - nothing the device cannot do reaches the driver: sizes, ranges, offsets, groups and
//     parameters are compared with the limits before (device.ErrLimit);
//   - waiting sleeps in the driver, in slices of at most a fifth of a second;
//   - Close frees everything, or says what it had to leave behind.
//
// # Memory
//
// On a device that shares the host's memory buffers are written in place. Elsewhere
// weights and scratch lie in the device's memory and pass through two staging buffers
// (staging.go); what the host writes before each submission lies in memory that both
// see, and what it reads afterwards in cached memory of the host.
//
// # Threads
//
// A device and all that it made belong to one goroutine at a time, except Info, Limits,
// Caps, Health and Messages. A driver that hangs inside a call hangs its goroutine: who
// must go on, waits for it elsewhere (gpu/device/watch).
package vulkan
