//go:build cgo

package vulkan

// #include "gv.h"
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"ganglion/gpu/device"
)

// recorder checks commands and turns them into what C records.
type recorder struct {
	d        *Device
	commands []C.gv_command
	sets     []C.gv_set
	ranges   []C.gv_range
	texels   int // of the ranges
	params   []byte
	known    map[string]C.uint32_t // descriptor sets by layout and ranges
	buffers  map[*Buffer]struct{}
	kernels  map[*Kernel]struct{}
}

// NewProgram checks and records commands.
func (d *Device) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	if err := d.usable("program"); err != nil {
		return nil, err
	}
	r := &recorder{d: d, known: map[string]C.uint32_t{}, buffers: map[*Buffer]struct{}{}, kernels: map[*Kernel]struct{}{}}
	for i := range commands {
		if err := r.add(fmt.Sprintf("program: command %d", i), &commands[i]); err != nil {
			return nil, err
		}
	}
	p := &Program{d: d, commands: len(commands), timed: o.Timed && d.caps.Timer}
	if err := r.record(p); err != nil {
		return nil, err
	}
	p.fence.p = p
	for b := range r.buffers {
		b.users++
		p.buffers = append(p.buffers, b)
	}
	for k := range r.kernels {
		k.users++
		p.kernels = append(p.kernels, k)
	}
	d.programs[p] = struct{}{}
	d.cache.save(d) // kernels are compiled in bursts, before programs
	return p, nil
}

// record hands everything to C in one call.
func (r *recorder) record(p *Program) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := C.gv_recording{
		command_count: C.uint32_t(len(r.commands)),
		set_count:     C.uint32_t(len(r.sets)),
		range_count:   C.uint32_t(len(r.ranges)),
		texel_count:   C.uint32_t(r.texels),
	}
	// C reads the slices during the call only; pinned, they may be pointed at.
	if len(r.commands) > 0 {
		pin.Pin(&r.commands[0])
		c.commands = &r.commands[0]
	}
	if len(r.sets) > 0 {
		pin.Pin(&r.sets[0])
		pin.Pin(&r.ranges[0])
		c.sets, c.ranges = &r.sets[0], &r.ranges[0]
	}
	if len(r.params) > 0 {
		pin.Pin(&r.params[0])
		c.params = (*C.uint8_t)(unsafe.Pointer(&r.params[0]))
	}
	if p.timed {
		c.timed = 1
	}
	return r.d.check("program", C.gv_program_create(r.d.c, &c, &p.c))
}

func (r *recorder) add(place string, c *device.Command) error {
	k, ok := c.Kernel.(*Kernel)
	if !ok || k.d != r.d {
		return fmt.Errorf("vulkan: %s: the kernel is not of this device", place)
	}
	place += ": " + k.shader.Name
	if k.closed {
		return fmt.Errorf("vulkan: %s: kernel: %w", place, device.ErrClosed)
	}
	if len(c.Bindings) != len(k.shader.Bindings) || len(c.Params) != k.shader.ParamBytes {
		return fmt.Errorf("vulkan: %s: %d bindings and %d bytes of parameters, the shader has %d and %d",
			place, len(c.Bindings), len(c.Params), len(k.shader.Bindings), k.shader.ParamBytes)
	}
	for i, n := range c.Groups {
		if n == 0 {
			return fmt.Errorf("vulkan: %s: groups %v", place, c.Groups)
		}
		if int64(n) > r.d.limits.Groups[i] {
			return fmt.Errorf("vulkan: %s: groups %v, at most %v: %w", place, c.Groups, r.d.limits.Groups, device.ErrLimit)
		}
	}
	set, err := r.set(place, k, c.Bindings)
	if err != nil {
		return err
	}
	if len(r.params)+len(c.Params) > math.MaxInt32 {
		return fmt.Errorf("vulkan: %s: too many parameters: %w", place, device.ErrLimit)
	}
	g := C.gv_command{
		pipeline: k.pipeline, layout: k.layout.pipeline, set: set,
		param_offset: C.uint32_t(len(r.params)), param_bytes: C.uint32_t(len(c.Params)),
		groups: [3]C.uint32_t{C.uint32_t(c.Groups[0]), C.uint32_t(c.Groups[1]), C.uint32_t(c.Groups[2])},
	}
	if c.Barrier {
		g.barrier = 1
	}
	r.params = append(r.params, c.Params...)
	r.commands = append(r.commands, g)
	r.kernels[k] = struct{}{}
	return nil
}

// set gives the number of the descriptor set for the ranges; commands with the same
// ranges and number of them share one.
func (r *recorder) set(place string, k *Kernel, all []device.Range) (C.uint32_t, error) {
	if len(all) == 0 {
		return C.GV_NO_SET, nil
	}
	key := binary.LittleEndian.AppendUint64(nil, uint64(k.layout.set))
	first, texels := len(r.ranges), r.texels
	for i, g := range all {
		v, err := r.resolve(fmt.Sprintf("%s: binding %d", place, i), g, k.shader.Bindings[i].Texels)
		if err != nil {
			return 0, err
		}
		r.ranges = append(r.ranges, v)
		key = binary.LittleEndian.AppendUint64(key, uint64(v.buffer))
		key = binary.LittleEndian.AppendUint64(key, uint64(v.offset))
		key = binary.LittleEndian.AppendUint64(key, uint64(v.size))
		r.texels += int(v.texels)
	}
	if n, ok := r.known[string(key)]; ok {
		r.ranges, r.texels = r.ranges[:first], texels
		return n, nil
	}
	n := C.uint32_t(len(r.sets))
	r.sets = append(r.sets, C.gv_set{layout: k.layout.set, first: C.uint32_t(first), count: C.uint32_t(len(all))})
	r.known[string(key)] = n
	return n, nil
}

// resolve checks a range and gives what is bound.
func (r *recorder) resolve(place string, g device.Range, texels bool) (v C.gv_range, err error) {
	b, ok := g.Buffer.(*Buffer)
	if !ok || b.d != r.d {
		return v, fmt.Errorf("vulkan: %s: the buffer is not of this device", place)
	}
	if b.closed {
		return v, fmt.Errorf("vulkan: %s: buffer: %w", place, device.ErrClosed)
	}
	size := g.Size
	if size == 0 {
		size = b.size - g.Offset
	}
	if g.Offset < 0 || size <= 0 || g.Offset > b.size || size > b.size-g.Offset {
		return v, fmt.Errorf("vulkan: %s: %d bytes at %d of a buffer of %d", place, g.Size, g.Offset, b.size)
	}
	most := r.d.limits.BindingBytes
	if texels {
		size = (size + texelBytes - 1) / texelBytes * texelBytes // a buffer's last texel is whole
		most = r.d.limits.Texels * texelBytes
		v.texels = 1
	}
	if g.Offset%r.d.limits.OffsetAlign != 0 || size > most {
		return v, fmt.Errorf("vulkan: %s: %d bytes at %d, at most %d at multiples of %d: %w",
			place, size, g.Offset, most, r.d.limits.OffsetAlign, device.ErrLimit)
	}
	r.buffers[b] = struct{}{}
	v.buffer, v.offset, v.size = b.c.handle, C.uint64_t(g.Offset), C.uint64_t(size)
	return v, nil
}
