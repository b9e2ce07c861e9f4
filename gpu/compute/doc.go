// Package compute runs plans of gpu/ops on any GPU behind gpu/device: one
// implementation of ops.Backend for Vulkan, OpenGL and OpenGL ES.
//
// Load packs the weights into tiles on the device and allocates caches and states.
// Compile lowers a plan to a list of dispatches for a shape of batch (lowering.go, and
// op_*.go for each operation); the list is recorded once for each length of KV cache
// that it meets and then submitted again and again. What changes from run to run stands
// in the batch buffer (batch.go), written once per run; what comes back is read once
// (heads.go).
//
// The package owns where things lie on the device, which dispatches need a barrier
// between them, how a list is cut into submissions of bounded time, and what of a run
// is read back. It holds no text of a kernel (gpu/kernels) and no code of a driver
// (gpu/vulkan, gpu/gl), and it needs no C.
package compute
