package encoder

import (
	"fmt"
	"math"

	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// lfm2 is the tower of LFM2-VL: SigLIP 2 on pictures of any shape, whose square of learned
// positions is resized to each, and a pixel shuffle. Large pictures are cut into tiles,
// with the whole behind them.
type lfm2 struct {
	canvas
	shuffle    int
	min, max   int // tokens of a picture that is not cut
	tile       int // side of a tile in pixels
	least, top int // tiles
	width      int
	grid       int
	learned    []float32 // [grid, grid, width]
}

func newLFM2(k *keys) *lfm2 {
	t := &lfm2{canvas: k.canvas(), shuffle: k.number("projector.scale_factor", 2, 64), min: 64, max: 256,
		tile: k.number("preproc_image_size", 512, maxSide), least: k.number("preproc_min_tiles", 2, 64), top: k.number("preproc_max_tiles", 10, 64),
		width: k.number("embedding_length", -1, maxWidth)}
	cell := t.cell()
	t.min = max(1, k.number("image_min_pixels", t.min*cell*cell, 1<<30)/(cell*cell))
	t.max = max(t.min, k.number("image_max_pixels", t.max*cell*cell, 1<<30)/(cell*cell))
	if k.err == nil && (t.tile%cell != 0 || t.maxRows() > maxRows) {
		k.fail("tiles of %d pixels and rows of %d do not fit", t.tile, cell)
	}
	return t
}

func (t *lfm2) cell() int { return t.patch * t.shuffle }
func (t *lfm2) maxRows() int {
	return max(t.max*t.shuffle*t.shuffle, t.tile/t.patch*(t.tile/t.patch))
}

func (t *lfm2) plan(g *graph) (*ops.Plan, error) {
	const table = "v.position_embd.weight"
	if d := g.dims(table); d == nil || d[0] != g.width {
		g.fail("tensor %q is %v", table, d)
	} else if t.grid = int(math.Sqrt(float64(d[1]))); t.grid*t.grid != d[1] {
		g.fail("tensor %q has %d rows, which is no square", table, d[1])
	} else {
		t.learned = g.floats(table, d[0]*d[1])
	}
	n := t.pixels()
	in := g.input(n + g.width)
	x := g.Sum("positions", g.embedPatches("v.patch_embd", in.Cols(0, n)), in.Cols(n, g.width))
	x = g.norm("v.post_ln", g.vit(x, layers{}))
	block := t.shuffle * t.shuffle
	list := g.List(ops.List{Name: "shuffle", Rows: ops.PerOut, Per: block, Units: 1})
	x = g.merge(list, block, x)
	if g.has("mm.input_norm.weight") {
		x = g.layerNorm("mm.input_norm", g.matrix("mm.input_norm.weight", x.Width, 1), g.weight("mm.input_norm.bias", x.Width, 1), 1e-5, x)
	}
	return g.done(g.linear("mm.2", g.activate(ops.GELU, g.linear("mm.1", x, 0)), g.out))
}

// tiles is how a picture is cut: 1, 1 for one that stays whole.
func (t *lfm2) tiles(s Size, o PictureOptions) (cols, rows int) {
	cell := float64(t.cell())
	w := max(cell, math.RoundToEven(float64(s.W)/cell)*cell)
	h := max(cell, math.RoundToEven(float64(s.H)/cell)*cell)
	if o.Untiled || w*h <= 2*float64(t.max)*cell*cell {
		return 1, 1
	}
	return nearestTiles(s, t.least, t.top, t.tile)
}

// whole is the size at which a picture goes in uncut.
func (t *lfm2) whole(s Size, o PictureOptions) (w, h int) {
	return smartSize(s, o, t.cell(), t.min, t.max)
}

func (t *lfm2) layout(s Size, o PictureOptions) (Layout, error) {
	w, h := t.whole(s, o)
	nx, ny := w/t.cell(), h/t.cell()
	if nx*ny > t.max {
		return Layout{}, tooLong(s, nx, ny)
	}
	var l Layout
	l.text("<|image_start|>")
	if cols, rows := t.tiles(s, o); cols*rows > 1 {
		n := t.tile / t.cell()
		for _, p := range raster(cols, rows) {
			l.framed(fmt.Sprintf("<|img_row_%d_col_%d|>", p.y+1, p.x+1), Part{N: n * n}, "")
		}
		l.text("<|img_thumbnail|>")
	}
	l.framed("", Part{N: nx * ny}, "<|image_end|>")
	return l, nil
}

func (t *lfm2) prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error) {
	if _, err := t.layout(Size{m.W, m.H}, o); err != nil {
		return nil, err
	}
	var all []pixel.Image
	if cols, rows := t.tiles(Size{m.W, m.H}, o); cols*rows > 1 {
		large := pixel.Resize(m, cols*t.tile, rows*t.tile, pixel.Bilinear)
		for _, p := range raster(cols, rows) {
			all = append(all, large.Crop(p.x*t.tile, p.y*t.tile, t.tile, t.tile))
		}
	}
	w, h := t.whole(Size{m.W, m.H}, o)
	return append(all, pixel.Resize(m, w, h, pixel.Bilinear)), nil
}

func (t *lfm2) job(m, _ pixel.Image) (*job, Piece) {
	nx, ny, n := m.W/t.patch, m.H/t.patch, t.pixels()
	at, planes := raster(nx, ny), t.planes(m)
	width := n + t.width
	j := &job{rows: len(at), outs: len(at) / (t.shuffle * t.shuffle), embeds: make([]float32, len(at)*width),
		lists: [][]int32{blocks(nx, ny, t.shuffle)}}
	xs, ys := resampling(t.grid, nx), resampling(t.grid, ny)
	for i, p := range at {
		row := j.embeds[i*width : (i+1)*width]
		patch(row, planes, m.W, m.H, t.patch, p)
		for y, fy := range ys[p.y] {
			for x, fx := range xs[p.x] {
				if f := float32(fy * fx); f != 0 {
					for c, v := range t.learned[(y*t.grid+x)*t.width:][:t.width] {
						row[n+c] += f * v
					}
				}
			}
		}
	}
	return j, Piece{}
}

// resampling are the weights of n points among which each of m lies: linear between the
// middles of points, widened where there are fewer than there were (antialiasing).
func resampling(n, m int) [][]float64 {
	scale := float64(n) / float64(m)
	reach := max(scale, 1)
	all := make([][]float64, m)
	for i := range all {
		all[i] = make([]float64, n)
		sum := 0.0
		for k := range n {
			all[i][k] = max(0, 1-math.Abs(float64(k)+0.5-(float64(i)+0.5)*scale)/reach)
			sum += all[i][k]
		}
		for k := range n {
			all[i][k] /= sum
		}
	}
	return all
}
