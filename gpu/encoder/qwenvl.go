package encoder

import (
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// qwenVL is the tower of Qwen2-VL, Qwen2.5-VL and Qwen3-VL (Qwen3.5): pictures of any
// shape, two frames at a time, positions as rotations by line and column, and blocks of
// merge × merge patches as one row.
//
// Patches stand in the tower block by block. In Qwen2.5-VL the blocks of a window stand
// together as well, and most layers see their window alone; the order is undone where the
// blocks are merged.
type qwenVL struct {
	canvas
	version   int // 2, 25, 3
	merge     int
	min, max  int // tokens of a picture
	window    int // side of a window in merged blocks; 0 = none
	full      func(layer int) bool
	deep      []int // layers whose result the text model's first layers take
	grid      int   // side of the square of learned positions; 0 = none
	learned   []float32
	width     int
	embedding int // columns of a row that goes in
}

func newQwenVL(k *keys, family string, maxTokens int) *qwenVL {
	t := &qwenVL{canvas: k.canvas(), merge: k.number("spatial_merge_size", 2, 16), min: 8, max: 4096, width: k.number("embedding_length", -1, maxWidth)}
	t.version = map[string]int{"qwen2vl_merger": 2, "qwen2.5vl_merger": 25, "qwen3vl_merger": 3}[family]
	cell := t.patch * t.merge
	if n := k.number("image_min_pixels", t.min*cell*cell, 1<<30); n > 0 {
		t.min = max(1, n/(cell*cell))
	}
	if n := k.number("image_max_pixels", t.max*cell*cell, 1<<30); n > 0 {
		t.max = max(t.min, n/(cell*cell))
	}
	if maxTokens > 0 {
		t.max = max(t.min, min(t.max, maxTokens))
	}
	if k.err == nil && t.maxRows() > maxRows {
		k.fail("%d tokens of %d patches are too many", t.max, t.merge*t.merge)
	}
	if t.version == 25 {
		t.window = max(1, k.number("window_size", 112, maxSide)/cell)
		period := k.number("n_wa_pattern", 1<<16, 1<<16)
		t.full = func(il int) bool { return (il+1)%period == 0 }
		if list, ok := k.file.Ints(k.keys + "wa_layer_indexes"); ok {
			t.full = func(il int) bool { return slices.Contains(list, int64(il)) }
		}
	}
	return t
}

func (t *qwenVL) maxRows() int { return t.max * t.merge * t.merge }
func (t *qwenVL) slices() int  { return len(t.deep) }
func (t *qwenVL) pairs()       {}

func (t *qwenVL) plan(g *graph) (*ops.Plan, error) {
	g.rms = t.version == 25
	t.embedding = 2 * t.pixels()
	if t.version == 3 {
		t.readGrid(g)
		t.embedding += g.width
	}
	in, n := g.input(t.embedding), t.pixels()
	first := g.embedPatches("v.patch_embd", in.Cols(0, n))
	x := g.Sum("frames", first, g.MatMul("patches", g.matrix("v.patch_embd.weight.1", n, g.width), nil, in.Cols(n, n)))
	if t.version == 3 {
		x = g.Sum("positions", x, in.Cols(2*n, g.width))
	}
	block := t.merge * t.merge
	list := g.List(ops.List{Name: "blocks", Rows: ops.PerOut, Per: block, Units: 1})
	outs := make([]ops.View, 1)
	o := layers{rotate: t.rotation(g)}
	if t.version == 25 {
		o.local = func(il int) bool { return !t.full(il) }
	}
	o.after = func(il int, x ops.View) {
		name := fmt.Sprintf("v.deepstack.%d.", il)
		if !g.has(name + "fc1.weight") {
			return
		}
		t.deep = append(t.deep, il)
		m := g.norm(name+"norm", g.merge(list, block, x))
		outs = append(outs, g.linear(name+"fc2", g.activate(ops.GELU, g.linear(name+"fc1", m, 0)), g.out))
		g.PerOut(false)
	}
	x = g.vit(x, o)
	x = g.merge(list, block, g.norm("v.post_ln", x))
	outs[0] = g.linear("mm.2", g.activate(ops.GELU, g.linear("mm.0", x, 0)), g.out)
	return g.done(g.beside(outs))
}

// beside puts views next to each other in one buffer.
func (g *graph) beside(vs []ops.View) ops.View {
	if len(vs) == 1 {
		return vs[0]
	}
	all := g.Buffer("slices", len(vs)*g.out)
	for i, v := range vs {
		g.Add(&ops.Scale{Factor: 1, In: v, Out: all.Cols(i*g.out, g.out)})
	}
	return all
}

// rotation turns the first half of the pairs by the line, the second by the column, both
// with the same frequencies.
func (t *qwenVL) rotation(g *graph) func(ops.View) ops.View {
	axes := make([]uint8, g.headDim/2)
	for i := range axes {
		axes[i] = axisY
		if i >= len(axes)/2 {
			axes[i] = axisX
		}
	}
	table := g.Table(&ops.RoPETable{NRot: g.headDim / 2 * 2, Base: 10000, Scale: 1, Magnitude: 1, Axes: axes, Period: max(1, len(axes)/2)})
	return func(v ops.View) ops.View { return g.RoPE(table, g.headDim, true, v) }
}

// readGrid reads the learned positions of Qwen3-VL.
func (t *qwenVL) readGrid(g *graph) {
	const name = "v.position_embd.weight"
	d := g.dims(name)
	if d == nil || d[0] != g.width {
		g.fail("tensor %q is %v", name, d)
		return
	}
	if t.grid = int(math.Sqrt(float64(d[1]))); t.grid*t.grid != d[1] {
		g.fail("tensor %q has %d rows, which is no square", name, d[1])
		return
	}
	t.learned = g.floats(name, d[0]*d[1])
}

// position writes the learned position of a patch in a grid of nx × ny: the square's
// corners lie on the grid's, and between its points it is bilinear.
func (t *qwenVL) position(dst []float32, at place, nx, ny int) {
	x0, x1, fx := between(at.x, nx, t.grid)
	y0, y1, fy := between(at.y, ny, t.grid)
	row := func(y, x int) []float32 { return t.learned[(y*t.grid+x)*t.width:] }
	a, b, c, d := row(y0, x0), row(y0, x1), row(y1, x0), row(y1, x1)
	for i := range dst {
		dst[i] = (a[i]*(1-fx)+b[i]*fx)*(1-fy) + (c[i]*(1-fx)+d[i]*fx)*fy
	}
}

// between is where point i of n lies among m points with the same ends.
func between(i, n, m int) (from, to int, f float32) {
	if n == 1 {
		return 0, 0, 0
	}
	at := float32(i) * (float32(m-1) / float32(n-1))
	from = min(int(at), m-1)
	return from, min(from+1, m-1), at - float32(from)
}

func (t *qwenVL) size(s Size, o PictureOptions) (w, h int) {
	return smartSize(s, o, t.patch*t.merge, t.min, t.max)
}

func (t *qwenVL) layout(s Size, o PictureOptions) (Layout, error) {
	w, h := t.size(s, o)
	nx, ny := w/(t.patch*t.merge), h/(t.patch*t.merge)
	if nx*ny > t.max {
		return Layout{}, tooLong(s, nx, ny)
	}
	var l Layout
	l.framed("<|vision_start|>", Part{N: nx * ny, NX: nx, NY: ny}, "<|vision_end|>")
	return l, nil
}

func (t *qwenVL) prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error) {
	if _, err := t.layout(Size{m.W, m.H}, o); err != nil {
		return nil, err
	}
	w, h := t.size(Size{m.W, m.H}, o)
	return []pixel.Image{pixel.Fit(m, w, h, pixel.Bicubic)}, nil
}

func (t *qwenVL) job(a, b pixel.Image) (*job, Piece) {
	nx, ny := a.W/t.patch, a.H/t.patch
	bx, by := nx/t.merge, ny/t.merge
	order, windows := t.order(bx, by)
	var at []place
	for _, b := range order {
		for _, p := range raster(t.merge, t.merge) {
			at = append(at, place{b.x*t.merge + p.x, b.y*t.merge + p.y})
		}
	}
	n := t.pixels()
	j := &job{rows: len(at), outs: len(order), embeds: make([]float32, len(at)*t.embedding), rotary: rotary(at), windows: windows}
	first, second := t.planes(a), t.planes(b)
	for i, p := range at {
		row := j.embeds[i*t.embedding : (i+1)*t.embedding]
		patch(row, first, a.W, a.H, t.patch, p)
		patch(row[n:], second, a.W, a.H, t.patch, p)
		if t.version == 3 {
			t.position(row[2*n:], p, nx, ny)
		}
	}
	block := t.merge * t.merge
	list := make([]int32, len(at))
	for i, b := range order { // block i in the tower is token b line by line
		for k := range block {
			list[(b.y*bx+b.x)*block+k] = int32(i*block + k)
		}
	}
	j.lists = [][]int32{list}
	return j, Piece{NX: bx, NY: by}
}

// order lists the merged blocks as they stand in the tower, and the window of each patch.
func (t *qwenVL) order(bx, by int) ([]place, []ops.Span) {
	if t.window == 0 {
		return raster(bx, by), nil
	}
	var order []place
	var windows []ops.Span
	block := t.merge * t.merge
	for wy := 0; wy < by; wy += t.window {
		for wx := 0; wx < bx; wx += t.window {
			from := len(order)
			for _, p := range raster(min(t.window, bx-wx), min(t.window, by-wy)) {
				order = append(order, place{wx + p.x, wy + p.y})
			}
			span := ops.Span{From: int32(from * block), Until: int32(len(order) * block)}
			windows = append(windows, slices.Repeat([]ops.Span{span}, (len(order)-from)*block)...)
		}
	}
	return order, windows
}
