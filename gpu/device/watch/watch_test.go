package watch

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/gpu/device"
)

// driver is a device that stands still in one of its calls until it is let go.
type driver struct {
	device.Device
	hangs   string // the call that does
	let     chan struct{}
	entered atomic.Int32 // calls
	closed  chan struct{}
}

func newDriver(hangs string) *driver {
	return &driver{hangs: hangs, let: make(chan struct{}), closed: make(chan struct{})}
}

func (d *driver) enter(call string) {
	d.entered.Add(1)
	if call == d.hangs {
		<-d.let
	}
}

func (d *driver) Info() device.Info     { return device.Info{Name: "driver"} }
func (d *driver) Limits() device.Limits { return device.Limits{} }
func (d *driver) Caps() device.Caps     { return device.Caps{} }
func (d *driver) Health() error         { return nil }

func (d *driver) NewBuffer(int64, device.Usage) (device.Buffer, error) {
	d.enter("buffer")
	return part{d}, nil
}

func (d *driver) NewKernel(*device.Shader, []uint32) (device.Kernel, error) {
	d.enter("kernel")
	return kernelPart{part{d}}, nil
}

func (d *driver) NewProgram([]device.Command, device.ProgramOptions) (device.Program, error) {
	d.enter("program")
	return part{d}, nil
}

func (d *driver) Submit(device.Program) (device.Fence, error) {
	d.enter("submit")
	return part{d}, nil
}

func (d *driver) Close() error {
	d.enter("close")
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	return nil
}

// part is whatever a driver makes.
type part struct{ d *driver }

func (part) Size() int64                 { return 8 }
func (p part) Write(int64, []byte) error { p.d.enter("write"); return nil }
func (p part) Close() error              { p.d.enter("close part"); return nil }
func (part) Commands() int               { return 1 }
func (p part) Times() []time.Duration    { p.d.enter("times"); return []time.Duration{1} }

func (p part) Read(_ int64, data []byte) error {
	p.d.enter("read")
	copy(data, "12345678")
	return nil
}

func (p part) Wait(time.Duration) error {
	p.d.enter("wait")
	return nil
}

type kernelPart struct{ part }

func (kernelPart) Shader() *device.Shader { return nil }

// use calls everything that a device and what it makes have, in an order, until something
// fails, and tells which call that was.
func use(d device.Device) (call string, err error) {
	b, err := d.NewBuffer(8, device.Scratch)
	if err != nil {
		return "buffer", err
	}
	if err := b.Write(0, []byte{1}); err != nil {
		return "write", err
	}
	k, err := d.NewKernel(nil, nil)
	if err != nil {
		return "kernel", err
	}
	p, err := d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: b}}}}, device.ProgramOptions{})
	if err != nil {
		return "program", err
	}
	f, err := d.Submit(p)
	if err != nil {
		return "submit", err
	}
	if err := f.Wait(0); err != nil {
		return "wait", err
	}
	if f.Times() == nil {
		return "times", d.Health()
	}
	data := make([]byte, 8)
	if err := b.Read(0, data); err != nil {
		return "read", err
	}
	if !bytes.Equal(data, []byte("12345678")) {
		return "read", errors.New("something else was read")
	}
	if err := p.Close(); err != nil {
		return "close part", err
	}
	return "close", d.Close()
}

var calls = []string{"buffer", "write", "kernel", "program", "submit", "wait", "times", "read", "close part", "close"}

// A driver that hangs in any of its calls is left there: the call says so when its time is
// over, and all that follow do so at once, without entering the driver again. Where the
// driver comes back after all the device is closed.
func TestCallsComeBack(t *testing.T) {
	for _, call := range calls {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comesBack(t, call) })
		})
	}
}

// comesBack runs on a clock that goes on when everybody waits: however busy the machine is,
// no call but the one that hangs takes any time.
func comesBack(t *testing.T, call string) {
	const short = 30 * time.Millisecond
	d := newDriver(call)
	w := New(d, Limits{Call: short, Compile: short, Close: short})
	if err := w.Health(); err != nil {
		t.Fatal(err)
	}
	if at, err := use(w); at != call || !errors.Is(err, device.ErrTimeout) {
		t.Fatalf("%s gave %v", at, err)
	}
	if !errors.Is(w.Health(), device.ErrTimeout) {
		t.Errorf("its health is %v", w.Health())
	}
	entered := d.entered.Load()
	from := time.Now()
	if at, err := use(w); at != "buffer" || !errors.Is(err, device.ErrTimeout) {
		t.Errorf("afterwards %s gave %v", at, err)
	}
	b := &buffer{d: w, inner: part{d}}
	for _, err := range []error{b.Write(0, nil), b.Read(0, nil), b.Close(), (&fence{w, part{d}}).Wait(time.Hour), (&program{w, part{d}, 1}).Close()} {
		if !errors.Is(err, device.ErrTimeout) {
			t.Errorf("afterwards a call gave %v", err)
		}
	}
	if took := time.Since(from); took > 0 {
		t.Errorf("what followed took %v", took)
	}
	if n := d.entered.Load(); n != entered {
		t.Errorf("the driver was entered %d times more", n-entered)
	}
	if err := w.Close(); call != "close" && !errors.Is(err, device.ErrTimeout) {
		t.Errorf("closing it gave %v", err)
	}
	close(d.let)
	<-d.closed
}

// The partner: without the watch a driver that hangs keeps who calls it, and a watched one
// that does not hang loses nothing.
func TestWithoutTheWatch(t *testing.T) {
	for _, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			d := newDriver(call)
			back := make(chan string, 1)
			go func() {
				at, _ := use(d)
				back <- at
			}()
			select {
			case at := <-back:
				t.Errorf("%s came back, at %s", call, at)
			case <-time.After(time.Hour):
			}
			close(d.let)
			if at := <-back; at != "close" {
				t.Errorf("let go, it ended at %s", at)
			}
		})
	}
	if at, err := use(New(newDriver(""), Limits{})); at != "close" || err != nil {
		t.Errorf("a good driver: %s gave %v", at, err)
	}
}

// What is large has more time than what is small, and a renderer more than a GPU.
func TestLimits(t *testing.T) {
	w := New(newDriver(""), Limits{Call: time.Second})
	defer w.Close()
	if a, b := w.copying(1000), w.copying(1<<30); a != time.Second || b != 17*time.Second {
		t.Errorf("copying has %v and %v", a, b)
	}
	card, renderer := For(device.Info{}), For(device.Info{Software: true})
	if w.within.Compile != card.Compile || card.Call >= 5*time.Second || renderer.Call <= card.Call || renderer.Compile <= card.Compile {
		t.Errorf("%+v, %+v and %+v", w.within, card, renderer)
	}
}

// What a call costs more for being watched.
func BenchmarkCall(b *testing.B) {
	w := New(newDriver(""), Limits{})
	defer w.Close()
	p, err := w.NewProgram(nil, device.ProgramOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := w.Submit(p)
		if err == nil {
			err = f.Wait(time.Second)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
