package compute

import (
	"fmt"

	"ganglion/gpu/ops"
)

// Products with packed matrices. Each reads rows of activations as texels: whole numbers
// (gpu/kernels/quantize.glsl) for matrices of whole numbers, floats for the others. A view
// is brought into that form once for all operations that read it while it stays as it is.

// staged is a view of activations as a product reads it.
type staged struct {
	region
	stride int // texels from row to row
}

// stageKey is what a view was brought into form for.
type stageKey struct {
	view   ops.View
	floats bool
	parts  int
	heads  int // of queries that an attention fetches; 0: the view is for a product
}

// queriesKey is that of an attention's queries.
func queriesKey(o *ops.Attention) stageKey { return stageKey{view: o.Q, heads: o.Heads} }

const (
	stageWG = 32
	// infoTexels is what a block of whole numbers has beside them.
	infoTexels = 1
)

// stage gives rows of a view, each of parts inputs side by side, as a product with a
// weight reads them.
func (l *lowering) stage(v ops.View, m *matrix, parts int) (staged, error) {
	_, isFloats := m.format.(*floats)
	key := stageKey{view: v, floats: isFloats, parts: parts}
	if s, ok := l.staged[key]; ok {
		return s, nil
	}
	if l.unstored[v.Buf] {
		return staged{}, fmt.Errorf("buffer %d is read in a form that nobody made: %w", v.Buf, errLowering)
	}
	x := l.operand(v)
	cols := v.Width / parts
	s, err := l.stageRegion(x, cols, parts, l.capacity(v), isFloats, l.rows(v).count, l.views(v))
	if err == nil {
		l.staged[key] = s
	}
	return s, err
}

// stageRegion brings rows of an operand into form.
func (l *lowering) stageRegion(x operand, cols, parts, rows int, isFloats bool, count uint32, reads []touch) (staged, error) {
	d := dispatch{kernel: "stage", constants: []uint32{stageWG}, reads: reads}
	units := (cols + ops.Lanes - 1) / ops.Lanes * 4 // texels of floats
	s := staged{stride: units}
	if isFloats {
		s.region = l.scratch(texel * int64(s.stride) * int64(rows*parts))
	} else {
		units = cols / ops.WholeBlock
		d.kernel, s = l.variant("quantize"), l.wholeRows(cols, rows*parts)
	}
	d.bind = []region{l.batchBuffer(), x.region, s.region}
	d.params = params{}.u32(count).view(x).i32(cols, parts, units, 0, s.stride)
	d.groups = [3]int{(units + stageWG - 1) / stageWG, rows * parts}
	d.writes = regions(s.region)
	return s, l.dispatch(d)
}

// wholeRows is room for rows of whole numbers.
func (l *lowering) wholeRows(cols, rows int) staged {
	texels := 8 + infoTexels // of a block
	if !l.exact() {
		texels = 4 + infoTexels
	}
	s := staged{stride: cols / ops.WholeBlock * texels}
	s.region = l.scratch(texel * int64(s.stride) * int64(rows))
	return s
}

// unstage forgets forms of views that an operation has written to.
func (l *lowering) unstage(writes []ops.View) {
	for _, w := range writes {
		delete(l.unstored, w.Buf)
	}
	for key := range l.staged {
		for _, w := range writes {
			if key.view.Buf == w.Buf && key.view.Off < w.Off+w.Width && w.Off < key.view.Off+key.view.Width {
				delete(l.staged, key)
			}
		}
	}
}

// product is a product with a packed matrix.
type product struct {
	m    *matrix
	bias *ops.Weight
	x    staged
	rows rowSections
	n    int // rows of activations that the grid covers

	out           region
	dst, stride   uint32
	reads, writes []touch

	// For a stack of experts: TopK of them for each row, named by ids.
	topK int
	ids  operand
	own  bool // each has an input of its own

	// For an adapter: what is there is added to, times the rows' strengths.
	adapter *ops.LowRank

	// For a product that goes on with its rows, which become whole numbers.
	chain *productChain
	whole staged
}

// product appends the dispatches of a product, one for each window of the matrix.
func (l *lowering) product(p product) error {
	if p.topK == 0 {
		p.ids.region = l.batchBuffer() // not looked at
	}
	steps := p.m.weight.Cols / ops.WholeBlock
	var planes [3]int
	switch f := p.m.format.(type) {
	case *packed:
		copy(planes[:], f.offsets(p.m.weight.Cols)[1:])
	case *floats:
		steps = (p.m.weight.Cols + ops.Lanes - 1) / ops.Lanes
	}
	for _, w := range l.pieces(&p) {
		tiles := w.tiles
		if p.topK > 0 {
			tiles = p.m.tiles
		}
		kernel := l.productKernel(&p, w)
		bytes, flops := p.work(w.tiles)
		wg, tilesEach, xRows := p.constants(l.rt.b, tiles, w.tiles, kernel)
		d := dispatch{
			kernel: kernel, constants: []uint32{wg, tilesEach, xRows, bit(p.topK > 0), bit(p.bias != nil), bit(p.adapter != nil)},
			bind:  []region{l.batchBuffer(), p.out, w.region, p.x.region, l.vector(p.bias), p.ids.region},
			reads: append(regions(p.x.region), p.reads...), writes: p.writes,
			groups: [3]int{(tiles + int(tilesEach) - 1) / int(tilesEach), (p.n + int(xRows) - 1) / int(xRows) * max(p.topK, 1)},
			bytes:  bytes, flops: flops,
		}
		d.params = params{}.u32(p.rows.count).i32(w.tiles, w.tile, p.m.tiles, p.m.weight.Rows, int(p.m.tileBytes/texel),
			planes[0], planes[1], planes[2], steps, 0, p.x.stride).u32(p.dst, p.stride).view(p.ids).i32(max(p.topK, 1)).u32(bit(p.own))
		var scales, tokens uint32
		var factor float32
		if o := p.adapter; o != nil {
			scales, factor = p.rows.scales+uint32(o.Adapter*p.n), o.Factor
			if o.ByToken {
				tokens = p.rows.tokens
			}
		}
		d.params = d.params.u32(scales).f32(factor).u32(tokens)
		l.goOn(&p, &d)
		if err := l.dispatch(d); err != nil {
			return err
		}
	}
	return nil
}

// work is what a product with some tiles of its matrix moves and computes. Of a stack of
// experts it is the share of those that are chosen.
func (p *product) work(tiles int) (bytes, flops int64) {
	bytes, flops = int64(tiles)*p.m.tileBytes, 2*int64(p.n)*int64(tiles)*tileRows*int64(p.m.weight.Cols)
	if p.topK > 0 {
		experts, used := int64(max(p.m.weight.Experts, 1)), int64(p.n*p.topK)
		bytes, flops = bytes*min(used, experts)/experts, flops*int64(p.topK)/experts
	}
	return bytes, flops
}

// pieces are the windows of a product, divided where a dispatch would take too long. A
// chain is not divided: who makes one asks first.
func (l *lowering) pieces(p *product) (all []window) {
	for _, w := range p.m.windows {
		step := w.tiles
		if p.chain == nil {
			step = l.tilesAtOnce(p, w.tiles)
		}
		for at := 0; at < w.tiles; at += step {
			n := min(step, w.tiles-at)
			all = append(all, window{tile: w.tile + at, tiles: n, region: region{mem: w.mem,
				offset: w.offset + int64(at)*p.m.tileBytes, size: int64(n) * p.m.tileBytes}})
		}
	}
	return all
}

// tilesAtOnce is how many of so many tiles of a product a dispatch may take.
func (l *lowering) tilesAtOnce(p *product, tiles int) int {
	n := tiles
	for d := (dispatch{}); n > 1; n = (n + 1) / 2 {
		if d.bytes, d.flops = p.work(n); l.inTime(assumed(&d)) {
			break
		}
	}
	if n < tiles {
		l.bounded = true
	}
	return n
}

// goOn completes a dispatch with what a chain needs, or with what stands there without one.
func (l *lowering) goOn(p *product, d *dispatch) {
	f := p.chain
	if f == nil {
		d.bind = append(d.bind, l.batchBuffer(), l.batchBuffer()) // not looked at
		d.params = d.params.i32(0, 0, 0, 0, 0, 0).f32(0, 0, 0)
		return
	}
	counts := l.counters(d.groups[1])
	d.constants = append(d.constants, f.constants()...)
	d.bind[4] = f.vectors
	d.bind = append(d.bind, p.whole.region, counts)
	d.params = d.params.bytes(f.params(l, p.whole))
	d.writes = append(d.writes, regions(counts)...)
}

func bit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func (l *lowering) matMul(o *ops.MatMul) error {
	x, err := l.stage(o.In, l.matrix(o.W), 1)
	if err != nil {
		return err
	}
	return l.product(l.plainProduct(o, x))
}

// plainProduct is the product of an operation with an input that is in form.
func (l *lowering) plainProduct(o *ops.MatMul, x staged) product {
	out := l.operand(o.Out)
	return product{m: l.matrix(o.W), bias: o.Bias, x: x, rows: l.rows(o.In), n: l.capacity(o.In),
		out: out.region, dst: out.at, stride: out.stride, writes: l.views(o.Out)}
}

func (l *lowering) expertMatMul(o *ops.ExpertMatMul) error {
	m := l.matrix(o.W)
	parts := o.In.Width / o.W.Cols
	x, err := l.stage(o.In, m, parts)
	if err != nil {
		return err
	}
	out := l.operand(o.Out)
	return l.product(product{m: m, bias: o.Bias, x: x, rows: l.rows(o.In), n: l.capacity(o.In),
		out: out.region, dst: out.at, stride: out.stride, writes: l.views(o.Out), reads: l.views(o.IDs),
		topK: o.IDs.Width, ids: l.operand(o.IDs), own: parts > 1})
}

// lowRank multiplies with A into scratch memory and adds the product of that with B.
func (l *lowering) lowRank(o *ops.LowRank) error {
	rank, n, k := o.Rank(), l.capacity(o.Out), o.TopK()
	rows, out := l.rows(o.Out), l.operand(o.Out)
	mid := operand{region: l.scratch(4 * int64(rank*k*n)), stride: uint32(rank * k)}
	made := regions(mid.region)
	first := product{m: l.matrix(o.A), rows: rows, n: n, out: mid.region, stride: mid.stride, writes: made}
	second := product{m: l.matrix(o.B), rows: rows, n: n, adapter: o,
		out: out.region, dst: out.at, stride: out.stride, reads: l.views(o.Out), writes: l.views(o.Out)}
	if o.IDs.Width > 0 {
		ids := l.operand(o.IDs)
		first.topK, first.ids, first.own, first.reads = k, ids, o.In.Width > o.A.Cols, l.views(o.IDs)
		second.topK, second.ids, second.own = k, ids, true
		second.reads = append(second.reads, first.reads...)
	}
	if err := l.lowRankMid(o, first); err != nil {
		return err
	}
	var err error
	if second.x, err = l.stageRegion(mid, rank, k, n, true, rows.count, made); err != nil {
		return err
	}
	return l.product(second)
}

// lowRankMid is A·in, or A's row of the token.
func (l *lowering) lowRankMid(o *ops.LowRank, p product) error {
	if o.ByToken {
		return l.lookUp(embedding{m: p.m, rows: p.rows, index: p.rows.tokens, n: p.n, out: p.out, stride: p.stride, scale: 1, writes: p.writes})
	}
	var err error
	if p.x, err = l.stage(o.In, p.m, o.In.Width/o.A.Cols); err != nil {
		return err
	}
	return l.product(p)
}

func (l *lowering) embed(o *ops.Embed) error {
	out := l.operand(o.Out)
	e := embedding{m: l.matrix(o.Table), rows: l.rows(o.Out), n: l.capacity(o.Out), out: out.region, dst: out.at, stride: out.stride,
		scale: o.Scale, given: !o.ByPosition && o.Out.Width == l.plan.Embed, writes: l.views(o.Out)}
	e.index = e.rows.tokens
	if o.ByPosition {
		e.index = e.rows.pos
	}
	return l.lookUp(e)
}

// embedding is a look-up of rows of a packed matrix.
type embedding struct {
	m           *matrix
	rows        rowSections
	index       uint32 // word of the batch with the rows' indices; negative ones are row 0
	n           int    // rows that the grid covers
	out         region
	dst, stride uint32
	scale       float32
	given       bool // rows with a negative index are those of Batch.Embeds
	writes      []touch
}

// embedWG is the size of a workgroup; an invocation has four columns.
const embedWG = 64

// lookUp appends the dispatches of a look-up, one for each window of the matrix.
func (l *lowering) lookUp(e embedding) error {
	cols := e.m.weight.Cols
	var planes [3]int
	if f, ok := e.m.format.(*packed); ok {
		copy(planes[:], f.offsets(cols)[1:])
	}
	for _, w := range e.m.windows {
		d := dispatch{kernel: "embed_" + e.m.format.Name(), constants: []uint32{embedWG}, writes: e.writes,
			bind:   []region{l.batchBuffer(), e.out, w.region, l.embedsBuffer()},
			groups: [3]int{((cols+3)/4 + embedWG - 1) / embedWG, e.n},
			bytes:  int64(e.n) * 8 * int64(cols)}
		d.params = params{}.u32(e.rows.count, e.index).i32(w.tiles, w.tile, int(e.m.tileBytes/texel), planes[0], planes[1], planes[2], cols).
			u32(e.dst, e.stride, bit(e.given)).f32(e.scale)
		if err := l.dispatch(d); err != nil {
			return err
		}
	}
	return nil
}
