//go:build cgo

package cpu

// #include <stdlib.h>
// #include "cpu.h"
// static gl_moments moments(const gl_kernels *k, const float *row, int64_t n, float pivot, float *peaks) {
//     return k->moments(row, n, pivot, peaks);
// }
// static gl_mass mass(const gl_kernels *k, const float *row, int64_t n, float top) { return k->mass(row, n, top); }
// static float limit(const gl_kernels *k, const float *peaks, int64_t count, int64_t n, float *spare) {
//     return k->limit(peaks, count, n, spare);
// }
// static int64_t above(const gl_kernels *k, int32_t *found, const float *row, int64_t n, const float *peaks, float least) {
//     return k->above(found, row, n, peaks, least);
// }
// #cgo noescape moments
// #cgo nocallback moments
// #cgo noescape mass
// #cgo nocallback mass
// #cgo noescape limit
// #cgo nocallback limit
// #cgo noescape above
// #cgo nocallback above
import "C"

import (
	"fmt"
	"unsafe"

	"ganglion/gpu/ops"
)

// scan is the Scan of a build with cgo.
type scan struct{ kernels *C.gl_kernels }

var _ Scan = (*scan)(nil)

// NewScan picks the kernels for this machine, or those that o names.
func NewScan(o Options) (Scan, error) {
	name := C.CString(o.Kernels)
	defer C.free(unsafe.Pointer(name))
	k := C.gl_pick(name)
	if k == nil {
		return nil, fmt.Errorf("cpu: kernels %q: %w", o.Kernels, ops.ErrUnsupported)
	}
	return &scan{kernels: k}, nil
}

func (s *scan) Moments(row []float32, pivot float32, peaks []float32) (count, largestAt int, first, second float64, positiveInf bool) {
	_ = peaks[(len(row)+1023)/1024*64-1] // what the kernel writes
	m := C.moments(s.kernels, floats(row), C.int64_t(len(row)), C.float(pivot), floats(peaks))
	return int(m.count), int(m.largest_at), float64(m.first), float64(m.second), m.bad != 0
}

func (s *scan) Mass(row []float32, top float32) (sum, distance float64) {
	m := C.mass(s.kernels, floats(row), C.int64_t(len(row)), C.float(top))
	return float64(m.sum), float64(m.distance)
}

func (s *scan) Limit(peaks []float32, n int, spare []float32) float32 {
	_ = spare[len(peaks)/2-1]
	return float32(C.limit(s.kernels, floats(peaks), C.int64_t(len(peaks)), C.int64_t(n), floats(spare)))
}

func (s *scan) Above(found []int32, row, peaks []float32, limit float32) int {
	_, _ = found[len(row)-1], peaks[(len(row)+255)/256*16-1]
	return int(C.above(s.kernels, (*C.int32_t)(unsafe.SliceData(found)), floats(row), C.int64_t(len(row)), floats(peaks), C.float(limit)))
}

// floats is a slice for a kernel that does not keep it.
func floats(v []float32) *C.float { return (*C.float)(unsafe.SliceData(v)) }
