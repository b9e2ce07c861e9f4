package devicetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"ganglion/gpu/device"
)

// fake is a device that runs the suite's shaders in Go. Each of its flaws breaks one
// promise, so that the suite can be seen to notice.
type fake struct {
	flaw    string
	buffers []*fakeBuffer
	tail    chan struct{} // closed when all that was submitted has ended
	late    bool          // a fence has not passed in time
	closed  bool

	submitted int
	lock      sync.Mutex // of the memory, for some flaws let it be used while programs run
}

func newFake(flaw string) *fake {
	f := &fake{flaw: flaw, tail: make(chan struct{})}
	close(f.tail)
	return f
}

func (f *fake) has(flaw string) bool { return f.flaw == flaw }

func (f *fake) Info() device.Info {
	return device.Info{API: device.Vulkan, Version: "0", Name: "fake", ID: "fake", Driver: "Go"}
}

func (f *fake) Limits() device.Limits {
	l := device.Limits{StorageBuffers: 8, BindingBytes: 1 << 27, BufferBytes: 1 << 28, OffsetAlign: 256, Invocations: 256,
		SharedBytes: 16 << 10, ParamBytes: 128, Groups: [3]int64{65535, 65535, 65535}, Texels: 1 << 16}
	if f.has("small limits") {
		l.SharedBytes = 8 << 10
	}
	return l
}

func (f *fake) Caps() device.Caps { return device.Caps{Precise: true, Timer: true} }

func (f *fake) Health() error {
	if f.late && !f.has("no health") {
		return device.ErrTimeout
	}
	return nil
}

func (f *fake) usable() error {
	if f.closed && !f.has("works when closed") {
		return device.ErrClosed
	}
	if f.late && !f.has("forgets timeouts") {
		return device.ErrTimeout
	}
	return nil
}

type fakeBuffer struct {
	f      *fake
	data   []byte
	closed bool
}

func (f *fake) NewBuffer(size int64, _ device.Usage) (device.Buffer, error) {
	if err := f.usable(); err != nil {
		return nil, err
	}
	if size <= 0 && !f.has("any size") {
		return nil, errors.New("fake: size")
	}
	if size > f.Limits().BufferBytes {
		if f.has("no limit of buffers") {
			return nil, errors.New("fake: too large")
		}
		return nil, device.ErrLimit
	}
	b := &fakeBuffer{f: f, data: make([]byte, max(size, 0))}
	if f.has("dirty buffers") && size > 100 {
		b.data[99] = 1
	}
	f.buffers = append(f.buffers, b)
	return b, nil
}

func (b *fakeBuffer) Size() int64 { return int64(len(b.data)) }

func (b *fakeBuffer) part(offset int64, n int) ([]byte, error) {
	if b.closed {
		return nil, device.ErrClosed
	}
	if err := b.f.usable(); err != nil {
		return nil, err
	}
	if offset < 0 || offset > b.Size() || int64(n) > b.Size()-offset {
		if b.f.has("no bounds") {
			return nil, nil
		}
		return nil, errors.New("fake: outside")
	}
	if b.f.has("offsets of words") {
		offset &^= 3
	}
	return b.data[offset:min(offset+int64(n), b.Size())], nil
}

func (b *fakeBuffer) Write(offset int64, data []byte) error {
	part, err := b.part(offset, len(data))
	b.f.lock.Lock()
	defer b.f.lock.Unlock()
	copy(part, data)
	return err
}

func (b *fakeBuffer) Read(offset int64, data []byte) error {
	part, err := b.part(offset, len(data))
	b.f.lock.Lock()
	defer b.f.lock.Unlock()
	copy(data, part)
	return err
}

func (b *fakeBuffer) Close() error {
	b.closed = true
	return nil
}

type fakeKernel struct {
	f         *fake
	s         *device.Shader
	constants []uint32
	closed    bool
}

func (f *fake) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if err := f.usable(); err != nil {
		return nil, err
	}
	if f.has("any kernel") {
		return &fakeKernel{f: f, s: s}, nil
	}
	l := f.Limits()
	switch {
	case s == nil || len(constants) > len(s.Constants):
		return nil, errors.New("fake: kernel")
	case len(s.Bindings) > l.StorageBuffers || s.ParamBytes > l.ParamBytes || s.SharedBytes(constants) > l.SharedBytes || int(s.Values(constants)[0]) > l.Invocations:
		return nil, device.ErrLimit
	case len(s.SPIRV) < 30:
		return nil, device.ErrCompile
	}
	values := s.Values(constants)
	if f.has("default constants") && s.Name == "affine" {
		values = s.Values(nil)
	}
	return &fakeKernel{f: f, s: s, constants: values}, nil
}

func (k *fakeKernel) Shader() *device.Shader { return k.s }
func (k *fakeKernel) Close() error           { k.closed = true; return nil }

type fakeProgram struct {
	f        *fake
	commands []device.Command
	timed    bool
	fence    *fakeFence
	closed   bool
	first    *fakeFence
}

func (f *fake) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	if err := f.usable(); err != nil {
		return nil, err
	}
	if f.has("no empty programs") && len(commands) == 0 {
		return nil, errors.New("fake: empty")
	}
	for i := range commands {
		if err := f.admit(&commands[i]); err != nil && !f.has("any program") {
			return nil, err
		}
	}
	return &fakeProgram{f: f, commands: slices.Clone(commands), timed: o.Timed}, nil
}

func (f *fake) admit(c *device.Command) error {
	k, ok := c.Kernel.(*fakeKernel)
	if !ok || k.f != f || len(c.Bindings) != len(k.s.Bindings) || len(c.Params) != k.s.ParamBytes {
		return errors.New("fake: command")
	}
	if k.closed {
		return device.ErrClosed
	}
	for i, n := range c.Groups {
		if int64(n) > f.Limits().Groups[i] {
			return device.ErrLimit
		}
		if n == 0 {
			return errors.New("fake: groups")
		}
	}
	for _, r := range c.Bindings {
		b, ok := r.Buffer.(*fakeBuffer)
		if !ok || b.f != f {
			return errors.New("fake: buffer")
		}
		size := r.Size
		if size == 0 {
			size = b.Size() - r.Offset
		}
		switch {
		case b.closed:
			return device.ErrClosed
		case r.Offset < 0 || size <= 0 || size > b.Size()-r.Offset:
			return errors.New("fake: range")
		case r.Offset%f.Limits().OffsetAlign != 0 || (size > f.Limits().BindingBytes && !f.has("no limit of bindings")):
			return device.ErrLimit
		}
	}
	return nil
}

func (p *fakeProgram) Commands() int { return len(p.commands) }

func (p *fakeProgram) Close() error {
	if p.f.has("programs do not wait") && p.fence != nil && p.fence.Wait(0) != nil {
		return device.ErrTimeout
	}
	p.closed = true
	return nil
}

type fakeFence struct {
	p     *fakeProgram
	ended chan struct{}
	times []time.Duration
}

func (f *fake) Submit(program device.Program) (device.Fence, error) {
	if err := f.usable(); err != nil && !f.has("submits twice") {
		return nil, err
	}
	p, ok := program.(*fakeProgram)
	if !ok || p.f != f {
		return nil, errors.New("fake: program")
	}
	if p.closed {
		return nil, device.ErrClosed
	}
	if p.fence != nil && p.fence.Wait(0) != nil && !f.has("submits twice") {
		return nil, errors.New("fake: running")
	}
	q := &fakeFence{p: p, ended: make(chan struct{})}
	before := f.tail
	f.tail, p.fence = q.ended, q
	if p.first == nil {
		p.first = q
	}
	f.submitted++
	late := time.Duration(20-f.submitted) * 2 * time.Millisecond
	go func() {
		if f.has("no order") {
			time.Sleep(late)
		} else {
			<-before
		}
		p.run(q)
		close(q.ended)
	}()
	return q, nil
}

func (p *fakeProgram) run(q *fakeFence) {
	commands := p.commands
	switch {
	case p.f.has("runs once") && q != p.first:
		return
	case p.f.has("no barriers") && len(commands) > 10:
		commands = slices.Clone(commands)
		slices.Reverse(commands)
	case p.f.has("few commands"):
		commands = commands[:min(len(commands), 1000)]
	}
	for i := range commands {
		began := time.Now()
		p.f.dispatch(&commands[i])
		q.times = append(q.times, time.Since(began))
	}
}

func (q *fakeFence) Wait(timeout time.Duration) error {
	if q.p.f.has("no timeouts") {
		timeout = time.Hour
	}
	select {
	case <-q.ended:
		q.p.f.late = false
		return nil
	default:
	}
	select {
	case <-q.ended:
		q.p.f.late = false
		return nil
	case <-time.After(timeout):
		q.p.f.late = true
		return device.ErrTimeout
	}
}

func (q *fakeFence) Times() []time.Duration {
	if !q.p.timed || q.p.f.closed {
		return nil
	}
	if q.p.f.has("times of nothing") {
		return make([]time.Duration, len(q.times))
	}
	return q.times
}

func (f *fake) Close() error {
	if f.has("closes early") {
		select {
		case <-f.tail:
		default:
			return errors.New("fake: something runs")
		}
	}
	<-f.tail
	f.closed = true
	return nil
}
