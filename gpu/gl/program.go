//go:build cgo && (linux || windows)

package gl

// #include <stdlib.h>
// #include "gl.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"ganglion/gpu/device"
)

// program is a recorded list of commands.
type program struct {
	c *context
	// s and the arrays it points to are memory of C, so that C may keep the addresses.
	s       *C.struct_ggl_submission
	n       int
	flying  *fence // the last submission, until it has been waited for
	timed   bool
	buffers []*buffer
	kernels []*kernel
	checked int // the context's count of closed things when all of these were open
	closed  bool
}

// Barriers for what comes after a submission: kernels of the next one, and the host that
// reads by a mapping that is made (BUFFER_UPDATE) or kept (CLIENT_MAPPED).
const (
	storageBarrier = 0x2000
	updateBarrier  = 0x0200
	clientBarrier  = 0x4000
)

// NewProgram records commands; what is outside the limits is refused here.
func (c *context) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	if err := c.usable("new program"); err != nil {
		return nil, err
	}
	if len(commands) == 0 {
		return nil, errors.New("gl: new program: no commands")
	}
	if o.Timed && !c.caps.Timer {
		return nil, fmt.Errorf("gl: new program: times: %w", device.ErrUnsupported)
	}
	p := &program{c: c, n: len(commands), timed: o.Timed, s: (*C.struct_ggl_submission)(C.calloc(1, C.sizeof_struct_ggl_submission))}
	n := C.size_t(len(commands))
	list := (*C.struct_ggl_command)(C.calloc(n, C.sizeof_struct_ggl_command))
	p.s.commands, p.s.n = list, C.int(n)
	params := newBlocks(c.uniformAlign)
	for i := range commands {
		if err := p.record(&unsafe.Slice(list, n)[i], &commands[i], params); err != nil {
			p.release()
			return nil, fmt.Errorf("gl: new program: command %d: %w", i, err)
		}
	}
	p.s.end_barriers = storageBarrier | updateBarrier
	if c.found.mapped {
		p.s.end_barriers |= clientBarrier
	}
	if o.Timed {
		p.s.timing = c.timing
		p.s.queries = (*C.GLuint)(C.calloc(n, 4))
		p.s.nanos = (*C.GLuint64)(C.calloc(n, 8))
	}
	if err := p.upload(params.data); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// record checks a command and writes it down; its parameters go to params.
func (p *program) record(to *C.struct_ggl_command, cmd *device.Command, params *blocks) error {
	k, ok := cmd.Kernel.(*kernel)
	if !ok || k.c != p.c {
		return errors.New("the kernel is not one of this device")
	}
	if k.closed {
		return fmt.Errorf("kernel %q: %w", k.shader.Name, device.ErrClosed)
	}
	if err := p.bind(to, k, cmd.Bindings); err != nil {
		return fmt.Errorf("kernel %q: %w", k.shader.Name, err)
	}
	if len(cmd.Params) != k.shader.ParamBytes {
		return fmt.Errorf("kernel %q: %d bytes of parameters, the shader has %d", k.shader.Name, len(cmd.Params), k.shader.ParamBytes)
	}
	for axis, n := range cmd.Groups {
		if n == 0 {
			return fmt.Errorf("kernel %q: no workgroups on axis %d", k.shader.Name, axis)
		}
		if int64(n) > p.c.limits.Groups[axis] {
			return fmt.Errorf("kernel %q: %d workgroups on axis %d, the device takes %d: %w", k.shader.Name, n, axis, p.c.limits.Groups[axis], device.ErrLimit)
		}
		to.groups[axis] = C.GLuint(n)
	}
	to.program = k.id
	if cmd.Barrier {
		to.barrier = 1
	}
	p.kernels = append(p.kernels, k)
	at, size := params.place(cmd.Params)
	to.params, to.param_bytes = C.GLintptr(at), C.GLsizeiptr(size)
	return nil
}

// bind checks the ranges of a command and writes them down.
func (p *program) bind(to *C.struct_ggl_command, k *kernel, ranges []device.Range) error {
	if len(ranges) != len(k.shader.Bindings) {
		return fmt.Errorf("%d bindings, the shader has %d", len(ranges), len(k.shader.Bindings))
	}
	to.bindings = C.GLuint(len(ranges))
	for i, r := range ranges {
		b, ok := r.Buffer.(*buffer)
		if !ok || b.c != p.c {
			return fmt.Errorf("binding %d: the buffer is not one of this device", i)
		}
		if b.closed {
			return fmt.Errorf("binding %d: buffer: %w", i, device.ErrClosed)
		}
		size := r.Size
		if size == 0 {
			size = b.size - r.Offset
		}
		if r.Offset < 0 || size <= 0 || r.Offset > b.size || size > b.size-r.Offset {
			return fmt.Errorf("binding %d: %d bytes at %d of a buffer of %d", i, size, r.Offset, b.size)
		}
		if r.Offset%p.c.limits.OffsetAlign != 0 {
			return fmt.Errorf("binding %d: offset %d, the device takes multiples of %d: %w", i, r.Offset, p.c.limits.OffsetAlign, device.ErrLimit)
		}
		if size > p.c.limits.BindingBytes {
			return fmt.Errorf("binding %d: %d bytes, the device takes %d: %w", i, size, p.c.limits.BindingBytes, device.ErrLimit)
		}
		to.buffer[i], to.offset[i], to.size[i] = b.id, C.GLintptr(r.Offset), C.GLsizeiptr(size)
		p.buffers = append(p.buffers, b)
	}
	return nil
}

// upload makes the buffer of parameters and the queries.
func (p *program) upload(params []byte) error {
	var err error
	p.c.call(func(g *C.struct_ggl) {
		if p.s.queries != nil {
			C.ggl_queries_new(g, p.s.n, p.s.queries)
		}
		if len(params) == 0 {
			return
		}
		var code C.GLenum
		result := C.ggl_buffer_new(g, C.GLsizeiptr(len(params)), hints[device.Weights], &p.s.params, nil, &code)
		if err = p.c.check(g, "new program", result, code); err == nil {
			result = C.ggl_buffer_write(g, p.s.params, 0, C.GLsizeiptr(len(params)), bytesAt(params), &code)
			err = p.c.check(g, "new program", result, code)
		}
	})
	return err
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
		if s.queries != nil {
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
