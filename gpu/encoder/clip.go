package encoder

import (
	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// clip is the towers of LLaVA 1.5 (projector "mlp") and InternVL: a picture of one size,
// a class row in front of its patches, learned positions.
type clip struct {
	canvas
	internVL bool
	shuffle  int // InternVL: patches × patches that become one row
	min, max int // InternVL: tiles
	width    int
	first    []float32 // the class row with its position
	learned  []float32 // [1 + patches, width]
}

func newCLIP(k *keys, family string) *clip {
	t := &clip{canvas: k.canvas(), internVL: family == "internvl", shuffle: 1, width: k.number("embedding_length", -1, maxWidth)}
	if t.internVL {
		t.shuffle = k.number("projector.scale_factor", 2, 64)
		t.min, t.max = k.number("preproc_min_tiles", 1, 64), k.number("preproc_max_tiles", 12, 64)
	}
	if k.err == nil && (t.side%t.patch != 0 || t.grid()%t.shuffle != 0 || t.maxRows() > maxRows || t.min > t.max) {
		k.fail("a picture of %d pixels, patches of %d, %d of them to a row, %d to %d tiles do not fit", t.side, t.patch, t.shuffle, t.min, t.max)
	}
	return t
}

func (t *clip) grid() int    { return t.side / t.patch }
func (t *clip) maxRows() int { return 1 + t.grid()*t.grid() }
func (t *clip) tokens() int  { return t.grid() * t.grid() / (t.shuffle * t.shuffle) }

// plan takes patches and, beside them, what is added to their products: positions, the
// bias of the convolution, the class row.
func (t *clip) plan(g *graph) (*ops.Plan, error) {
	n, rows := t.pixels(), t.maxRows()
	t.learned, t.first = g.floats("v.position_embd.weight", rows*g.width), g.floats("v.class_embd", g.width)
	if g.has("v.patch_embd.bias") {
		bias := g.floats("v.patch_embd.bias", g.width)
		for i := g.width; i < len(t.learned); i++ {
			t.learned[i] += bias[i%g.width]
		}
	}
	in := g.input(n + g.width)
	x := g.MatMul("patches", g.matrix("v.patch_embd.weight", n, g.width), nil, in.Cols(0, n))
	x = g.Sum("positions", x, in.Cols(n, g.width))
	g.rms = !g.has("v.blk.0.ln1.bias")
	if g.has("v.pre_ln.weight") {
		x = g.norm("v.pre_ln", x)
	}
	if !t.internVL {
		t.depth(g)
	}
	x = g.vit(x, layers{})
	if t.internVL && g.has("v.post_ln.weight") {
		x = g.norm("v.post_ln", x)
	}
	block := t.shuffle * t.shuffle
	list := g.List(ops.List{Name: "patches", Rows: ops.PerOut, Per: block, Units: 1})
	x = g.merge(list, block, x)
	if !t.internVL {
		return g.done(g.linear("mm.2", g.activate(ops.GELU, g.linear("mm.0", x, 0)), g.out))
	}
	x = g.layerNorm("mm.0", g.matrix("mm.0.weight", x.Width, 1), g.weight("mm.0.bias", x.Width, 1), 1e-5, x)
	return g.done(g.linear("mm.3", g.activate(ops.GELU, g.linear("mm.1", x, 0)), g.out))
}

// depth sets how many layers run: LLaVA takes the last layer but one, or the one that the
// file names.
func (t *clip) depth(g *graph) {
	depth := g.layers - 1
	if list, ok := g.file.Ints(vision.keys + "feature_layer"); ok && len(list) > 0 {
		if len(list) > 1 {
			g.fail("key %q: %d layers side by side are not supported", vision.keys+"feature_layer", len(list))
		}
		depth = int(min(max(list[0], 0), int64(g.layers)))
	}
	if depth < 1 {
		g.fail("%d of %d layers", depth, g.layers)
		return
	}
	g.layers = depth
}

func (t *clip) layout(s Size, o PictureOptions) (Layout, error) {
	var l Layout
	if !t.internVL {
		l.framed("", Part{N: t.tokens()}, "")
		return l, nil
	}
	l.text("<img>")
	cols, rows := t.tiles(s, o)
	for range cols*rows + t.overview(cols, rows) {
		l.Parts = append(l.Parts, Part{N: t.tokens()})
	}
	l.text("</img>")
	return l, nil
}

// overview is 1 where the whole picture stands behind its tiles.
func (t *clip) overview(cols, rows int) int {
	if cols*rows > 1 {
		return 1
	}
	return 0
}

// tiles is how a picture is cut: 1, 1 for one that stays whole.
func (t *clip) tiles(s Size, o PictureOptions) (cols, rows int) {
	if o.Untiled || (s.W <= t.side && s.H <= t.side) {
		return 1, 1
	}
	return nearestTiles(s, t.min, t.max, t.side)
}

func (t *clip) prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error) {
	if !t.internVL { // onto a square of the mean colour
		f := pixel.Fitting{W: t.side, H: t.side, Filter: pixel.Bicubic}
		for i, v := range t.mean {
			f.Colour[i] = uint8(min(max(v*255, 0), 255))
		}
		return []pixel.Image{f.Apply(m)}, nil
	}
	cols, rows := t.tiles(Size{m.W, m.H}, o)
	all := pixel.Resize(m, cols*t.side, rows*t.side, pixel.Bicubic)
	var tiles []pixel.Image
	for _, p := range raster(cols, rows) {
		tiles = append(tiles, all.Crop(p.x*t.side, p.y*t.side, t.side, t.side))
	}
	if t.overview(cols, rows) > 0 {
		tiles = append(tiles, pixel.Resize(m, t.side, t.side, pixel.Bicubic))
	}
	return tiles, nil
}

func (t *clip) job(m, _ pixel.Image) (*job, Piece) {
	n := t.pixels()
	width, planes := n+t.width, t.planes(m)
	j := &job{rows: t.maxRows(), outs: t.tokens(), embeds: make([]float32, t.maxRows()*width)}
	for c := range t.width {
		j.embeds[n+c] = t.first[c] + t.learned[c]
	}
	for i, p := range raster(t.grid(), t.grid()) {
		row := j.embeds[(i+1)*width : (i+2)*width]
		patch(row, planes, m.W, m.H, t.patch, p)
		copy(row[n:], t.learned[(i+1)*t.width:(i+2)*t.width])
	}
	list := blocks(t.grid(), t.grid(), t.shuffle)
	for i := range list {
		list[i]++ // behind the class row
	}
	j.lists = [][]int32{list}
	return j, Piece{}
}
