package encoder

import (
	"fmt"

	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// gemma3 is the tower of Gemma 3: SigLIP on a picture of one size, means of pool × pool
// patches, and a product with a matrix that the file has the other way round.
type gemma3 struct {
	canvas
	pool int
}

func newGemma3(k *keys) *gemma3 {
	t := &gemma3{canvas: k.canvas(), pool: k.number("projector.scale_factor", 4, 64)}
	if k.err == nil && (t.side%t.patch != 0 || t.side/t.patch%t.pool != 0 || t.maxRows() > maxRows) {
		k.fail("a picture of %d pixels, patches of %d and means of %d do not fit", t.side, t.patch, t.pool)
	}
	return t
}

func (t *gemma3) grid() int    { return t.side / t.patch }
func (t *gemma3) maxRows() int { return t.grid() * t.grid() }
func (t *gemma3) tokens() int  { return t.maxRows() / (t.pool * t.pool) }

func (t *gemma3) plan(g *graph) (*ops.Plan, error) {
	x := g.embedPatches("v.patch_embd", g.input(t.pixels()))
	x = g.vit(g.positions("v.position_embd.weight", x, t.maxRows()), layers{})
	x = g.norm("v.post_ln", x)
	list := g.List(ops.List{Name: "means", Rows: ops.PerOut, Per: t.pool * t.pool, Units: 1})
	g.PerOut(true)
	x = g.gather("means", list, g.width, t.pool*t.pool, g.width, x)
	x = g.RMSNorm("soft_emb_norm", g.matrix("mm.soft_emb_norm.weight", g.width, 1), g.eps, 0, x)
	return g.done(g.MatMul("projected", g.turned("mm.input_projection.weight", g.width, g.out), nil, x))
}

// turned is a matrix that the file has as [cols, rows].
func (g *graph) turned(name string, cols, rows int) *ops.Weight {
	if d := g.dims(name); d == nil || d[0] != rows {
		g.fail("tensor %q is %v, want %d columns", name, d, rows)
	}
	v := g.floats(name, cols*rows)
	out := make([]float32, len(v))
	for r := range rows {
		for c := range cols {
			out[r*cols+c] = v[c*rows+r]
		}
	}
	return g.derived(name+" (turned)", cols, out)
}

func (t *gemma3) layout(Size, PictureOptions) (Layout, error) {
	var l Layout
	l.framed("<start_of_image>", Part{N: t.tokens(), Whole: true}, "<end_of_image>")
	return l, nil
}

func (t *gemma3) prepare(m pixel.Image, _ PictureOptions) ([]pixel.Image, error) {
	return []pixel.Image{pixel.Fit(m, t.side, t.side, pixel.Bilinear)}, nil
}

func (t *gemma3) job(m, _ pixel.Image) (*job, Piece) {
	j := t.square(m)
	j.outs, j.lists = t.tokens(), [][]int32{blocks(t.grid(), t.grid(), t.pool)}
	return j, Piece{}
}

// idefics3 is the tower of Idefics 3 (SmolVLM): SigLIP on tiles of one size and on the
// whole picture, and a pixel shuffle.
type idefics3 struct {
	gemma3      // pool is the shuffle's factor
	longest int // side that a picture is brought to before it is cut
}

func newIdefics3(k *keys) *idefics3 {
	return &idefics3{gemma3: *newGemma3(k), longest: k.number("preproc_image_size", 2048, maxSide)}
}

func (t *idefics3) plan(g *graph) (*ops.Plan, error) {
	x := g.embedPatches("v.patch_embd", g.input(t.pixels()))
	x = g.vit(g.positions("v.position_embd.weight", x, t.maxRows()), layers{})
	x = g.norm("v.post_ln", x)
	n := t.pool * t.pool
	list := g.List(ops.List{Name: "shuffle", Rows: ops.PerOut, Per: n, Units: 1})
	return g.done(g.linear("mm.model.fc", g.merge(list, n, x), g.out))
}

func (t *idefics3) layout(s Size, o PictureOptions) (Layout, error) {
	const fake = "<fake_token_around_image>"
	var l Layout
	piece := Part{N: t.tokens()}
	if !o.Untiled {
		tiles := pixel.TilingOf(s.W, s.H, t.side, t.longest)
		for y := range tiles.NY {
			for x := range tiles.NX {
				l.framed(fmt.Sprintf("%s<row_%d_col_%d>", fake, y+1, x+1), piece, "")
			}
			if y+1 < tiles.NY {
				l.text("\n")
			}
		}
		l.text("\n\n")
	}
	l.framed(fake+"<global-img>", piece, fake)
	return l, nil
}

func (t *idefics3) prepare(m pixel.Image, o PictureOptions) ([]pixel.Image, error) {
	tiles, overview := pixel.TilingOf(m.W, m.H, t.side, t.longest).Cut(m, pixel.Lanczos)
	if o.Untiled {
		return []pixel.Image{overview}, nil
	}
	return append(tiles, overview), nil
}
