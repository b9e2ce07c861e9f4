//go:build cgo && (linux || windows)

package gl

// #include <stdlib.h>
// #include "gl.h"
import "C"

import (
	"fmt"
	"unsafe"

	"ganglion/gpu/device"
)

// program is a recorded list of commands.
type program struct {
	c *context
	// s and the arrays it points to are memory of C, so that C may keep the addresses.
	s        *C.struct_ggl_submission
	n        int
	timed    bool
	flying   *fence // the last submission, until it has been waited for
	textures []C.GLuint
	buffers  []*buffer
	kernels  []*kernel
	checked  int // the context's count of closed things when all of these were open
	closed   bool
}

// Barriers: what kernels wrote is read by kernels as storage or as texels, and by the
// host through a mapping that is made for it (BUFFER_UPDATE) or kept (CLIENT_MAPPED).
const (
	storageBarrier = 0x2000
	texelBarrier   = 0x0008
	updateBarrier  = 0x0200
	clientBarrier  = 0x4000
)

// NewProgram records commands; what is outside the limits is refused here.
func (c *context) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	if err := c.usable("new program"); err != nil {
		return nil, err
	}
	r, err := c.record(commands)
	if err != nil {
		return nil, err
	}
	p := &program{
		c: c, n: len(commands), timed: o.Timed && c.caps.Timer, buffers: r.buffers, kernels: r.kernels,
		s: (*C.struct_ggl_submission)(C.calloc(1, C.sizeof_struct_ggl_submission)),
	}
	n := C.size_t(p.n)
	p.s.n = C.int(n)
	p.s.commands = (*C.struct_ggl_command)(C.calloc(n+1, C.sizeof_struct_ggl_command))
	p.s.barriers = storageBarrier
	if len(r.views) > 0 {
		p.s.barriers |= texelBarrier
	}
	p.s.end_barriers = c.endBarriers()
	if p.timed {
		p.s.timing = c.timing
		p.s.queries = (*C.GLuint)(C.calloc(n+1, C.sizeof_GLuint))
		p.s.nanos = (*C.GLuint64)(C.calloc(n+1, C.sizeof_GLuint64))
	}
	c.call(func(g *C.struct_ggl) { err = p.make(g, r) })
	if err != nil {
		p.release()
		return nil, err
	}
	copy(unsafe.Slice(p.s.commands, p.n), r.list)
	return p, nil
}

// endBarriers are those behind a submission: its successor may read anything.
func (c *context) endBarriers() C.GLbitfield {
	bits := C.GLbitfield(storageBarrier | updateBarrier)
	if c.limits.Texels > 0 {
		bits |= texelBarrier
	}
	if c.found.mapped {
		bits |= clientBarrier
	}
	return bits
}

// make makes the objects of OpenGL that belong to the program: queries, the buffer of
// parameters, the views of buffers as texels.
func (p *program) make(g *C.struct_ggl, r *recorder) error {
	var code C.GLenum
	if p.s.timing == C.GGL_QUERIES {
		C.ggl_queries_new(g, p.s.n, p.s.queries)
	}
	if params := r.params.data; len(params) > 0 {
		result := C.ggl_buffer_new(g, C.GLsizeiptr(len(params)), hints[device.Weights], &p.s.params, nil, &code)
		if result == C.GGL_OK {
			result = C.ggl_buffer_write(g, p.s.params, 0, C.GLsizeiptr(len(params)), bytesAt(params), &code)
		}
		if err := p.c.check(g, "new program", result, code); err != nil {
			return err
		}
	}
	for v, users := range r.views {
		var texture C.GLuint
		result := C.ggl_texture_new(g, v.buffer, v.offset, v.size, &texture, &code)
		p.textures = append(p.textures, texture)
		if err := p.c.check(g, "new program: texels", result, code); err != nil {
			return err
		}
		for _, u := range users {
			r.list[u.command].texture[u.binding] = texture
		}
	}
	return nil
}

// open says why the program cannot run any more: something that it uses is gone.
func (p *program) open() error {
	if p.closed {
		return fmt.Errorf("program: %w", device.ErrClosed)
	}
	if p.checked == p.c.closings {
		return nil
	}
	for _, b := range p.buffers {
		if b.closed {
			return fmt.Errorf("a buffer of the program: %w", device.ErrClosed)
		}
	}
	for _, k := range p.kernels {
		if k.closed {
			return fmt.Errorf("kernel %q of the program: %w", k.shader.Name, device.ErrClosed)
		}
	}
	p.checked = p.c.closings
	return nil
}

// Commands counts the dispatches.
func (p *program) Commands() int { return p.n }

// Close frees what the program made for itself.
func (p *program) Close() error {
	if !p.closed {
		p.closed = true
		p.release()
	}
	return nil
}

func (p *program) release() {
	s := p.s
	p.c.free(func(g *C.struct_ggl) {
		if s.params != 0 {
			C.ggl_buffer_delete(g, s.params)
		}
		if n := len(p.textures); n > 0 {
			C.ggl_textures_delete(g, C.int(n), &p.textures[0])
		}
		if s.timing == C.GGL_QUERIES {
			C.ggl_queries_delete(g, s.n, s.queries)
		}
	})
	if p.flying != nil && p.c.Health() != nil {
		return // a driver that hangs may still be reading it
	}
	C.free(unsafe.Pointer(s.commands))
	C.free(unsafe.Pointer(s.queries))
	C.free(unsafe.Pointer(s.nanos))
	C.free(unsafe.Pointer(s))
}
