//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"ganglion/gpu/device"
)

var _ device.Kernel = (*Kernel)(nil)

// Kernel is a compute pipeline.
type Kernel struct {
	d        *Device
	shader   *device.Shader
	layout   C.gv_layout
	pipeline C.VkPipeline
	users    int // programs that use it
	closed   bool
}

// layoutKey is what a pipeline's layout depends on.
type layoutKey struct {
	bindings int
	texels   uint64 // a bit for each binding that is read by texel fetches
	params   int
}

// maxBindings is what a layoutKey can tell apart.
const maxBindings = 64

func keyOf(s *device.Shader) layoutKey {
	k := layoutKey{bindings: len(s.Bindings), params: s.ParamBytes}
	for i, b := range s.Bindings {
		if b.Texels {
			k.texels |= 1 << i
		}
	}
	return k
}

const spirvMagic = 0x07230203

// NewKernel compiles a shader, or takes it from the cache. An error of the driver's
// compiler wraps device.ErrCompile.
func (d *Device) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if err := d.usable("kernel"); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("vulkan: kernel: no shader")
	}
	place := "kernel " + s.Name
	values, err := d.admit(place, s, constants)
	if err != nil {
		return nil, err
	}
	layout, err := d.layout(place, keyOf(s))
	if err != nil {
		return nil, err
	}
	k := &Kernel{d: d, shader: s, layout: layout}
	words := words(s.SPIRV)
	status := C.gv_pipeline_create(d.c, d.cache.c, layout.pipeline, &words[0], C.size_t(len(words)*4),
		(*C.uint32_t)(unsafe.SliceData(values)), C.uint32_t(len(values)), &k.pipeline)
	if err := d.check(place, status); err != nil {
		if !errors.Is(err, device.ErrLost) && !errors.Is(err, device.ErrOutOfMemory) && !errors.Is(err, device.ErrCompile) {
			err = fmt.Errorf("%w: %w", err, device.ErrCompile)
		}
		return nil, err
	}
	d.cache.grown = true
	d.kernels[k] = struct{}{}
	return k, nil
}

// words copies a module, for embedded files may lie at odd addresses.
func words(spirv []byte) []C.uint32_t {
	w := make([]C.uint32_t, len(spirv)/4)
	for i := range w {
		w[i] = C.uint32_t(binary.LittleEndian.Uint32(spirv[4*i:]))
	}
	return w
}

// admit checks a shader against the limits and gives the values of all its constants.
func (d *Device) admit(place string, s *device.Shader, constants []uint32) ([]uint32, error) {
	if len(s.SPIRV) < 20 || len(s.SPIRV)%4 != 0 || binary.LittleEndian.Uint32(s.SPIRV) != spirvMagic {
		return nil, fmt.Errorf("vulkan: %s: %d bytes are no SPIR-V: %w", place, len(s.SPIRV), device.ErrCompile)
	}
	if !d.Caps().Has(s.Needs) {
		return nil, fmt.Errorf("vulkan: %s: it needs %s: %w", place, s.Needs, device.ErrUnsupported)
	}
	if len(constants) > len(s.Constants) {
		return nil, fmt.Errorf("vulkan: %s: %d constants for the %d of the shader", place, len(constants), len(s.Constants))
	}
	values := s.Values(constants)
	l := d.limits
	texels := bits.OnesCount64(keyOf(s).texels)
	for _, c := range []struct {
		what      string
		have, max int
	}{
		{"bindings", len(s.Bindings), maxBindings},
		{"storage buffers", len(s.Bindings) - texels, l.StorageBuffers},
		{"texel buffers", texels, clampInt(d.props.texel_buffers)},
		{"bytes of parameters", s.ParamBytes, l.ParamBytes},
		{"bytes of shared memory", s.SharedBytes(constants), l.SharedBytes},
	} {
		if c.have > c.max {
			return nil, fmt.Errorf("vulkan: %s: %d %s, at most %d: %w", place, c.have, c.what, c.max, device.ErrLimit)
		}
	}
	if len(values) > 0 && int64(values[0]) > int64(l.Invocations) {
		return nil, fmt.Errorf("vulkan: %s: %d invocations, at most %d: %w", place, values[0], l.Invocations, device.ErrLimit)
	}
	if s.ParamBytes < 0 || s.ParamBytes%4 != 0 || (len(values) > 0 && values[0] == 0) {
		return nil, fmt.Errorf("vulkan: %s: %d bytes of parameters, constants %v", place, s.ParamBytes, values)
	}
	return values, nil
}

// layout gives the layout of a number of bindings and parameters, made once each.
func (d *Device) layout(place string, k layoutKey) (C.gv_layout, error) {
	l, ok := d.layouts[k]
	if !ok {
		if err := d.check(place, C.gv_layout_create(d.c, C.uint32_t(k.bindings), C.uint64_t(k.texels), C.uint32_t(k.params), &l)); err != nil {
			return l, err
		}
		d.layouts[k] = l
	}
	return l, nil
}

// Shader is what the kernel was compiled from.
func (k *Kernel) Shader() *device.Shader { return k.shader }

// Close frees the pipeline. It fails as long as a program uses it, or the device is late.
func (k *Kernel) Close() error {
	if k.closed || k.d.closed {
		return nil
	}
	if k.d.late() {
		return k.d.Health()
	}
	if k.users > 0 {
		return fmt.Errorf("vulkan: close: %d programs use kernel %s", k.users, k.shader.Name)
	}
	k.free()
	return nil
}

func (k *Kernel) free() {
	C.gv_pipeline_destroy(k.d.c, k.pipeline)
	delete(k.d.kernels, k)
	k.closed = true
}
