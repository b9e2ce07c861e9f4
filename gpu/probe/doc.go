// Package probe finds the GPUs of a machine and tells which of them can be trusted.
//
// A driver may crash, hang, take all memory or compute something else than it was told
// to. So nothing of it is called in the appliance before a child process, our own binary
// once more, has listed its devices and compared every kernel with gpu/ops/ref
// (answers.go): what ends badly there is quarantined with the reason. Results are kept on
// disk for each device, driver and set of kernels (store.go), so that only the first
// start pays for them; so is what became of a device while it was used, how fast it runs a
// model, and which variants of kernels are worth their abilities there (variants.go).
//
// The package knows no driver: they are handed in (Driver). It may import gpu/device,
// gpu/ops, gpu/ops/ref and gpu/tensor.
package probe
