//go:build cgo && (linux || windows)

package gl

// #include <stdlib.h>
// #include "gl.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"ganglion/gpu/device"
)

// kernel is a shader with fixed constants.
type kernel struct {
	c      *context
	shader *device.Shader
	*compiled
	closed bool
}

// compiled is a program object, shared by the kernels of one text.
type compiled struct {
	id   C.GLuint
	text string
	uses int
}

// NewKernel compiles a shader, or takes it from the cache. A text that is refused gives
// an error that wraps device.ErrCompile and holds the driver's words.
func (c *context) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if err := c.usable("new kernel"); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("gl: new kernel: no shader")
	}
	if err := c.fits(s, constants); err != nil {
		return nil, fmt.Errorf("gl: kernel %q: %w", s.Name, err)
	}
	text := s.Text(c.dialect, constants)
	k := c.kernels[text]
	if k == nil {
		var err error
		if k, err = c.compile(text); err != nil {
			return nil, fmt.Errorf("gl: kernel %q: %w", s.Name, err)
		}
		c.kernels[text] = k
	}
	k.uses++
	return &kernel{c: c, shader: s, compiled: k}, nil
}

// fits checks what a shader asks for against the device's limits.
func (c *context) fits(s *device.Shader, constants []uint32) error {
	if !c.Caps().Has(s.Needs) {
		return fmt.Errorf("it needs %s: %w", s.Needs, device.ErrUnsupported)
	}
	if len(constants) > len(s.Constants) {
		return fmt.Errorf("%d constants, the shader has %d", len(constants), len(s.Constants))
	}
	wg := 1
	if values := s.Values(constants); len(values) > 0 {
		wg = int(values[0])
	}
	for _, b := range s.Bindings {
		if b.Texels && c.limits.Texels == 0 {
			return fmt.Errorf("binding %q: texel fetches: %w", b.Name, device.ErrLimit)
		}
	}
	for _, x := range []struct {
		what       string
		asked, has int
	}{
		{"storage buffers", len(s.Bindings), c.limits.StorageBuffers},
		{"bytes of parameters", s.ParamBytes, c.limits.ParamBytes},
		{"bytes of shared memory", s.SharedBytes(constants), c.limits.SharedBytes},
		{"invocations of a workgroup", wg, c.limits.Invocations},
	} {
		if x.asked > x.has {
			return fmt.Errorf("%d %s, the device has %d: %w", x.asked, x.what, x.has, device.ErrLimit)
		}
	}
	return nil
}

// compile makes a program object of a text.
func (c *context) compile(text string) (*compiled, error) {
	k := &compiled{text: text}
	saved, format, hit := c.cache.load(text)
	var err error
	c.call(func(g *C.struct_ggl) {
		if hit {
			// A driver may refuse a binary for any reason, then the text counts.
			k.id = C.ggl_program_load(g, C.GLenum(format), bytesAt(saved), C.int(len(saved)))
		}
		if hit = k.id != 0; hit {
			return
		}
		if k.id, err = c.build(g, text); err == nil && c.cache.on() {
			saved, format = readBack(g, k.id)
		}
	})
	if err != nil {
		return nil, err
	}
	if !hit {
		c.cache.save(text, saved, format)
	}
	return k, nil
}

// build compiles a text.
func (c *context) build(g *C.struct_ggl, text string) (C.GLuint, error) {
	const logBytes = 16 << 10
	log := (*C.char)(C.calloc(1, logBytes))
	defer C.free(unsafe.Pointer(log))
	source := C.CString(text)
	defer C.free(unsafe.Pointer(source))
	keep := C.int(0)
	if c.cache.on() {
		keep = 1
	}
	id := C.ggl_program_compile(g, source, C.int(len(text)), keep, log, logBytes)
	if id != 0 {
		return id, nil
	}
	if err := c.check(g, "compile", C.GGL_REFUSED, 0); c.Health() != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%w: %s", device.ErrCompile, strings.TrimSpace(C.GoString(log)))
}

// readBack gives a program as a binary, nil where the driver does not give it.
func readBack(g *C.struct_ggl, id C.GLuint) ([]byte, uint32) {
	n := C.ggl_program_size(g, id)
	if n <= 0 {
		return nil, 0
	}
	data := make([]byte, n)
	var format C.GLenum
	n = C.ggl_program_save(g, id, bytesAt(data), n, &format)
	return data[:max(0, n)], uint32(format)
}

// Shader is what the kernel was made from.
func (k *kernel) Shader() *device.Shader { return k.shader }

// Close frees the program object with its last kernel.
func (k *kernel) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	k.c.closings++
	if k.uses--; k.uses == 0 {
		delete(k.c.kernels, k.text)
		k.c.free(func(g *C.struct_ggl) { C.ggl_program_delete(g, k.id) })
	}
	return nil
}
