// Package tensor owns the element types of GGUF weights: their numbers, names and
// block layouts, and the plain conversion of a block to float32.
//
// The decoders are the definition of what a quantised weight means: whole numbers in
// groups with a scale (Codes), or the float32 values that these make (Dequantize).
// Exact mode of every backend must compute with the very same. They are written to be
// read, not to be fast; backends have kernels of their own and test them against them.
//
// A quantised tensor is a sequence of blocks. A block holds BlockSize values that are
// neighbours in a row in BlockBytes bytes, little-endian; a row is a whole number of
// blocks. The comments beside each decoder draw its block. Products are rounded to
// float32 before they are added (the float32(…) conversions): Go would otherwise fuse
// them on arm64, ppc64, riscv64 and s390x and give other bits there.
//
// The package imports only the standard library, starts nothing and keeps no state:
// every function may be called from any goroutine.
//
// Formats: the GGUF specification (ggml/docs/gguf.md) and the Python package gguf;
// microscaling formats: OCP Microscaling Formats (MX) v1.0.
package tensor
