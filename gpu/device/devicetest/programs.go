package devicetest

import (
	"fmt"

	"ganglion/gpu/device"
)

var programChecks = []check{
	{"program/offsets", func(e *env) {
		// Three ranges of one buffer in turns, and a fourth of another at an offset.
		align := max(e.Limits().OffsetAlign, 256)
		n := int(align / 4)
		src := noise(8*n, 3)
		a, out := e.filled(device.Weights, src), e.filled(device.Readback, noise(3*n, 4))
		k := e.kernel("eight")
		at := func(i int) device.Range { return device.Range{Buffer: a, Offset: int64(i) * align, Size: align} }
		c := command(k, (n+63)/64, []device.Range{at(5), at(0), at(7), at(3), at(3), {Buffer: a, Offset: align}, at(6),
			{Buffer: out, Offset: align, Size: align}}, uint32(n))
		e.do(e.program(device.ProgramOptions{}, c))
		want := noise(3*n, 4)
		for i := range n {
			want[n+i] = 0
			for j, from := range []int{5, 0, 7, 3, 3, 1, 6} {
				want[n+i] += uint32(j+1) * src[from*n+i]
			}
		}
		e.holds("ranges at offsets", out, want)
	}},
	{"program/barriers", func(e *env) {
		const n, steps = 5000, 60
		want := noise(n, 5)
		a, b := e.filled(device.Scratch, want), e.buffer(4*n, device.Scratch)
		k := e.kernel("shift")
		var commands []device.Command
		for i := range steps {
			commands = append(commands, command(k, (n+63)/64, bind(a, b), n, uint32(i*997+1)))
			a, b = b, a
			want = shifted(want, i*997+1)
		}
		e.do(e.program(device.ProgramOptions{}, commands...))
		e.holds("a chain of commands", a, want)
	}},
	{"program/side-by-side", func(e *env) {
		// Commands without a barrier write parts of one buffer; the last one needs all.
		const parts, n = 16, 1000
		align := max(e.Limits().OffsetAlign, 4096)
		src, sums := e.buffer(parts*align, device.Scratch), e.buffer(4, device.Readback)
		fill, gather := e.kernel("affine", 64, 1, 0), e.kernel("gather")
		var commands []device.Command
		want := uint32(0)
		for i := range parts {
			r := []device.Range{{Buffer: src, Offset: int64(i) * align, Size: 4 * n}}
			commands = append(commands, beside(command(fill, (n+63)/64, r, n, uint32(1000*i))))
			for j := range uint32(n) {
				want += uint32(1000*i) + j
			}
		}
		commands = append(commands, command(gather, 1, bind(src, sums), uint32(parts*align/4), 0))
		e.do(e.program(device.ProgramOptions{}, commands...))
		e.holds("the sum of all parts", sums, []uint32{want})
	}},
	{"program/many", func(e *env) {
		const n = 3000
		k := e.kernel("gather")
		src, out := e.filled(device.Weights, []uint32{1, 2, 3}), e.buffer(4*8, device.Readback)
		commands := make([]device.Command, n)
		want := make([]uint32, 8)
		for i := range commands {
			commands[i] = command(k, 1, bind(src, out), uint32(i%4), uint32(i%8))
			want[i%8] += []uint32{0, 1, 3, 6}[i%4]
		}
		e.do(e.program(device.ProgramOptions{}, commands...))
		e.holds(fmt.Sprintf("%d commands", n), out, want)
	}},
	{"program/grids", func(e *env) {
		for _, c := range []struct {
			wg uint32
			g  [3]uint32
		}{{4, [3]uint32{1, 1, 1}}, {4, [3]uint32{5, 7, 1}}, {8, [3]uint32{3, 1, 9}}, {2, [3]uint32{1, 300, 2}}, {1, [3]uint32{4, 3, 500}}, {1, [3]uint32{65535, 1, 1}}} {
			e.grid(c.wg, c.g)
		}
	}},
	{"program/resubmission", func(e *env) {
		const n = 200
		in, sum, out := e.buffer(4*n, device.Upload), e.buffer(4, device.Scratch), e.buffer(4, device.Readback)
		k := e.kernel("gather")
		one := e.filled(device.Weights, []uint32{0})
		p := e.program(device.ProgramOptions{}, command(k, 1, bind(in, sum), n, 0), command(k, 1, bind(one, out), 1, 0),
			command(e.kernel("shift"), 1, bind(sum, out), 1, 0))
		want := uint32(0)
		for round := range uint32(25) {
			words := noise(n, round)
			e.must(in.Write(0, bytesOf(words)))
			e.do(p)
			for _, w := range words {
				want += w
			}
			e.holds(fmt.Sprintf("submission %d", round), out, []uint32{3*want + 1})
		}
		e.must(p.Close())
		e.must(p.Close())
	}},
	{"program/order", func(e *env) {
		// Submissions that nobody waited for in between run one after the other.
		const n, steps = 3000, 12
		want := noise(n, 6)
		a, b := e.filled(device.Scratch, want), e.buffer(4*n, device.Scratch)
		k := e.kernel("shift")
		var fences []device.Fence
		for i := range steps {
			f, err := e.Submit(e.program(device.ProgramOptions{}, beside(command(k, (n+63)/64, bind(a, b), n, uint32(7*i+1)))))
			e.must(err)
			fences = append(fences, f)
			a, b = b, a
			want = shifted(want, 7*i+1)
		}
		for i := range fences {
			e.must(fences[len(fences)-1-i].Wait(patience))
		}
		e.holds("a chain of submissions", a, want)
	}},
	{"program/refused", refusedPrograms},
	{"program/large-binding", func(e *env) {
		l := e.Limits()
		if l.BindingBytes > 1<<28 || l.BufferBytes <= l.BindingBytes {
			e.Logf("a binding of %d bytes is not tried", l.BindingBytes)
			return
		}
		b := e.buffer(l.BindingBytes+4, device.Weights)
		k := e.kernel("gather")
		out := e.buffer(4, device.Readback)
		_, err := e.NewProgram([]device.Command{command(k, 1, bind(b, out), 1, 0)}, device.ProgramOptions{})
		e.wants("a binding above the limit", err, device.ErrLimit)
		e.must(b.Write(l.BindingBytes-4, bytesOf([]uint32{77, 78})))
		last := device.Range{Buffer: b, Offset: l.BindingBytes - 1<<16}
		last.Size = 1 << 16
		e.do(e.program(device.ProgramOptions{}, command(k, 1, []device.Range{last, {Buffer: out}}, 1<<14, 0)))
		e.holds("the end of a large buffer", out, []uint32{77})
	}},
	{"program/empty", func(e *env) {
		p := e.program(device.ProgramOptions{})
		e.do(p)
		e.do(p)
	}},
}

// grid runs every workgroup of a grid once.
func (e *env) grid(wg uint32, g [3]uint32) {
	e.Helper()
	n := wg * g[0] * g[1] * g[2]
	out := e.buffer(int64(4*n), device.Readback)
	c := command(e.kernel("grid", wg), 1, bind(out), g[0], g[1])
	c.Groups = g
	e.do(e.program(device.ProgramOptions{}, c))
	var want []uint32
	for z := range g[2] {
		for y := range g[1] {
			for x := range g[0] {
				for i := range wg {
					want = append(want, 1+x+1000*y+1000000*z+i)
				}
			}
		}
	}
	e.holds(fmt.Sprintf("workgroups %v", g), out, want)
}

func refusedPrograms(e *env) {
	const n = 64
	l := e.Limits()
	k := e.kernel("shift")
	a, b := e.buffer(4*n+l.OffsetAlign, device.Scratch), e.buffer(4*n, device.Scratch)
	other := e.another()
	strange := other.buffer(4*n, device.Scratch)
	closed := e.buffer(4*n, device.Scratch)
	e.must(closed.Close())
	gone := e.kernel("shift")
	e.must(gone.Close())
	for _, c := range []struct {
		name  string
		spoil func(c *device.Command)
		want  error
	}{
		{"no kernel", func(c *device.Command) { c.Kernel = nil }, nil},
		{"a kernel of another device", func(c *device.Command) { c.Kernel = other.kernel("shift") }, nil},
		{"a closed kernel", func(c *device.Command) { c.Kernel = gone }, device.ErrClosed},
		{"a binding too few", func(c *device.Command) { c.Bindings = c.Bindings[:1] }, nil},
		{"a binding too many", func(c *device.Command) { c.Bindings = append(c.Bindings, c.Bindings[0]) }, nil},
		{"no buffer", func(c *device.Command) { c.Bindings[0].Buffer = nil }, nil},
		{"a buffer of another device", func(c *device.Command) { c.Bindings[0].Buffer = strange }, nil},
		{"a closed buffer", func(c *device.Command) { c.Bindings[1].Buffer = closed }, device.ErrClosed},
		{"a range beyond the buffer", func(c *device.Command) { c.Bindings[1].Size = 4*n + 4 }, nil},
		{"an offset beyond the buffer", func(c *device.Command) { c.Bindings[1].Offset = 1 << 40 }, nil},
		{"an empty rest", func(c *device.Command) { c.Bindings[1].Offset = 4 * n }, nil},
		{"a negative offset", func(c *device.Command) { c.Bindings[1].Offset = -l.OffsetAlign }, nil},
		{"a negative size", func(c *device.Command) { c.Bindings[1].Size = -4 }, nil},
		{"an odd offset", func(c *device.Command) { c.Bindings[0].Offset = l.OffsetAlign / 2 }, device.ErrLimit},
		{"parameters too short", func(c *device.Command) { c.Params = c.Params[:4] }, nil},
		{"parameters too long", func(c *device.Command) { c.Params = append(c.Params, 0, 0, 0, 0) }, nil},
		{"no workgroups", func(c *device.Command) { c.Groups[2] = 0 }, nil},
		{"too many workgroups", func(c *device.Command) { c.Groups[1] = uint32(l.Groups[1] + 1) }, device.ErrLimit},
	} {
		good, bad := command(k, 1, bind(a, b), n, 1), command(k, 1, bind(a, b), n, 1)
		c.spoil(&bad)
		p, err := e.NewProgram([]device.Command{good, bad}, device.ProgramOptions{})
		e.wants(c.name, err, c.want)
		if err == nil {
			e.must(p.Close())
		}
	}
	_, err := e.Submit(nil)
	e.wants("no program", err, nil)
	_, err = e.Submit(other.program(device.ProgramOptions{}))
	e.wants("a program of another device", err, nil)
}

// shifted is what the kernel "shift" makes of words.
func shifted(words []uint32, by int) []uint32 {
	out := make([]uint32, len(words))
	for i := range out {
		out[i] = 3*words[(i+by)%len(words)] + 1
	}
	return out
}
