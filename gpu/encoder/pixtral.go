package encoder

import (
	"math"

	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// pixtral is the tower of Pixtral and Mistral Small 3: pictures of any shape, positions as
// rotations alone, blocks of merge × merge patches as one row, and a row of its own behind
// each line but the last.
type pixtral struct {
	canvas
	merge    int
	min, max int
	ending   []float32 // of a line
}

func newPixtral(k *keys, maxTokens int) *pixtral {
	t := &pixtral{canvas: k.canvas(), merge: k.number("spatial_merge_size", 1, 16), min: 8, max: 1024}
	if maxTokens > 0 {
		t.max = max(t.min, min(t.max, maxTokens))
	}
	return t
}

func (t *pixtral) maxRows() int { return t.max * t.merge * t.merge }

func (t *pixtral) plan(g *graph) (*ops.Plan, error) {
	g.rms = true
	t.ending = g.floats("v.token_embd.img_break", g.out)
	x := g.norm("v.pre_ln", g.embedPatches("v.patch_embd", g.input(t.pixels())))
	x = g.vit(x, layers{rotate: t.rotation(g)})
	block := t.merge * t.merge
	list := g.List(ops.List{Name: "blocks", Rows: ops.PerOut, Per: block, Units: 1})
	if g.has("mm.input_norm.weight") {
		x = g.norm("mm.input_norm", x)
	}
	x = g.merge(list, block, x)
	if g.has("mm.patch_merger.weight") {
		x = g.MatMul("merger", g.unfolded("mm.patch_merger.weight", block), nil, x)
	}
	return g.done(g.linear("mm.2", g.activate(ops.GELU, g.linear("mm.1", x, 0)), g.out))
}

// unfolded is a matrix over the windows of torch's unfold, [out, width, block], as one
// over rows side by side, [out, block, width].
func (g *graph) unfolded(name string, block int) *ops.Weight {
	n := g.width * block
	v := g.floats(name, g.width*n)
	out := make([]float32, len(v))
	for o := range g.width {
		for c := range g.width {
			for k := range block {
				out[o*n+k*g.width+c] = v[o*n+c*block+k]
			}
		}
	}
	return g.derived(name+" (by row)", n, out)
}

// rotation turns the pairs of a head's first half by the line and those of its second half
// by the column, with every other frequency of a head's each.
func (t *pixtral) rotation(g *graph) func(ops.View) ops.View {
	pairs := g.headDim / 2
	axes, factors := make([]uint8, pairs), make([]float32, pairs)
	for i := range axes {
		axes[i], factors[i] = axisY, 1
		if i >= pairs/2 {
			axes[i], factors[i] = axisX, float32(math.Pow(10000, 2/float64(g.headDim)))
		}
	}
	table := g.Table(&ops.RoPETable{NRot: 2 * pairs, Base: 10000, Scale: 1, Magnitude: 1, Axes: axes, Factors: factors, Period: max(1, pairs/2)})
	return func(v ops.View) ops.View { return g.RoPE(table, g.headDim, false, v) }
}

func (t *pixtral) size(s Size, o PictureOptions) (w, h int) {
	return smartSize(s, o, t.patch*t.merge, t.min, t.max)
}

func (t *pixtral) layout(s Size, o PictureOptions) (Layout, error) {
	w, h := t.size(s, o)
	nx, ny := w/(t.patch*t.merge), h/(t.patch*t.merge)
	if nx*ny > t.max {
		return Layout{}, tooLong(s, nx, ny)
	}
	var l Layout
	l.framed("", Part{N: nx*ny + ny - 1}, "[IMG_END]")
	return l, nil
}

func (t *pixtral) prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error) {
	if _, err := t.layout(Size{m.W, m.H}, o); err != nil {
		return nil, err
	}
	w, h := t.size(Size{m.W, m.H}, o)
	return []pixel.Image{pixel.Fit(m, w, h, pixel.Bicubic)}, nil
}

func (t *pixtral) job(m, _ pixel.Image) (*job, Piece) {
	nx, ny := m.W/t.patch, m.H/t.patch
	j := t.square(m)
	j.outs, j.rotary, j.lists = j.rows/(t.merge*t.merge), rotary(raster(nx, ny)), [][]int32{blocks(nx, ny, t.merge)}
	j.line, j.ending = nx/t.merge, t.ending
	return j, Piece{}
}
