package devicetest

import (
	"fmt"
	"math"

	"ganglion/gpu/device"
)

var kernelChecks = []check{
	{"kernel/constants", func(e *env) {
		const n = 100
		var commands []device.Command
		var outs []device.Buffer
		sets := [][]uint32{nil, {32}, {64, 7}, {16, 2, 1}, {64, 0xFFFFFFFF, 0x80000000}}
		for _, c := range sets {
			outs = append(outs, e.buffer(4*n, device.Readback))
			commands = append(commands, command(e.kernel("affine", c...), n, bind(outs[len(outs)-1]), n, 11))
		}
		e.do(e.program(device.ProgramOptions{}, commands...))
		for i, c := range sets {
			v := []uint32{64, 3, 5}
			copy(v, c)
			want := make([]uint32, n)
			for j := range want {
				want[j] = (11+uint32(j))*v[1] + v[2]
			}
			e.holds(fmt.Sprintf("constants %v", c), outs[i], want)
		}
	}},
	{"kernel/parameters", func(e *env) {
		k := e.kernel("words")
		for seed := range uint32(3) {
			want := noise(32, seed)
			out := e.buffer(128, device.Readback)
			e.do(e.program(device.ProgramOptions{}, command(k, 1, bind(out), want...)))
			e.holds("parameters", out, want)
		}
	}},
	{"kernel/workgroups", func(e *env) {
		const groups = 37
		for _, wg := range []int{1, 2, 16, 32, 64, 128, 256} {
			src := noise(groups*wg, uint32(wg))
			out := e.buffer(4*groups, device.Readback)
			e.do(e.program(device.ProgramOptions{}, command(e.kernel("reduce", uint32(wg)), groups, bind(e.filled(device.Weights, src), out))))
			want := make([]uint32, groups)
			for i, v := range src {
				want[i/wg] += v
			}
			e.holds(fmt.Sprintf("workgroups of %d", wg), out, want)
		}
	}},
	{"kernel/bindings", func(e *env) {
		const n = 300
		var all []device.Buffer
		want := make([]uint32, n)
		for i := range 7 {
			words := noise(n, uint32(i))
			all = append(all, e.filled(usages[i%3], words))
			for j, w := range words {
				want[j] += uint32(i+1) * w
			}
		}
		out := e.buffer(4*n, device.Readback)
		e.do(e.program(device.ProgramOptions{}, command(e.kernel("eight"), 5, bind(append(all, out)...), n)))
		e.holds("eight bindings", out, want)
	}},
	{"kernel/texels", func(e *env) {
		if e.Limits().Texels == 0 {
			e.Logf("%s has no texel fetches", e.Info().Name)
			return
		}
		const n = 500
		src, add := noise(4*n, 1), noise(n, 2)
		want := make([]uint32, n)
		for i := range want {
			want[i] = src[4*i] + 2*src[4*i+1] + 3*src[4*i+2] + 4*src[4*i+3] + add[i]
		}
		out := e.buffer(4*n, device.Readback)
		a, b := e.filled(device.Weights, src), e.filled(device.Upload, add)
		e.do(e.program(device.ProgramOptions{}, command(e.kernel("texels"), 8, bind(a, out, b), n)))
		e.holds("texels", out, want)
	}},
	{"kernel/contraction", func(e *env) {
		if !e.Caps().Precise {
			e.Logf("%s cannot forbid contraction", e.Info().Name)
			return
		}
		const n = 1000
		src, want := make([]uint32, 3*n), make([]uint32, n)
		bits := noise(3*n, 9)
		for i := range want {
			// x and y near 1, and z takes all but the last bits of their product away.
			x, y := math.Float32frombits(0x3F800000|bits[3*i]&0x7FFFFF), math.Float32frombits(0x3F800000|bits[3*i+1]&0x7FFFFF)
			product := x * y
			z := -math.Float32frombits(math.Float32bits(product) ^ bits[3*i+2]&7)
			src[3*i], src[3*i+1], src[3*i+2] = math.Float32bits(x), math.Float32bits(y), math.Float32bits(z)
			want[i] = math.Float32bits(float32(product) + z)
		}
		out := e.buffer(4*n, device.Readback)
		e.do(e.program(device.ProgramOptions{}, command(e.kernel("contract"), 16, bind(e.filled(device.Weights, src), out), n)))
		e.holds("x·y + z in two roundings", out, want)
	}},
	{"kernel/refused", func(e *env) {
		spoilt := func(change func(s *device.Shader)) error {
			s := *shader("affine")
			s.Bindings = append([]device.Binding(nil), s.Bindings...)
			change(&s)
			_, err := e.NewKernel(&s, nil)
			return err
		}
		l := e.Limits()
		e.wants("text and SPIR-V that are none", spoilt(func(s *device.Shader) {
			s.GLSL, s.SPIRV = "void main() { this is no text", []byte("and this is no module")
		}), device.ErrCompile)
		e.wants("too many storage buffers", spoilt(func(s *device.Shader) { s.Bindings = make([]device.Binding, l.StorageBuffers+1) }), device.ErrLimit)
		e.wants("too many parameters", spoilt(func(s *device.Shader) { s.ParamBytes = l.ParamBytes + 4 }), device.ErrLimit)
		e.wants("too much shared memory", spoilt(func(s *device.Shader) { s.Shared = func([]uint32) int { return l.SharedBytes + 4 } }), device.ErrLimit)
		grows := *shader("affine")
		grows.Shared = func(c []uint32) int { return l.SharedBytes / 32 * int(c[0]) }
		_, err := e.NewKernel(&grows, []uint32{33})
		e.wants("too much shared memory with the constants that are given", err, device.ErrLimit)
		_, err = e.NewKernel(shader("affine"), []uint32{uint32(l.Invocations) + 1})
		e.wants("too large a workgroup", err, device.ErrLimit)
		_, err = e.NewKernel(shader("affine"), make([]uint32, 4))
		e.wants("too many constants", err, nil)
		_, err = e.NewKernel(nil, nil)
		e.wants("no shader", err, nil)
	}},
}
