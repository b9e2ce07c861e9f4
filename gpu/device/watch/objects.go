package watch

import (
	"slices"

	"ganglion/gpu/device"
)

// buffer is memory of a watched device.
type buffer struct {
	d     *Device
	inner device.Buffer
	size  int64
}

// NewBuffer allocates memory that holds zeros.
func (d *Device) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	b := &buffer{d: d}
	err := d.do("buffer", d.copying(size), func() (err error) {
		b.inner, err = d.inner.NewBuffer(size, u)
		return err
	})
	if err != nil {
		return nil, err
	}
	b.size = b.inner.Size()
	return b, nil
}

// Size is what NewBuffer was asked for.
func (b *buffer) Size() int64 { return b.size }

// Write copies data into the buffer.
func (b *buffer) Write(offset int64, data []byte) error {
	return b.d.do("write", b.d.copying(int64(len(data))), func() error { return b.inner.Write(offset, data) })
}

// Read copies a part of the buffer into data, by way of memory that a driver may keep that
// does not come back.
func (b *buffer) Read(offset int64, data []byte) error {
	b.d.room = slices.Grow(b.d.room[:0], len(data))
	room := b.d.room[:len(data)]
	err := b.d.do("read", b.d.copying(int64(len(data))), func() error { return b.inner.Read(offset, room) })
	if b.d.stuck.Load() != nil {
		b.d.room = nil
		return err
	}
	if err == nil {
		copy(data, room)
	}
	return err
}

// Close frees the memory.
func (b *buffer) Close() error { return b.d.do("close buffer", b.d.within.Close, b.inner.Close) }

// kernel is a kernel of a watched device.
type kernel struct {
	d     *Device
	inner device.Kernel
	s     *device.Shader
}

// NewKernel compiles a shader.
func (d *Device) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	k := &kernel{d: d, s: s}
	constants = slices.Clone(constants)
	err := d.do("kernel", d.within.Compile, func() (err error) {
		k.inner, err = d.inner.NewKernel(s, constants)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Shader is what the kernel was compiled from.
func (k *kernel) Shader() *device.Shader { return k.s }

// Close frees the kernel.
func (k *kernel) Close() error { return k.d.do("close kernel", k.d.within.Close, k.inner.Close) }

// program is a program of a watched device.
type program struct {
	d     *Device
	inner device.Program
	n     int
}

// NewProgram records commands.
func (d *Device) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	commands = d.inside(commands)
	p := &program{d: d, n: len(commands)}
	err := d.do("program", d.within.Compile, func() (err error) {
		p.inner, err = d.inner.NewProgram(commands, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// inside gives the commands with the kernels and buffers of the device that is watched;
// what is of another one stays what it is, for the device to refuse.
func (d *Device) inside(commands []device.Command) []device.Command {
	commands = slices.Clone(commands)
	for i := range commands {
		c := &commands[i]
		if k, ok := c.Kernel.(*kernel); ok && k.d == d {
			c.Kernel = k.inner
		}
		c.Params = slices.Clone(c.Params)
		c.Bindings = slices.Clone(c.Bindings)
		for j := range c.Bindings {
			if b, ok := c.Bindings[j].Buffer.(*buffer); ok && b.d == d {
				c.Bindings[j].Buffer = b.inner
			}
		}
	}
	return commands
}

// Commands is the number of dispatches.
func (p *program) Commands() int { return p.n }

// Close frees the program.
func (p *program) Close() error { return p.d.do("close program", p.d.within.Close, p.inner.Close) }
