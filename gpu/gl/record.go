//go:build cgo && (linux || windows)

package gl

// #include "gl.h"
import "C"

import (
	"errors"
	"fmt"

	"ganglion/gpu/device"
)

// recorder writes commands down as C replays them, and checks each on the way.
type recorder struct {
	c       *context
	list    []C.struct_ggl_command
	params  *blocks
	views   map[view][]user
	buffers []*buffer
	kernels []*kernel
}

// view is a range of a buffer that is read by texel fetches; user is a binding that
// reads it.
type view struct {
	buffer C.GLuint
	offset C.GLintptr
	size   C.GLsizeiptr
}

type user struct{ command, binding int }

// record writes down all commands.
func (c *context) record(commands []device.Command) (*recorder, error) {
	r := &recorder{c: c, list: make([]C.struct_ggl_command, len(commands)), params: newBlocks(c.uniformAlign), views: map[view][]user{}}
	for i := range commands {
		if err := r.command(i, &commands[i]); err != nil {
			return nil, fmt.Errorf("gl: new program: command %d: %w", i, err)
		}
	}
	return r, nil
}

// command writes down command i.
func (r *recorder) command(i int, cmd *device.Command) error {
	k, ok := cmd.Kernel.(*kernel)
	if !ok || k.c != r.c {
		return errors.New("the kernel is not one of this device")
	}
	name := k.shader.Name
	if k.closed {
		return fmt.Errorf("kernel %q: %w", name, device.ErrClosed)
	}
	if len(cmd.Bindings) != len(k.shader.Bindings) {
		return fmt.Errorf("kernel %q: %d bindings, the shader has %d", name, len(cmd.Bindings), len(k.shader.Bindings))
	}
	if len(cmd.Params) != k.shader.ParamBytes {
		return fmt.Errorf("kernel %q: %d bytes of parameters, the shader has %d", name, len(cmd.Params), k.shader.ParamBytes)
	}
	to := &r.list[i]
	for j, b := range cmd.Bindings {
		if err := r.bind(i, j, b, k.shader.Bindings[j].Texels); err != nil {
			return fmt.Errorf("kernel %q: binding %d: %w", name, j, err)
		}
	}
	for axis, n := range cmd.Groups {
		if n == 0 {
			return fmt.Errorf("kernel %q: no workgroups on axis %d", name, axis)
		}
		if most := r.c.limits.Groups[axis]; int64(n) > most {
			return fmt.Errorf("kernel %q: %d workgroups on axis %d, the device takes %d: %w", name, n, axis, most, device.ErrLimit)
		}
		to.groups[axis] = C.GLuint(n)
	}
	to.program, to.bindings = k.id, C.GLuint(len(cmd.Bindings))
	if cmd.Barrier {
		to.barrier = 1
	}
	at, size := r.params.place(cmd.Params)
	to.params, to.param_bytes = C.GLintptr(at), C.GLsizeiptr(size)
	r.kernels = append(r.kernels, k)
	return nil
}

// bind writes down binding j of command i.
func (r *recorder) bind(i, j int, x device.Range, texels bool) error {
	b, ok := x.Buffer.(*buffer)
	if !ok || b.c != r.c {
		return errors.New("the buffer is not one of this device")
	}
	if b.closed {
		return fmt.Errorf("buffer: %w", device.ErrClosed)
	}
	size := x.Size
	if size == 0 {
		size = b.size - x.Offset
	}
	if x.Offset < 0 || size <= 0 || x.Offset > b.size || size > b.size-x.Offset {
		return fmt.Errorf("%d bytes at %d of a buffer of %d", size, x.Offset, b.size)
	}
	l := &r.c.limits
	if x.Offset%l.OffsetAlign != 0 {
		return fmt.Errorf("offset %d, the device takes multiples of %d: %w", x.Offset, l.OffsetAlign, device.ErrLimit)
	}
	most := l.BindingBytes
	if texels {
		// A buffer's memory is whole texels, so its end may be inside one; another
		// range's end may not.
		if x.Size%texelBytes != 0 {
			return fmt.Errorf("%d bytes are not whole texels", x.Size)
		}
		size, most = whole(size), l.Texels*texelBytes
	}
	if size > most {
		return fmt.Errorf("%d bytes, the device takes %d: %w", size, most, device.ErrLimit)
	}
	to := &r.list[i]
	to.buffer[j], to.offset[j], to.size[j] = b.id, C.GLintptr(x.Offset), C.GLsizeiptr(size)
	if texels {
		v := view{b.id, to.offset[j], to.size[j]}
		r.views[v] = append(r.views[v], user{i, j})
	}
	r.buffers = append(r.buffers, b)
	return nil
}

// texelBytes is the size of a texel: four words.
const texelBytes = 16
