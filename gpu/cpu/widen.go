//go:build cgo

package cpu

// #include <stdint.h>
import "C"

import (
	"unsafe"

	"ganglion/gpu/tensor"
)

// gl_widen_go widens a row of a type that has no body in C. It is called from kernel
// threads, for the embeddings.
//
//export gl_widen_go
func gl_widen_go(typ C.int, src *C.uint8_t, bytes C.int64_t, dst *C.float, n C.int) C.int {
	// Sound: the kernels pass a row of a validated weight and a buffer for its columns.
	d := unsafe.Slice((*float32)(unsafe.Pointer(dst)), int(n))
	s := unsafe.Slice((*byte)(unsafe.Pointer(src)), int(bytes))
	if tensor.Dequantize(tensor.Type(typ), d, s) != nil {
		return 1
	}
	return 0
}
