package compute

import (
	"fmt"
	"time"

	"ganglion/gpu/device"
)

// fakeDevice records what is asked of it and computes nothing.
type fakeDevice struct {
	limits   device.Limits
	submits  []*fakeProgram
	programs int // open ones
	buffers  int // open ones
	waits    []time.Duration
	took     time.Duration // what a submission takes, by the device's clock
	clock    time.Duration // which goes on in waits alone
	software bool

	failSubmit, failWait error
	failBuffer           func() error
	onSubmit             func()
	failProgram          func() error
}

func newFake() *fakeDevice {
	return &fakeDevice{limits: device.Limits{StorageBuffers: 8, BindingBytes: 128 << 20, BufferBytes: 1 << 30, OffsetAlign: 256,
		Invocations: 256, SharedBytes: 16 << 10, ParamBytes: 128, Groups: [3]int64{65535, 65535, 65535}}}
}

func (d *fakeDevice) Info() device.Info {
	return device.Info{API: device.Vulkan, Name: "fake", Software: d.software}
}
func (d *fakeDevice) Limits() device.Limits { return d.limits }
func (d *fakeDevice) Caps() device.Caps     { return device.Caps{} }
func (d *fakeDevice) Health() error         { return nil }
func (d *fakeDevice) Close() error          { return nil }

func (d *fakeDevice) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	if d.failBuffer != nil {
		if err := d.failBuffer(); err != nil {
			return nil, err
		}
	}
	d.buffers++
	return &fakeBuffer{d: d, data: make([]byte, size)}, nil
}

// onClockOf has a backend measure by the clock of its device: no other program takes time
// on it.
func onClockOf(d *fakeDevice, b *Backend) *Backend {
	b.now = func() time.Time { return time.Unix(0, 0).Add(d.clock) }
	return b
}

type fakeBuffer struct {
	d      *fakeDevice
	data   []byte
	closed bool
}

func (b *fakeBuffer) Size() int64 { return int64(len(b.data)) }

func (b *fakeBuffer) Write(offset int64, data []byte) error {
	if b.closed || offset < 0 || offset+int64(len(data)) > b.Size() {
		return fmt.Errorf("write of %d bytes at %d of %d", len(data), offset, b.Size())
	}
	copy(b.data[offset:], data)
	return nil
}

func (b *fakeBuffer) Read(offset int64, data []byte) error {
	if b.closed || offset < 0 || offset+int64(len(data)) > b.Size() {
		return fmt.Errorf("read of %d bytes at %d of %d", len(data), offset, b.Size())
	}
	copy(data, b.data[offset:])
	return nil
}

func (b *fakeBuffer) Close() error {
	if !b.closed {
		b.d.buffers--
	}
	b.closed = true
	return nil
}

type fakeKernel struct{ s *device.Shader }

func (k *fakeKernel) Shader() *device.Shader { return k.s }
func (k *fakeKernel) Close() error           { return nil }

func (d *fakeDevice) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	return &fakeKernel{s}, nil
}

type fakeProgram struct {
	d        *fakeDevice
	commands []device.Command
	closed   bool
}

func (d *fakeDevice) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	for i, c := range commands {
		for _, r := range c.Bindings {
			if b := r.Buffer.(*fakeBuffer); b.closed || r.Offset+r.Size > b.Size() || r.Offset%d.limits.OffsetAlign != 0 {
				return nil, fmt.Errorf("command %d: binding [%d, +%d) of a buffer of %d", i, r.Offset, r.Size, b.Size())
			}
		}
	}
	if d.failProgram != nil {
		if err := d.failProgram(); err != nil {
			return nil, err
		}
	}
	d.programs++
	return &fakeProgram{d: d, commands: commands}, nil
}

func (p *fakeProgram) Commands() int { return len(p.commands) }

func (p *fakeProgram) Close() error {
	if !p.closed {
		p.d.programs--
	}
	p.closed = true
	return nil
}

func (d *fakeDevice) Submit(p device.Program) (device.Fence, error) {
	if d.failSubmit != nil {
		return nil, d.failSubmit
	}
	d.submits = append(d.submits, p.(*fakeProgram))
	if d.onSubmit != nil {
		d.onSubmit()
	}
	return d, nil
}

func (d *fakeDevice) Wait(timeout time.Duration) error {
	d.waits = append(d.waits, timeout)
	d.clock += d.took
	return d.failWait
}

func (d *fakeDevice) Times() []time.Duration { return nil }
