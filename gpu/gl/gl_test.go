//go:build cgo && (linux || windows)

package gl

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
)

// scale is a kernel with everything: dst[i] = src[i] * factor + FACTOR, words.
var scale = &device.Shader{
	Name: "scale",
	GLSL: `
LOCAL_SIZE
layout(std430, binding = 0) readonly buffer Src { uint src[]; };
layout(std430, binding = 1) buffer Dst { uint dst[]; };
layout(std140, binding = 0) uniform Params { uint n; uint factor; } p;
void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < p.n) dst[i] = src[i] * p.factor + ADD;
}
`,
	Bindings:   []device.Binding{{Name: "Src", ReadOnly: true}, {Name: "Dst"}},
	ParamBytes: 8,
	Constants:  []device.Constant{{Name: "WG", Default: 64}, {Name: "ADD", Default: 1}},
}

// nothing writes one word and reads none.
var nothing = &device.Shader{
	Name:       "nothing",
	GLSL:       "LOCAL_SIZE\nlayout(std430, binding = 0) buffer Dst { uint dst[]; };\nlayout(std140, binding = 0) uniform Params { uint value; } p;\nvoid main() { dst[0] = p.value; }\n",
	Bindings:   []device.Binding{{Name: "Dst"}},
	ParamBytes: 4,
	Constants:  []device.Constant{{Name: "WG", Default: 1}},
}

// open opens a device of a dialect, or skips where there is none.
func open(t testing.TB, o Options) device.Device {
	t.Helper()
	return devicetest.Open(t, "gl", func() (device.Device, error) { return Open(o) })
}

// eachDialect runs a test in every language.
func eachDialect(t *testing.T, f func(t *testing.T, name device.Dialect)) {
	for _, name := range []device.Dialect{device.GLSL430, device.GLSL320ES, device.GLSL310ES} {
		t.Run(dialects[name].name, func(t *testing.T) { f(t, name) })
	}
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// must is for calls that a test does not ask about.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestRun(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		d := open(t, Options{Dialect: name})
		t.Logf("%+v\n%+v\n%+v", d.Info(), d.Limits(), d.Caps())
		src := must(d.NewBuffer(4096, device.Upload))
		mid := must(d.NewBuffer(4096, device.Scratch))
		dst := must(d.NewBuffer(4096, device.Readback))
		k := must(d.NewKernel(scale, []uint32{128, 7}))
		p := must(d.NewProgram([]device.Command{
			{Kernel: k, Bindings: []device.Range{{Buffer: src}, {Buffer: mid}}, Params: words(1024, 3), Groups: [3]uint32{8, 1, 1}},
			{Kernel: k, Bindings: []device.Range{{Buffer: mid}, {Buffer: dst}}, Params: words(1000, 5), Groups: [3]uint32{8, 1, 1}, Barrier: true},
		}, device.ProgramOptions{Timed: d.Caps().Timer}))
		for round := range uint32(3) {
			in, want := make([]uint32, 1024), make([]uint32, 1024)
			for i := range in {
				in[i] = uint32(i) * (round + 1)
				if i < 1000 {
					want[i] = (in[i]*3+7)*5 + 7
				}
			}
			if err := src.Write(0, words(in...)); err != nil {
				t.Fatal(err)
			}
			f := must(d.Submit(p))
			if err := f.Wait(time.Minute); err != nil {
				t.Fatal(err)
			}
			if d.Caps().Timer && (len(f.Times()) != 2 || f.Times()[0] <= 0) {
				t.Errorf("times %v", f.Times())
			}
			got := make([]byte, 4096)
			if err := dst.Read(0, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, words(want...)) {
				t.Errorf("round %d: got % x…, want % x…", round, got[:16], words(want...)[:16])
			}
		}
	})
}
