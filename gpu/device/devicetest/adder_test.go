package devicetest

import (
	"encoding/binary"
	"fmt"
	"time"

	"ganglion/gpu/device"
)

// adding is a device in memory that takes anything. Its kernels are Go: they work on the
// words of their bindings.
type adding struct {
	limits device.Limits
	caps   device.Caps
	closed bool
	took   time.Duration // of each submission
}

// roomy is larger than every profile.
func roomy() *adding {
	const huge = 1 << 40
	return &adding{
		limits: device.Limits{
			StorageBuffers: 64, BindingBytes: huge, BufferBytes: huge, OffsetAlign: 4, Invocations: 4096,
			SharedBytes: 1 << 20, ParamBytes: 4096, Groups: [3]int64{huge, huge, huge}, Texels: huge,
		},
		caps: device.Caps{Precise: true, Subgroup: 32, Dot4: true, Half: true, Timer: true, HostShare: true},
	}
}

func (f *adding) Info() device.Info     { return device.Info{API: "adding", Name: "adding"} }
func (f *adding) Limits() device.Limits { return f.limits }
func (f *adding) Caps() device.Caps     { return f.caps }
func (f *adding) Health() error         { return nil }
func (f *adding) Close() error          { f.closed = true; return nil }

// addBuffer has memory only where something was written, so that it can be large.
type addBuffer struct {
	size  int64
	words map[int64]uint32 // by offset
}

func (f *adding) NewBuffer(size int64, _ device.Usage) (device.Buffer, error) {
	return &addBuffer{size, map[int64]uint32{}}, nil
}

func (b *addBuffer) Size() int64  { return b.size }
func (b *addBuffer) Close() error { return nil }

func (b *addBuffer) Write(offset int64, data []byte) error {
	for i := 0; i < len(data); i += 4 {
		b.words[offset+int64(i)] = binary.LittleEndian.Uint32(data[i:])
	}
	return nil
}

func (b *addBuffer) Read(offset int64, data []byte) error {
	for i := 0; i < len(data); i += 4 {
		binary.LittleEndian.PutUint32(data[i:], b.words[offset+int64(i)])
	}
	return nil
}

type addKernel struct{ s *device.Shader }

func (k addKernel) Shader() *device.Shader { return k.s }
func (k addKernel) Close() error           { return nil }

func (f *adding) NewKernel(s *device.Shader, _ []uint32) (device.Kernel, error) {
	return addKernel{s}, nil
}

type addProgram []device.Command

func (p *addProgram) Commands() int { return len(*p) }
func (p *addProgram) Close() error  { return nil }

func (f *adding) NewProgram(commands []device.Command, _ device.ProgramOptions) (device.Program, error) {
	for _, c := range commands {
		for _, r := range c.Bindings {
			if _, ok := r.Buffer.(*addBuffer); !ok {
				return nil, fmt.Errorf("adding: a buffer of type %T", r.Buffer)
			}
		}
	}
	return (*addProgram)(&commands), nil
}

// Submit runs the commands: each adds to the eight words of its last binding those of
// its first, and one.
func (f *adding) Submit(p device.Program) (device.Fence, error) {
	q, ok := p.(*addProgram)
	if !ok {
		return nil, fmt.Errorf("adding: a program of type %T", p)
	}
	for _, c := range *q {
		from, to := c.Bindings[0], c.Bindings[len(c.Bindings)-1]
		for i := int64(0); i < 32; i += 4 {
			to.Buffer.(*addBuffer).words[to.Offset+i] += from.Buffer.(*addBuffer).words[from.Offset+i] + 1
		}
	}
	return addFence{f}, nil
}

type addFence struct{ f *adding }

func (f addFence) Wait(time.Duration) error { time.Sleep(f.f.took); return nil }
func (f addFence) Times() []time.Duration   { return nil }

// adder is a shader of an adding device.
func adder(name string) *device.Shader {
	return &device.Shader{
		Name:     name,
		Bindings: []device.Binding{{Name: "Src", ReadOnly: true}, {Name: "Dst"}},
	}
}
