// Package tensor owns the element types of GGUF weights: their numbers, names and
// block layouts, and the plain conversion of a block to float32.
//
// Dequantize is the definition of what a quantised weight means: exact mode of every
// backend must widen a weight to the very bits that Dequantize writes. It is written
// to be read, not to be fast; backends have kernels of their own and test them
// against it.
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
