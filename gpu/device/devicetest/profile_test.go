package devicetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/gpu/device"
)

// asks are requests at a limit, and one beyond it. Each makes what it needs on the
// profile's device with n of what the limit counts, and gives the device's answer.
type ask struct {
	limit string
	most  func(l device.Limits) int64
	step  int64 // from the limit to what is beyond it
	do    func(d device.Device, n int64) error
}

func kernelOf(d device.Device, change func(s *device.Shader), constants ...uint32) error {
	s := adder("add")
	s.Constants = []device.Constant{{Name: "WG", Default: 64}}
	change(s)
	_, err := d.NewKernel(s, constants)
	return err
}

func programOf(d device.Device, change func(c *device.Command)) error {
	k, err := d.NewKernel(adder("add"), nil)
	if err != nil {
		return err
	}
	b, err := d.NewBuffer(1<<20, device.Scratch)
	if err != nil {
		return err
	}
	c := device.Command{Kernel: k, Bindings: bind(b, b), Groups: [3]uint32{1, 1, 1}}
	change(&c)
	_, err = d.NewProgram([]device.Command{c}, device.ProgramOptions{})
	return err
}

var asks = []ask{
	{"buffer bytes", func(l device.Limits) int64 { return l.BufferBytes }, 1, func(d device.Device, n int64) error {
		_, err := d.NewBuffer(n, device.Weights)
		return err
	}},
	{"storage buffers", func(l device.Limits) int64 { return int64(l.StorageBuffers) }, 1, func(d device.Device, n int64) error {
		return kernelOf(d, func(s *device.Shader) { s.Bindings = make([]device.Binding, n) })
	}},
	{"parameter bytes", func(l device.Limits) int64 { return int64(l.ParamBytes) }, 4, func(d device.Device, n int64) error {
		return kernelOf(d, func(s *device.Shader) { s.ParamBytes = int(n) })
	}},
	{"shared bytes", func(l device.Limits) int64 { return int64(l.SharedBytes) }, 4, func(d device.Device, n int64) error {
		return kernelOf(d, func(s *device.Shader) { s.Shared = func([]uint32) int { return int(n) } })
	}},
	{"invocations", func(l device.Limits) int64 { return int64(l.Invocations) }, 1, func(d device.Device, n int64) error {
		return kernelOf(d, func(s *device.Shader) {}, uint32(n))
	}},
	{"invocations", func(l device.Limits) int64 { return int64(l.Invocations) }, 1, func(d device.Device, n int64) error {
		return kernelOf(d, func(s *device.Shader) { s.Constants[0].Default = uint32(n) })
	}},
	{"texel fetches", func(l device.Limits) int64 { return 0 }, 1, func(d device.Device, n int64) error {
		return kernelOf(d, func(s *device.Shader) { s.Bindings[0].Texels = n > 0 })
	}},
	{"binding bytes", func(l device.Limits) int64 { return min(l.BindingBytes, l.BufferBytes-4) }, 4, func(d device.Device, n int64) error {
		if l := d.Limits(); l.BindingBytes >= l.BufferBytes {
			return nil // a buffer is refused before
		}
		return programOf(d, func(c *device.Command) {
			b, err := d.NewBuffer(n, device.Weights)
			if err != nil {
				panic(err)
			}
			c.Bindings[0] = device.Range{Buffer: b}
		})
	}},
	{"bytes of offset alignment", func(l device.Limits) int64 { return l.OffsetAlign }, 4, func(d device.Device, n int64) error {
		return programOf(d, func(c *device.Command) { c.Bindings[1].Offset = n })
	}},
	{"parameter bytes", func(l device.Limits) int64 { return int64(l.ParamBytes) }, 4, func(d device.Device, n int64) error {
		return programOf(d, func(c *device.Command) { c.Params = make([]byte, n) })
	}},
	{"workgroups on axis 0", func(l device.Limits) int64 { return l.Groups[0] }, 1, func(d device.Device, n int64) error {
		return programOf(d, func(c *device.Command) { c.Groups[0] = uint32(n) })
	}},
	{"workgroups on axis 2", func(l device.Limits) int64 { return l.Groups[2] }, 1, func(d device.Device, n int64) error {
		return programOf(d, func(c *device.Command) { c.Groups[2] = uint32(n) })
	}},
}

// Each limit of each profile takes what is at it and refuses what is beyond, with an
// error and a record.
func TestProfiles(t *testing.T) {
	for _, p := range Profiles() {
		for i, a := range asks {
			t.Run(fmt.Sprintf("%s/%d %s", p.Name, i, a.limit), func(t *testing.T) {
				d := p.Wrap(roomy())
				most := a.most(d.Limits())
				if err := a.do(d, most); err != nil || len(d.Violations()) > 0 {
					t.Fatalf("at the limit of %d: %v, %v", most, err, d.Violations())
				}
				if a.limit == "binding bytes" && d.Limits().BindingBytes >= d.Limits().BufferBytes {
					return
				}
				err := a.do(d, most+a.step)
				if !errors.Is(err, device.ErrLimit) || !strings.Contains(err.Error(), p.Name) {
					t.Errorf("beyond the limit of %d: %v", most, err)
				}
				if v := d.Violations(); len(v) != 1 || v[0].Limit != a.limit {
					t.Errorf("recorded %v", v)
				}
			})
		}
	}
}

// module is SPIR-V that asks for capabilities.
func module(capabilities ...uint32) []byte {
	words := []uint32{spirvMagic, 0x00010300, 0, 10, 0}
	for _, c := range capabilities {
		words = append(words, 2<<16|opCapability, c)
	}
	return bytesOf(append(words, 3<<16|14, 0, 1)) // OpMemoryModel
}

func TestProfilesRefuseFeatures(t *testing.T) {
	for _, tt := range []struct {
		name         string
		capabilities []uint32
		profiles     string // that have it
	}{
		{"none", []uint32{capMatrix, capShader}, "v3d42 v3d71 mali-g52-gles mali-g610 adreno-128m webgpu-floor"},
		{"subgroups", []uint32{capShader, capGroupNonUniform, capGroupArithmetic}, "v3d71 mali-g610 adreno-128m"},
		{"clustered subgroups", []uint32{capShader, 67}, ""},
		{"halves", []uint32{capShader, capFloat16}, "mali-g610 adreno-128m"},
		{"dot products", []uint32{capShader, capDotProduct, capDotInputPacked}, "mali-g610 adreno-128m"},
		{"doubles", []uint32{capShader, 10}, ""},
		{"8-bit storage", []uint32{capShader, 4448}, ""},
		{"texel fetches", []uint32{capShader, capSampledBuffer}, ""},
	} {
		for _, p := range Profiles() {
			d := p.Wrap(roomy())
			err := kernelOf(d, func(s *device.Shader) { s.SPIRV = module(tt.capabilities...) })
			if has := strings.Contains(" "+tt.profiles+" ", " "+p.Name+" "); has != (err == nil) || has != (len(d.Violations()) == 0) {
				t.Errorf("%s on %s: %v, %v", tt.name, p.Name, err, d.Violations())
			}
		}
	}
	d := profiles[0].Wrap(roomy())
	for _, damaged := range [][]byte{nil, {1, 2, 3}, make([]byte, 20), bytesOf([]uint32{spirvMagic, 0, 0, 0, 0, opCapability, 0}), module(1)[:22]} {
		if err := kernelOf(d, func(s *device.Shader) { s.SPIRV = damaged }); err != nil {
			t.Errorf("% x: %v", damaged, err)
		}
	}
}

// A profile hides what a device has beyond it, and never promises what it has not.
func TestProfileWithinDevice(t *testing.T) {
	small := roomy()
	small.limits = device.Limits{StorageBuffers: 4, BindingBytes: 1000, BufferBytes: 2000, OffsetAlign: 4096, Invocations: 32, SharedBytes: 64, ParamBytes: 16, Groups: [3]int64{1, 2, 3}}
	small.caps = device.Caps{}
	for _, p := range Profiles() {
		if l := p.Wrap(small).Limits(); l != small.limits {
			t.Errorf("%s on a small device: %+v", p.Name, l)
		}
		if c := p.Wrap(small).Caps(); c != small.caps {
			t.Errorf("%s on a small device: %+v", p.Name, c)
		}
		if l := p.Wrap(roomy()).Limits(); l != p.Limits {
			t.Errorf("%s on a large device: %+v", p.Name, l)
		}
	}
	if c := profiles[1].Wrap(roomy()).Caps(); c.Subgroup != 32 || c.Half || c.Timer {
		t.Errorf("v3d71 on a device with everything: %+v", c)
	}
}

// The floor that gpu/kernels is written for fits every profile.
func TestProfilesHaveTheFloor(t *testing.T) {
	for _, p := range Profiles() {
		l := p.Limits
		if l.StorageBuffers < 8 || l.BindingBytes < 1<<27 || l.BufferBytes < l.BindingBytes || l.Invocations < 256 ||
			l.SharedBytes < 16<<10 || l.ParamBytes < 128 || l.Groups != wide {
			t.Errorf("%s: %+v", p.Name, l)
		}
	}
}

func TestProfileRecordsSlowSubmissions(t *testing.T) {
	synctest.Test(t, recordsSlowSubmissions)
}

func recordsSlowSubmissions(t *testing.T) {
	p := Profile{Name: "slow", Limits: roomy().limits, Budget: 20 * time.Millisecond, Bandwidth: 1e9}
	run := func(weights int64, took time.Duration) []Submission {
		f := roomy()
		f.took = took
		d := p.Wrap(f)
		k, _ := d.NewKernel(adder("add"), nil)
		w, _ := d.NewBuffer(weights, device.Weights)
		b, _ := d.NewBuffer(1<<30, device.Scratch)
		program, err := d.NewProgram([]device.Command{{Kernel: k, Bindings: bind(w, b), Groups: [3]uint32{1, 1, 1}}}, device.ProgramOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fence, err := d.Submit(program)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := fence.Wait(time.Second); err != nil {
				t.Fatal(err)
			}
		}
		return d.Slow()
	}
	if s := run(1000, 0); len(s) != 0 {
		t.Errorf("a small submission: %v", s)
	}
	if s := run(30e6, 0); len(s) != 1 || s[0].Predicted != 30*time.Millisecond || s[0].Commands != 1 {
		t.Errorf("30 MB at 1 GB/s: %v", s)
	}
	if s := run(1000, 30*time.Millisecond); len(s) != 1 || s[0].Measured != 30*time.Millisecond {
		t.Errorf("a submission that takes 30 ms: %v", s)
	}
}
