//go:build cgo && (linux || windows)

package gl

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// hang makes the driver of d hang, as far as anybody can see, until the result is called.
func hang(d device.Device) (release func()) {
	f := &fence{answer: make(chan error)} // nobody takes its answer
	d.(*context).jobs <- waiting{f: f}
	return func() { <-f.answer }
}

// tiny is a program of one command on d.
func tiny(d device.Device) (device.Buffer, device.Kernel, device.Program) {
	b, k := must(d.NewBuffer(64, device.Scratch)), must(d.NewKernel(nothing, nil))
	return b, k, must(d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: b}}, Params: words(1), Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{}))
}

// Submit does not wait, Wait keeps to its time however long the driver takes, and a
// fence that passes late takes the device's bad name back.
func TestTimeout(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		d := open(t, Options{Dialect: name})
		_, _, p := tiny(d)
		release := hang(d)
		f := must(d.Submit(p))
		if _, err := d.Submit(p); err == nil {
			t.Error("a program was submitted twice at a time")
		}
		wants(t, f.Wait(time.Millisecond), device.ErrTimeout, "wait")
		wants(t, d.Health(), device.ErrTimeout, "")
		_, err := d.NewBuffer(64, device.Scratch)
		wants(t, err, device.ErrTimeout, "new buffer")
		wants(t, f.Wait(0), device.ErrTimeout, "wait")
		release()
		wants(t, f.Wait(time.Minute), nil, "")
		wants(t, f.Wait(0), nil, "")
		wants(t, d.Health(), nil, "")
		wants(t, must(d.Submit(p)).Wait(time.Minute), nil, "")
	})
}

func TestCloseWaits(t *testing.T) {
	d := open(t, Options{})
	_, _, p := tiny(d)
	release := hang(d)
	f := must(d.Submit(p))
	start := time.Now()
	time.AfterFunc(100*time.Millisecond, release)
	wants(t, d.Close(), nil, "")
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("Close came back after %v", took)
	}
	wants(t, d.Close(), nil, "")
	wants(t, f.Wait(time.Second), device.ErrClosed, "wait")
	wants(t, p.Close(), nil, "")
	_, err := d.Submit(p)
	wants(t, err, device.ErrClosed, "submit")
	_, err = d.NewKernel(scale, nil)
	wants(t, err, device.ErrClosed, "new kernel")
	_, err = d.NewProgram(nil, device.ProgramOptions{})
	wants(t, err, device.ErrClosed, "new program")
}

// A driver that never comes back keeps its thread, but not the caller.
func TestCloseGivesUp(t *testing.T) {
	d, err := Open(Options{})
	if err != nil {
		open(t, Options{}) // skips or fails
	}
	b, k, p := tiny(d)
	release := hang(d)
	wants(t, must(d.Submit(p)).Wait(0), device.ErrTimeout, "wait")
	for _, c := range []interface{ Close() error }{p, k, b} {
		wants(t, c.Close(), nil, "")
	}
	wants(t, d.Close(), device.ErrTimeout, "does not come back")
	release()
	<-d.(*context).gone
}

// What a program uses may not go before it.
func TestClosedParts(t *testing.T) {
	d := open(t, Options{})
	for part := range 3 {
		b, k := must(d.NewBuffer(64, device.Scratch)), must(d.NewKernel(nothing, nil))
		p := must(d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: b}}, Params: words(1), Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{}))
		wants(t, must(d.Submit(p)).Wait(time.Minute), nil, "")
		wants(t, []interface{ Close() error }{b, k, p}[part].Close(), nil, "")
		_, err := d.Submit(p)
		wants(t, err, device.ErrClosed, []string{"buffer", "kernel", "program"}[part])
		p.Close()
	}
}

// Kernels of one text share one program object, which goes with the last of them.
func TestKernelsAreShared(t *testing.T) {
	d := open(t, Options{})
	a, b := must(d.NewKernel(scale, []uint32{64})), must(d.NewKernel(scale, []uint32{64, 1}))
	c := must(d.NewKernel(scale, []uint32{64, 2}))
	if n := d.(*context).kernels; len(n) != 2 {
		t.Errorf("%d program objects, want 2", len(n))
	}
	a.Close()
	a.Close()
	if b.Close(); len(d.(*context).kernels) != 1 {
		t.Error("the last kernel of a text left its program object")
	}
	c.Close()
}

func TestCache(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		dir := filepath.Join(t.TempDir(), "kernels")
		result := func() (out []byte) {
			d := open(t, Options{Dialect: name, CacheDir: dir})
			if !d.(*context).binaries {
				t.Skip("the driver gives no binaries")
			}
			src, dst := must(d.NewBuffer(64, device.Upload)), must(d.NewBuffer(64, device.Readback))
			k := must(d.NewKernel(scale, nil))
			p := must(d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: src}, {Buffer: dst}}, Params: words(16, 3), Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{}))
			src.Write(0, words(5, 6))
			if err := must(d.Submit(p)).Wait(time.Minute); err != nil {
				t.Fatal(err)
			}
			out = make([]byte, 8)
			dst.Read(0, out)
			return out
		}
		files := func() []string { return must(filepath.Glob(filepath.Join(dir, "gl", "*"))) }
		want := words(16, 19)
		if got := result(); !bytes.Equal(got, want) || len(files()) != 1 {
			t.Fatalf("got % x, files %v", got, files())
		}
		path := files()[0]
		whole := must(os.ReadFile(path))
		for i, damaged := range [][]byte{whole, nil, whole[:20], whole[:len(whole)-1], append(bytes.Clone(whole), 0), bytes.Replace(whole, whole[60:64], []byte("oops"), 1)} {
			os.WriteFile(path, damaged, 0o600)
			if got := result(); !bytes.Equal(got, want) {
				t.Errorf("damage %d: got % x", i, got)
			}
			if again := must(os.ReadFile(path)); len(again) != len(whole) {
				t.Errorf("damage %d: the file holds %d bytes, want %d", i, len(again), len(whole))
			}
		}
		// A binary that is whole but not one of the driver's counts as missing too.
		d := open(t, Options{Dialect: name, CacheDir: dir})
		format := must1(d.(*context).cache.load(scale.Text(name, nil)))
		d.(*context).cache.save(scale.Text(name, nil), []byte("not a program"), format)
		if got := result(); !bytes.Equal(got, want) {
			t.Errorf("foreign binary: got % x", got)
		}
	})
}

func must1(_ []byte, format uint32, ok bool) uint32 {
	if !ok {
		panic("not in the cache")
	}
	return format
}

// A folder that cannot be written costs nothing but time.
func TestCacheWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	d := open(t, Options{CacheDir: file})
	must(d.NewKernel(scale, nil)).Close()
}

func TestList(t *testing.T) {
	open(t, Options{})
	infos, err := List()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, i := range infos {
		t.Logf("%+v", i)
		if seen[i.ID] || i.ID == "" || i.Name == "" || i.Version == "" || i.Driver == "" {
			t.Errorf("%+v", i)
		}
		seen[i.ID] = true
		d := open(t, Options{ID: i.ID})
		if d.Info() != i {
			t.Errorf("opened %+v, want %+v", d.Info(), i)
		}
	}
	for _, id := range []string{"gl43-0", "vk-1", "nonsense"} {
		_, err := Open(Options{ID: id})
		wants(t, err, device.ErrUnsupported, id)
	}
	_, err = Open(Options{Dialect: 99})
	wants(t, err, device.ErrUnsupported, "dialect 99")
}

// Each device has a thread of its own, which goes with it.
func TestThreadsGo(t *testing.T) {
	open(t, Options{}).Close()
	before := runtime.NumGoroutine()
	for range 5 {
		a, b := open(t, Options{}), open(t, Options{Dialect: device.GLSL310ES})
		a.Close()
		must(b.NewBuffer(64, device.Upload))
		b.Close()
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // a goroutine ends a moment after it has said so
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestSteadyState(t *testing.T) {
	d := open(t, Options{})
	in, out := must(d.NewBuffer(64, device.Upload)), must(d.NewBuffer(64, device.Readback))
	k := must(d.NewKernel(scale, nil))
	p := must(d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: in}, {Buffer: out}}, Params: words(16, 3), Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{}))
	data := make([]byte, 64)
	n := testing.AllocsPerRun(50, func() {
		in.Write(0, data)
		must(d.Submit(p)).Wait(time.Minute)
		out.Read(0, data)
	})
	if n > 12 {
		t.Errorf("%v allocations for a submission", n)
	} else {
		t.Logf("%v allocations for a submission", n)
	}
}

// What C says becomes the errors that callers ask for.
func TestFailure(t *testing.T) {
	wants(t, failure("wait", 0, 0), nil, "")
	wants(t, failure("wait", 1, 0), device.ErrTimeout, "gl: wait")
	wants(t, failure("submit", 2, 0x0505), device.ErrOutOfMemory, "gl: submit")
	wants(t, failure("wait", 3, 0x0507), device.ErrLost, "gl: wait")
	wants(t, failure("submit", 4, 0x0502), errAny, "error 0x502")
}

// A lost device says so everywhere, at once, and still closes.
func TestLost(t *testing.T) {
	d := open(t, Options{})
	b, k, p := tiny(d)
	lost := failure("wait", 3, 0x0507)
	d.(*context).fate.Store(&lost)
	_, newBuffer := d.NewBuffer(64, device.Scratch)
	_, newKernel := d.NewKernel(scale, nil)
	_, newProgram := d.NewProgram(nil, device.ProgramOptions{})
	_, submit := d.Submit(p)
	for _, err := range []error{d.Health(), newBuffer, newKernel, newProgram, submit, b.Write(0, []byte{1}), b.Read(0, []byte{1})} {
		wants(t, err, device.ErrLost, "gl: ")
	}
	for _, c := range []interface{ Close() error }{p, k, b, d} {
		wants(t, c.Close(), nil, "")
	}
	// Another device of the same hardware is not touched.
	other := open(t, Options{})
	_, _, p = tiny(other)
	wants(t, must(other.Submit(p)).Wait(time.Minute), nil, "")
}
