//go:build cgo

package vulkan

import (
	"bytes"
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/kernels"
)

// Kinds of memory as drivers list them (vulkan.gpuinfo.org), with Staging or without.
func TestMemoryTypes(t *testing.T) {
	types := map[string][]memoryType{
		"intel":  {{propertyFlags: local}, {propertyFlags: local | visible | coherent | cached}, {propertyFlags: local | visible | coherent}},
		"nvidia": {{}, {propertyFlags: local}, {propertyFlags: visible | coherent}, {propertyFlags: visible | coherent | cached}, {propertyFlags: local | visible | coherent}},
		"v3d":    {{propertyFlags: local | visible | coherent}},
		"mali":   {{propertyFlags: local | visible | coherent}, {propertyFlags: local | visible | cached}},
	}
	for _, tt := range []struct {
		driver string
		u      device.Usage
		share  bool
		want   []uint32
	}{
		{"intel", device.Weights, true, []uint32{1, 2, 0}},
		{"intel", device.Scratch, false, []uint32{0, 1, 2}},
		{"intel", device.Upload, true, []uint32{1, 2}},
		{"intel", device.Readback, true, []uint32{1, 2}},
		{"nvidia", device.Weights, false, []uint32{1, 4}},
		{"nvidia", device.Scratch, false, []uint32{1, 4}},
		{"nvidia", device.Upload, false, []uint32{4, 2, 3}},
		{"nvidia", device.Readback, false, []uint32{3, 2, 4}},
		{"v3d", device.Readback, true, []uint32{0}},
		{"mali", device.Weights, true, []uint32{0, 1}},
		{"mali", device.Readback, true, []uint32{1, 0}},
	} {
		var got []uint32
		for _, i := range memoryTypes(types[tt.driver], 31, memoryWishes(tt.u, tt.share)) {
			got = append(got, uint32(i))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, usage %d, shared %v: types %v, want %v", tt.driver, tt.u, tt.share, got, tt.want)
		}
	}
	if got := memoryTypes(types["nvidia"], 1<<2|1<<3, memoryWishes(device.Weights, false)); len(got) != 0 {
		t.Errorf("weights in memory of the host, types %v", got)
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		result result
		want   error
	}{
		{-1, device.ErrOutOfMemory}, {-2, device.ErrOutOfMemory}, {-4, device.ErrLost}, {-5, device.ErrOutOfMemory},
		{-6, device.ErrUnsupported}, {-9, device.ErrUnsupported}, {2, device.ErrTimeout}, {-1000012000, device.ErrCompile},
		{-2000000001, device.ErrUnsupported}, {0, nil}, {5, nil},
	} {
		err := failure("place", status{result: tt.result})
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("result %d: %v, want %v", tt.result, err, tt.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "vulkan: place: ") {
			t.Errorf("result %d: %v", tt.result, err)
		}
	}
	if err := failure("place", status{result: -77}); err == nil || !strings.Contains(err.Error(), "error -77") {
		t.Errorf("an unknown result: %v", err)
	}
}

// The loss of a device is told by whatever noticed it, by Health and by all that follows.
func TestLoss(t *testing.T) {
	d := openTest(t, Options{})
	b, err := d.NewBuffer(64, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewProgram(nil, device.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Submit(p); err != nil {
		t.Fatal(err)
	}
	if err := d.check("wait", status{result: -4}); !errors.Is(err, device.ErrLost) {
		t.Fatal(err)
	}
	_, newBuffer := d.NewBuffer(4, device.Scratch)
	_, newKernel := d.NewKernel(copyShader(), nil)
	_, newProgram := d.NewProgram(nil, device.ProgramOptions{})
	_, submit := d.Submit(p)
	for what, err := range map[string]error{
		"Health": d.Health(), "NewBuffer": newBuffer, "NewKernel": newKernel, "NewProgram": newProgram, "Submit": submit,
		"Write": b.Write(0, []byte{1}), "Read": b.Read(0, []byte{1}),
	} {
		if !errors.Is(err, device.ErrLost) {
			t.Errorf("%s: %v, want ErrLost", what, err)
		}
	}
}

// Limits that only this driver has.
func TestAllocationLimits(t *testing.T) {
	d := openTest(t, Options{})
	d.props.allocations = 2
	var all []device.Buffer
	for range 2 {
		b, err := d.NewBuffer(64, device.Scratch)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	if _, err := d.NewBuffer(64, device.Scratch); !errors.Is(err, device.ErrLimit) {
		t.Errorf("a third allocation of two: %v", err)
	}
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	d.props.allocation_bytes = 1 << 10
	if _, err := d.NewBuffer(64, device.Scratch); err != nil {
		t.Error(err)
	}
	d.props.allocations = 10
	if _, err := d.NewBuffer(1<<16, device.Scratch); !errors.Is(err, device.ErrLimit) {
		t.Errorf("an allocation above the largest: %v", err)
	}
}

// Memory that is not coherent is flushed and invalidated in whole atoms.
func TestIncoherentMemory(t *testing.T) {
	d := openTest(t, Options{})
	opened, err := d.NewBuffer(1000, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	b := opened.(*Buffer)
	b.coherent = false
	for _, c := range []struct{ at, n int64 }{{0, 1000}, {1, 1}, {63, 2}, {64, 64}, {999, 1}, {500, 300}} {
		at, size := b.atoms(c.at, c.n)
		if end := uint64(at) + uint64(size); uint64(at)%uint64(d.props.atom) != 0 || uint64(at) > uint64(c.at) || (uint64(size) < 1<<62 && end < uint64(c.at+c.n)) {
			t.Errorf("%d bytes at %d become %d at %d", c.n, c.at, size, at)
		}
		want, got := bytes.Repeat([]byte{byte(c.at + 1)}, int(c.n)), make([]byte, c.n)
		if err := errors.Join(b.Write(c.at, want), b.Read(c.at, got)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes at %d do not come back (%v)", c.n, c.at, err)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []physical{{info: device.Info{ID: "a"}}, {info: device.Info{ID: "b"}}}
	for _, tt := range []struct {
		o    Options
		want string
	}{{Options{}, "a"}, {Options{Index: 1}, "b"}, {Options{ID: "b"}, "b"}, {Options{ID: "a", Index: 9}, "a"}, {Options{Index: 2}, ""}, {Options{Index: -1}, ""}, {Options{ID: "c"}, ""}} {
		p, err := choose(all, tt.o)
		if tt.want == "" {
			if !errors.Is(err, device.ErrUnsupported) {
				t.Errorf("%+v: %v", tt.o, err)
			}
		} else if err != nil || p.info.ID != tt.want {
			t.Errorf("%+v: %+v, %v, want %s", tt.o, p, err, tt.want)
		}
	}
}

// A machine without drivers, and one without Vulkan, can start the binary.
func TestWithoutDrivers(t *testing.T) {
	openTest(t, Options{}) // skips where there is no loader
	t.Setenv("VK_ICD_FILENAMES", "/none.json")
	t.Setenv("VK_DRIVER_FILES", "/none.json")
	if all, err := List(); len(all) != 0 || (err != nil && !errors.Is(err, device.ErrUnsupported)) {
		t.Errorf("devices %v, %v", all, err)
	}
	if _, err := Open(Options{}); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

func TestNothingIsLinked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads an ELF file")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	devicetest.NothingIsLinked(t, self)
}

// A buffer or kernel that a program uses is not freed under it.
func TestUsedIsNotClosed(t *testing.T) {
	d := openTest(t, Options{})
	b, err := d.NewBuffer(256, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.NewKernel(copyShader(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewProgram([]device.Command{{Kernel: k, Bindings: []device.Range{{Buffer: b}, {Buffer: b}}, Params: make([]byte, 12), Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Close() == nil || k.Close() == nil {
		t.Error("what a program uses was closed")
	}
	if err := errors.Join(p.Close(), b.Close(), k.Close()); err != nil {
		t.Error(err)
	}
}

// Submitting and waiting leave no garbage.
func TestSubmissionAllocatesNothing(t *testing.T) {
	d := openTest(t, Options{})
	p, err := d.NewProgram(nil, device.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(20, func() {
		f, err := d.Submit(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(time.Minute); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What still runs when Close gives up is left alone, and freed by nobody.
func TestCloseGivesUp(t *testing.T) {
	d := openTest(t, Options{})
	b, err := d.NewBuffer(1<<20, device.Scratch)
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.NewKernel(copyShader(), nil)
	if err != nil {
		t.Fatal(err)
	}
	copies := make([]device.Command, 1000)
	for i := range copies {
		copies[i] = device.Command{Kernel: k, Bindings: []device.Range{{Buffer: b}, {Buffer: b}}, Groups: [3]uint32{256, 1, 1}, Barrier: true,
			Params: []byte{0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0}} // 65,536 words
	}
	p, err := d.NewProgram(copies, device.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Submit(p)
	if err != nil {
		t.Fatal(err)
	}
	d.closeWait = time.Millisecond
	if err := p.Close(); !errors.Is(err, device.ErrTimeout) {
		t.Errorf("closing the program: %v, want ErrTimeout", err)
	}
	if err := d.Close(); !errors.Is(err, device.ErrTimeout) {
		t.Errorf("closing the device: %v, want ErrTimeout", err)
	}
	if len(d.buffers) != 1 || len(d.programs) != 1 {
		t.Error("what runs was freed")
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing it again: %v", err)
	}
	// For the test's own end, as if Close had not been called.
	d.closed, d.closeWait = false, time.Minute
	if err := f.Wait(math.MaxInt64); err != nil {
		t.Error(err)
	}
}

// A kernel that needs an ability is compiled where the device has it, of which the layer of
// validation says nothing, and refused where it has not.
func TestAbilities(t *testing.T) {
	d := openTest(t, Options{})
	for _, name := range []string{"heads_max_subgroup", "matmul_q8_0_fast_dot4"} {
		s := kernels.Get(name)
		had := d.caps
		for _, caps := range []device.Caps{had, {}} {
			d.caps = caps
			k, err := d.NewKernel(s, nil)
			if can := caps.Has(s.Needs); (err == nil) != can || !can && !errors.Is(err, device.ErrUnsupported) {
				t.Errorf("%s with %+v: %v", name, caps, err)
			}
			if err == nil {
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		d.caps = had
	}
}
