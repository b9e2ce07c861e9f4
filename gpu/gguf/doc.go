// Package gguf reads model files in the GGUF format, versions 2 and 3, little-endian:
// metadata, tensor index and tensor data, split files included.
//
// A file is untrusted. Every count, length, dimension and offset is held against the
// bytes that are really there before anything is allocated or looped over; a refusal
// is a *FormatError that names the file, the byte offset and the field. Opening reads
// only the header, at most maxHeader bytes of it per part; weights stay on disk.
//
// Tensor data is a slice of a read-only mapping, or memory filled by plain reads where
// the file cannot be mapped. A mapped file that is truncated by somebody else turns
// its pages into faults; three means keep that an error and not a crash:
//
//   - Check compares the file's size with the one at opening: a cheap system call, to
//     be made before each run over mapped weights;
//   - Guard runs Go code that reads mapped data and turns a fault into ErrTruncated;
//   - ReadTensor copies by plain reads and cannot fault. Code that Guard cannot catch
//     (C through cgo, other goroutines, a driver that copies from our memory) must be
//     fed by ReadTensor, or copy inside Guard first.
//
// The package imports gpu/tensor and the standard library. Format: the GGUF
// specification, ggml/docs/gguf.md; split files as llama.cpp's gguf-split writes them.
package gguf
