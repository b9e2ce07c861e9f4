//go:build cgo && (linux || windows)

package gl

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// texels is a kernel that reads its first binding by texel fetches.
var texels = &device.Shader{
	Name: "texels",
	GLSL: `LOCAL_SIZE
layout(binding = 0) uniform highp usamplerBuffer src;
layout(std430, binding = 1) buffer Dst { uint dst[]; };
layout(std140, binding = 0) uniform Params { int n; } p;
void main() {
	int i = int(gl_GlobalInvocationID.x);
	if (i < p.n) { uvec4 v = texelFetch(src, i); dst[i] = v.x + 10u * v.y + 100u * v.z + 1000u * v.w; }
}
`,
	Bindings:   []device.Binding{{Name: "src", ReadOnly: true, Texels: true}, {Name: "Dst"}},
	ParamBytes: 4,
	Constants:  []device.Constant{{Name: "WG", Default: 64}},
}

// What is outside the limits is refused before the driver sees it, by name; partners
// that are just inside are taken.
func TestLimits(t *testing.T) {
	d := open(t, Options{})
	l := d.Limits()
	other := open(t, Options{Dialect: device.GLSL320ES})
	foreign := must(other.NewBuffer(64, device.Scratch))
	b := must(d.NewBuffer(4096, device.Scratch))
	k, fetch := must(d.NewKernel(scale, nil)), must(d.NewKernel(texels, nil))
	big := must(d.NewBuffer(l.BindingBytes+4096, device.Scratch))
	closed := must(d.NewBuffer(64, device.Scratch))
	closed.Close()

	fine := func() device.Command {
		return device.Command{Kernel: k, Bindings: []device.Range{{Buffer: b}, {Buffer: b}}, Params: words(1, 1), Groups: [3]uint32{1, 1, 1}}
	}
	tests := []struct {
		name   string
		change func(c *device.Command)
		want   error  // nil = taken
		text   string // part of the message
	}{
		{"as it should be", func(c *device.Command) {}, nil, ""},
		{"aligned offset", func(c *device.Command) { c.Bindings[0] = device.Range{Buffer: b, Offset: 16 * l.OffsetAlign} }, nil, ""},
		{"unaligned offset", func(c *device.Command) { c.Bindings[0] = device.Range{Buffer: b, Offset: 2} }, device.ErrLimit, "offset 2"},
		{"largest binding", func(c *device.Command) { c.Bindings[0] = device.Range{Buffer: big, Size: l.BindingBytes} }, nil, ""},
		{"larger binding", func(c *device.Command) { c.Bindings[0] = device.Range{Buffer: big} }, device.ErrLimit, "the device takes"},
		{"most workgroups", func(c *device.Command) { c.Groups[1] = uint32(l.Groups[1]) }, nil, ""},
		{"more workgroups", func(c *device.Command) { c.Groups[1] = uint32(l.Groups[1]) + 1 }, device.ErrLimit, "workgroups on axis 1"},
		{"no workgroups", func(c *device.Command) { c.Groups[2] = 0 }, errAny, "no workgroups on axis 2"},
		{"beyond the end", func(c *device.Command) { c.Bindings[1] = device.Range{Buffer: b, Size: 4097} }, errAny, "4097 bytes at 0"},
		{"behind the end", func(c *device.Command) { c.Bindings[1] = device.Range{Buffer: b, Offset: 4096} }, errAny, "0 bytes at 4096"},
		{"before the beginning", func(c *device.Command) { c.Bindings[1] = device.Range{Buffer: b, Offset: -16, Size: 16} }, errAny, "16 bytes at -16"},
		{"size that overflows", func(c *device.Command) { c.Bindings[1] = device.Range{Buffer: b, Offset: 16, Size: 1<<63 - 1} }, errAny, "of a buffer"},
		{"negative size", func(c *device.Command) { c.Bindings[1] = device.Range{Buffer: b, Size: -4} }, errAny, "-4 bytes"},
		{"missing binding", func(c *device.Command) { c.Bindings = c.Bindings[:1] }, errAny, "1 bindings, the shader has 2"},
		{"no buffer", func(c *device.Command) { c.Bindings[0] = device.Range{} }, errAny, "not one of this device"},
		{"another device's buffer", func(c *device.Command) { c.Bindings[0] = device.Range{Buffer: foreign} }, errAny, "not one of this device"},
		{"closed buffer", func(c *device.Command) { c.Bindings[0] = device.Range{Buffer: closed} }, device.ErrClosed, "binding 0"},
		{"no kernel", func(c *device.Command) { c.Kernel = nil }, errAny, "not one of this device"},
		{"too few parameters", func(c *device.Command) { c.Params = words(1) }, errAny, "4 bytes of parameters, the shader has 8"},
		{"whole texels", func(c *device.Command) { c.Kernel, c.Params = fetch, words(1); c.Bindings[0].Size = 32 }, nil, ""},
		{"half a texel", func(c *device.Command) { c.Kernel, c.Params = fetch, words(1); c.Bindings[0].Size = 24 }, errAny, "not whole texels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fine()
			tt.change(&c)
			p, err := d.NewProgram([]device.Command{fine(), c}, device.ProgramOptions{})
			if err == nil {
				defer p.Close()
			}
			wants(t, err, tt.want, tt.text)
			if err != nil && !strings.Contains(err.Error(), "command 1") {
				t.Errorf("%v: does not name the command", err)
			}
		})
	}
	wants(t, d.Health(), nil, "")
}

// errAny stands for an error without a sentinel.
var errAny = errors.New("any")

func wants(t *testing.T, got, want error, text string) {
	t.Helper()
	switch {
	case want == nil && got != nil:
		t.Errorf("got %v, want no error", got)
	case want != nil && got == nil:
		t.Errorf("got no error, want one with %q", text)
	case want != nil && want != errAny && !errors.Is(got, want):
		t.Errorf("got %v, want %v", got, want)
	case want != nil && !strings.Contains(got.Error(), text):
		t.Errorf("got %v, want one with %q", got, text)
	}
}

func TestKernelLimits(t *testing.T) {
	d := open(t, Options{})
	l := d.Limits()
	tests := []struct {
		name      string
		change    func(s *device.Shader)
		constants []uint32
		want      error
		text      string
	}{
		{"as it should be", func(s *device.Shader) {}, nil, nil, ""},
		{"largest workgroup", func(s *device.Shader) {}, []uint32{uint32(l.Invocations)}, nil, ""},
		{"larger workgroup", func(s *device.Shader) {}, []uint32{uint32(l.Invocations) + 1}, device.ErrLimit, "invocations"},
		{"shared memory", func(s *device.Shader) { s.Shared = func([]uint32) int { return l.SharedBytes + 1 } }, nil, device.ErrLimit, "shared"},
		{"parameters", func(s *device.Shader) { s.ParamBytes = l.ParamBytes + 4 }, nil, device.ErrLimit, "parameters"},
		{"ability", func(s *device.Shader) { s.Needs = device.Dot4 }, nil, device.ErrUnsupported, "dot4"},
		{"bindings", func(s *device.Shader) { s.Bindings = make([]device.Binding, l.StorageBuffers+1) }, nil, device.ErrLimit, "storage buffers"},
		{"constants", func(s *device.Shader) {}, []uint32{64, 1, 1}, errAny, "3 constants, the shader has 2"},
		{"text", func(s *device.Shader) { s.GLSL = "LOCAL_SIZE\nvoid main() { nonsense(); }\n" }, nil, device.ErrCompile, "nonsense"},
		{"no main", func(s *device.Shader) { s.GLSL = "LOCAL_SIZE\n" }, nil, device.ErrCompile, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := *scale
			tt.change(&s)
			k, err := d.NewKernel(&s, tt.constants)
			wants(t, err, tt.want, tt.text)
			if err == nil {
				k.Close()
			}
		})
	}
	if _, err := d.NewKernel(nil, nil); err == nil {
		t.Error("no shader was taken")
	}
	wants(t, d.Health(), nil, "")
}

func TestBufferLimits(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		d := open(t, Options{Dialect: name})
		for _, size := range []int64{0, -1} {
			if _, err := d.NewBuffer(size, device.Scratch); err == nil {
				t.Errorf("a buffer of %d bytes was made", size)
			}
		}
		_, err := d.NewBuffer(d.Limits().BufferBytes+1, device.Scratch)
		wants(t, err, device.ErrLimit, "new buffer")
		for _, u := range []device.Usage{device.Weights, device.Scratch, device.Upload, device.Readback} {
			b := must(d.NewBuffer(1001, u))
			got := []byte{1, 2, 3}
			if err := b.Read(998, got); err != nil || got[0]|got[1]|got[2] != 0 {
				t.Errorf("usage %d: a new buffer holds % x (%v)", u, got, err)
			}
			if err := b.Write(999, []byte{7, 8}); err != nil {
				t.Error(err)
			}
			if err := b.Read(998, got); err != nil || string(got) != "\x00\x07\x08" {
				t.Errorf("usage %d: read % x (%v)", u, got, err)
			}
			wants(t, b.Write(1000, []byte{1, 2}), errAny, "2 bytes at 1000 of a buffer of 1001")
			wants(t, b.Read(-1, got), errAny, "3 bytes at -1")
			wants(t, b.Read(1001, nil), nil, "")
			wants(t, b.Close(), nil, "")
			wants(t, b.Close(), nil, "")
			wants(t, b.Read(0, got), device.ErrClosed, "read")
			wants(t, b.Write(0, got), device.ErrClosed, "write")
		}
	})
}

func TestTexels(t *testing.T) {
	eachDialect(t, func(t *testing.T, name device.Dialect) {
		d := open(t, Options{Dialect: name})
		if d.Limits().Texels == 0 {
			t.Skip("no texel fetches")
		}
		mid := must(d.NewBuffer(4096, device.Scratch))
		src := must(d.NewBuffer(4096, device.Upload))
		dst := must(d.NewBuffer(1024, device.Readback))
		fetch, fill := must(d.NewKernel(texels, nil)), must(d.NewKernel(scale, nil))
		at := d.Limits().OffsetAlign * 4
		p := must(d.NewProgram([]device.Command{
			{Kernel: fill, Bindings: []device.Range{{Buffer: src}, {Buffer: mid}}, Params: words(1024, 1), Groups: [3]uint32{16, 1, 1}},
			{Kernel: fetch, Bindings: []device.Range{{Buffer: mid, Offset: at}, {Buffer: dst}}, Params: words(8), Groups: [3]uint32{1, 1, 1}, Barrier: true},
		}, device.ProgramOptions{}))
		defer p.Close()
		for round := range uint32(2) {
			in := make([]uint32, 1024)
			for i := range in {
				in[i] = uint32(i) + round
			}
			src.Write(0, words(in...))
			if err := must(d.Submit(p)).Wait(time.Minute); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 32)
			dst.Read(0, got)
			var want []uint32
			for i := range uint32(8) {
				v := uint32(at/4) + 4*i + round + 1
				want = append(want, v+10*(v+1)+100*(v+2)+1000*(v+3))
			}
			if string(got) != string(words(want...)) {
				t.Errorf("round %d: got % x, want % x", round, got, words(want...))
			}
		}
	})
}
