package encoder

import (
	"math"

	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// gemma4 is the tower of Gemma 4 for pictures of any shape: positions are learned for
// columns and for lines, and rotations besides; means of 3 × 3 patches go out.
type gemma4 struct {
	canvas
	pool     int
	min, max int // tokens
	width    int
	columns  []float32 // [learned, width], and behind them those of the lines
	learned  int
	whole    bool // the text model sees all rows of a picture from each of them
}

func newGemma4(k *keys, maxTokens int) *gemma4 {
	t := &gemma4{canvas: k.canvas(), pool: k.number("projector.scale_factor", 3, 16), min: 70, max: 1120, width: k.number("embedding_length", -1, maxWidth)}
	if maxTokens > 0 {
		t.max = max(t.min, min(t.max, maxTokens))
	}
	return t
}

// maxRows: a long picture may have more tokens than the area asks for.
func (t *gemma4) maxRows() int { return t.max * t.pool * t.pool }

func (t *gemma4) plan(g *graph) (*ops.Plan, error) {
	g.rms = true
	t.whole = g.out != 1536 && g.out != 2560 // E2B and E4B read pictures like text
	const table = "v.position_embd.weight"
	if d := g.dims(table); d == nil || d[0] != g.width || d[2] != 2 {
		g.fail("tensor %q is %v", table, d)
	} else {
		t.learned, t.columns = d[1], g.floats(table, 2*d[1]*g.width)
	}
	n := t.pixels()
	in := g.input(n + g.width)
	x := g.Sum("positions", g.embedPatches("v.patch_embd", in.Cols(0, n)), in.Cols(n, g.width))
	half := g.headDim / 2
	by := func(axis uint8) int {
		axes := make([]uint8, half/2)
		for i := range axes {
			axes[i] = axis
		}
		return g.Table(&ops.RoPETable{NRot: half / 2 * 2, Base: 100, Scale: 1, Magnitude: 1, Axes: axes})
	}
	tx, ty := by(axisX), by(axisY)
	x = g.vit(x, layers{scale: 1, normV: true, rotate: func(v ops.View) ops.View {
		g.Add(&ops.RoPE{Table: tx, HeadDim: g.headDim, NeoX: true, In: v, Out: v})
		g.Add(&ops.RoPE{Table: ty, HeadDim: g.headDim, Start: half, NeoX: true, In: v, Out: v})
		return v
	}})
	list := g.List(ops.List{Name: "means", Rows: ops.PerOut, Per: t.pool * t.pool, Units: 1})
	g.PerOut(true)
	x = g.scale(math.Sqrt(float64(g.width)), g.gather("means", list, g.width, t.pool*t.pool, g.width, x))
	if g.has("v.std_bias") {
		bias := g.floats("v.std_bias", g.width)
		for i := range bias {
			bias[i] = -bias[i]
		}
		g.Add(&ops.AddVec{W: g.derived("v.std_bias (negative)", g.width, bias), In: x, Out: x})
		g.Add(&ops.AddVec{W: g.matrix("v.std_scale", g.width, 1), Mul: true, In: x, Out: x})
	}
	x = g.RMSNorm("projector_norm", nil, g.eps, 0, x)
	return g.done(g.linear("mm.input_projection", x, g.out))
}

func (t *gemma4) size(s Size, o PictureOptions) (w, h int) {
	cell, most := t.patch*t.pool, t.max
	if o.MaxTokens > 0 {
		most = min(most, o.MaxTokens)
	}
	w, h = pixel.SmartSize(s.W, s.H, cell, min(t.min, most)*cell*cell, most*cell*cell)
	if w/cell*(h/cell) > most && o.MaxTokens > 0 {
		// A small picture was brought up to the least area, and its sides rounded up: what was
		// asked for counts more. As from a larger one, sides are rounded down.
		w, h = pixel.SmartSize(s.W*cell, s.H*cell, cell, 0, most*cell*cell)
	}
	return w, h
}

func (t *gemma4) layout(s Size, o PictureOptions) (Layout, error) {
	w, h := t.size(s, o)
	nx, ny := w/(t.patch*t.pool), h/(t.patch*t.pool)
	if most := max(nx, ny) * t.pool; nx*ny > t.max || most > t.learned {
		return Layout{}, tooLong(s, nx, ny)
	}
	var l Layout
	l.framed("<|image>", Part{N: nx * ny, Whole: t.whole}, "<image|>")
	return l, nil
}

func (t *gemma4) prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error) {
	if _, err := t.layout(Size{m.W, m.H}, o); err != nil {
		return nil, err
	}
	w, h := t.size(Size{m.W, m.H}, o)
	return []pixel.Image{pixel.Fit(m, w, h, pixel.Bicubic)}, nil
}

func (t *gemma4) job(m, _ pixel.Image) (*job, Piece) {
	planes := t.planes(m)
	for i, v := range planes {
		planes[i] = 2*v - 1
	}
	nx, ny, n := m.W/t.patch, m.H/t.patch, t.pixels()
	at := raster(nx, ny)
	width := n + t.width
	j := &job{rows: len(at), outs: len(at) / (t.pool * t.pool), embeds: make([]float32, len(at)*width), rotary: rotary(at),
		lists: [][]int32{blocks(nx, ny, t.pool)}}
	for i, p := range at {
		row := j.embeds[i*width : (i+1)*width]
		patch(row, planes, m.W, m.H, t.patch, p)
		x, y := t.columns[p.x*t.width:], t.columns[(t.learned+p.y)*t.width:]
		for c := range t.width {
			row[n+c] = x[c] + y[c]
		}
	}
	return j, Piece{}
}
