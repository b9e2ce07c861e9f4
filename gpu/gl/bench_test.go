//go:build cgo && (linux || windows)

package gl

import (
	"testing"
	"time"

	"ganglion/gpu/device"
)

// nothing writes one word per workgroup and reads none.
var nothing = &device.Shader{
	Name:       "nothing",
	GLSL:       "LOCAL_SIZE\nlayout(std430, binding = 0) buffer Dst { uint dst[]; };\nlayout(std140, binding = 0) uniform Params { uint value; } p;\nvoid main() { dst[0] = p.value; }\n",
	Bindings:   []device.Binding{{Name: "Dst"}},
	ParamBytes: 4,
	Constants:  []device.Constant{{Name: "WG", Default: 1}},
}

// BenchmarkSubmit is what a submission costs without work: of one command, and of the
// 160 commands with a barrier each that decoding a token takes.
func BenchmarkSubmit(b *testing.B) {
	for _, name := range []device.Dialect{device.GLSL430, device.GLSL320ES, device.GLSL310ES} {
		for _, n := range []int{1, 160} {
			b.Run(dialects[name].name+"/"+map[int]string{1: "one", 160: "token"}[n], func(b *testing.B) {
				d := open(b, Options{Dialect: name})
				dst := must(d.NewBuffer(64, device.Scratch))
				k := must(d.NewKernel(nothing, nil))
				commands := make([]device.Command, n)
				for i := range commands {
					commands[i] = device.Command{Kernel: k, Bindings: []device.Range{{Buffer: dst}}, Params: words(uint32(i)), Groups: [3]uint32{1, 1, 1}, Barrier: true}
				}
				p := must(d.NewProgram(commands, device.ProgramOptions{}))
				for b.Loop() {
					if err := must(d.Submit(p)).Wait(time.Minute); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/command")
			})
		}
	}
}

// read sums vectors of four words from a storage buffer, fetch the same by texel fetches.
// Each invocation takes every n-th.
var (
	read  = reader("read", "layout(std430, binding = 0) readonly buffer Src { uvec4 src[]; };", "src[i]")
	fetch = reader("fetch", "layout(binding = 0) uniform highp usamplerBuffer src;", "texelFetch(src, int(i))")
)

func reader(name, source, load string) *device.Shader {
	return &device.Shader{
		Name: name,
		GLSL: "LOCAL_SIZE\n" + source + `
layout(std430, binding = 1) buffer Dst { uint dst[]; };
layout(std140, binding = 0) uniform Params { uint count; } p;
void main() {
	uvec4 sum = uvec4(0u);
	uint step = gl_NumWorkGroups.x * WG;
	for (uint i = gl_GlobalInvocationID.x; i < p.count; i += step) sum += ` + load + `;
	dst[gl_GlobalInvocationID.x] = sum.x + sum.y + sum.z + sum.w;
}
`,
		Bindings:   []device.Binding{{Name: "src", ReadOnly: true, Texels: name == "fetch"}, {Name: "Dst"}},
		ParamBytes: 4,
		Constants:  []device.Constant{{Name: "WG", Default: 64}},
	}
}

// BenchmarkRead is what a plain streaming read of 256 MiB reaches, in two bindings.
func BenchmarkRead(b *testing.B) {
	for _, name := range []device.Dialect{device.GLSL430, device.GLSL320ES, device.GLSL310ES} {
		for _, s := range []*device.Shader{read, fetch} {
			b.Run(dialects[name].name+"/"+s.Name, func(b *testing.B) {
				d := open(b, Options{Dialect: name})
				if s.Bindings[0].Texels && d.Limits().Texels == 0 {
					b.Skip("no texel fetches")
				}
				const window, groups = 128 << 20, 256
				src := must(d.NewBuffer(2*window, device.Weights))
				dst := must(d.NewBuffer(groups*64*4, device.Scratch))
				k := must(d.NewKernel(s, nil))
				var commands []device.Command
				for i := range int64(2) {
					commands = append(commands, device.Command{
						Kernel: k, Params: words(window / 16), Groups: [3]uint32{groups, 1, 1},
						Bindings: []device.Range{{Buffer: src, Offset: i * window, Size: window}, {Buffer: dst}},
					})
				}
				p := must(d.NewProgram(commands, device.ProgramOptions{}))
				b.SetBytes(2 * window)
				for b.Loop() {
					if err := must(d.Submit(p)).Wait(time.Minute); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
