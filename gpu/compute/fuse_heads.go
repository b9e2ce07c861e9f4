package compute

import "ganglion/gpu/ops"

// headStore is what stands between the products of a layer's attention and the attention
// itself: norms and rotation of queries and keys, and the store of keys and values;
// gpu/kernels/headstore.glsl.
type headStore struct {
	q, k  headChain // q is empty where queries are left as they are
	store *ops.KVStore
	n     int // operations

	attention *ops.Attention // that reads the queries next, nil for none
}

// headChain is what happens to the heads of a view.
type headChain struct {
	norm    *ops.RMSNorm
	rope    *ops.RoPE
	in, out ops.View
}

// headMost is the widest head that the kernel has room for.
const headMost = 512

// headStore finds norms and rotations of one or two views that end with a store of one of
// them.
func (r *Runtime) headStore(list []ops.Op) fusion {
	var chains []*headChain
	for n, op := range list {
		if store, ok := op.(*ops.KVStore); ok {
			f := newHeadStore(chains, store, n+1)
			if f == nil || !f.fits(r) {
				return nil
			}
			if o := as[*ops.Attention](list, n+1); o != nil && f.q.out.Width > 0 && o.Q == f.q.out {
				f.attention = o
			}
			return f
		}
		if chains = extended(chains, op); chains == nil {
			return nil
		}
	}
	return nil
}

// extended adds an operation to the chain that it goes on with, or begins a new one; nil
// when there is no place for it.
func extended(chains []*headChain, op ops.Op) []*headChain {
	var in, out ops.View
	norm, _ := op.(*ops.RMSNorm)
	rope, _ := op.(*ops.RoPE)
	switch {
	case norm != nil:
		in, out = norm.In, norm.Out
	case rope != nil:
		in, out = rope.In, rope.Out
	default:
		return nil
	}
	for _, c := range chains {
		if c.out == in && c.rope == nil && rope != nil && in == out {
			c.rope = rope
			return chains
		}
	}
	if len(chains) == 2 {
		return nil
	}
	return append(chains, &headChain{norm: norm, rope: rope, in: in, out: out})
}

// newHeadStore tells queries from keys by what is stored.
func newHeadStore(chains []*headChain, store *ops.KVStore, n int) *headStore {
	f := &headStore{store: store, n: n}
	for _, c := range chains {
		switch {
		case c.out == store.K && f.k.out.Width == 0:
			f.k = *c
		case f.q.out.Width == 0:
			f.q = *c
		default:
			return nil
		}
	}
	if f.k.out.Width == 0 {
		return nil
	}
	return f
}

// fits tells whether the heads are as the kernel has them.
func (f *headStore) fits(r *Runtime) bool {
	c := r.plan.Caches[f.store.Cache]
	if c.KeyDim > headMost || c.ValueDim > headMost || f.k.out.Width != c.KVHeads*c.KeyDim {
		return false
	}
	for _, h := range []headChain{f.q, f.k} {
		if h.norm != nil && h.norm.Group != c.KeyDim && !(h.norm.Group <= 0 && h.in.Width == c.KeyDim) ||
			h.rope != nil && h.rope.HeadDim != c.KeyDim || h.out.Width%c.KeyDim != 0 {
			return false
		}
	}
	views := []ops.View{f.k.in, f.k.out, f.store.V}
	if f.q.out.Width > 0 {
		if !sameRotation(f.q.rope, f.k.rope) || overlap(f.q.out, f.k.in) || overlap(f.q.out, f.k.out) ||
			overlap(f.q.in, f.k.out) || overlap(f.q.out, f.store.V) || f.q.in != f.q.out && overlap(f.q.in, f.q.out) {
			return false
		}
		views = append(views, f.q.in, f.q.out)
	}
	return !overlap(f.k.out, f.store.V) && (f.k.in == f.k.out || !overlap(f.k.in, f.k.out)) && r.sameRows(views...)
}

func sameRotation(a, b *ops.RoPE) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Table == b.Table && a.Start == b.Start && a.NeoX == b.NeoX
}

// overlap tells whether views have a column in common.
func overlap(a, b ops.View) bool {
	return a.Buf == b.Buf && a.Off < b.Off+b.Width && b.Off < a.Off+a.Width
}

func (f *headStore) count() int { return f.n }

func (f *headStore) lower(l *lowering) error {
	c := l.plan.Caches[f.store.Cache]
	keys, values, group := l.cache(f.store.Cache)
	rows, v := l.rows(f.store.K), l.operand(f.store.V)
	qIn, qOut := operand{}, operand{}
	if f.q.out.Width > 0 {
		qIn, qOut = l.operand(f.q.in), l.operand(f.q.out)
	}
	turn, table, start, pairs := 0, l.batchBuffer(), 0, 0
	var turns, axes, step uint32
	if o := f.k.rope; o != nil {
		t := l.plan.Tables[o.Table]
		turn, table, start, pairs = 1+flag(o.NeoX)+2*flag(t.Axes != nil), l.table(o.Table), o.Start, t.NRot/2
		turns, step = l.batch.turnsOf(t, rows)
		axes = l.rt.axesAt(t)
	}
	qWeight, qStep, qEps := l.headNorm(f.q, c.KeyDim)
	kWeight, kStep, kEps := l.headNorm(f.k, c.KeyDim)
	qHeads := f.q.out.Width / c.KeyDim
	form, queries := f.copyQueries(l)
	d := dispatch{
		kernel:    "headstore_" + kvName(l.rt.opts.KV),
		constants: chosen(normKind(f.q.norm), normKind(f.k.norm), turn, form),
		bind:      []region{l.batchBuffer(), v.region, keys, values, table, qWeight, kWeight, queries},
		params: params{}.u32(rows.count, rows.pos, rows.seq, l.batch.pagesOf(group)).
			i32(l.batch.pageN, qHeads, c.KVHeads, c.KeyDim, c.ValueDim).
			view(qIn).view(qOut).view(l.operand(f.k.in)).view(l.operand(f.k.out)).view(v).
			i32(start, pairs).u32(turns, axes, step, qStep, kStep).f32(qEps, kEps, 1/float32(c.KeyDim)),
		groups: [3]int{qHeads + 2*c.KVHeads, l.capacity(f.store.K)},
		reads:  l.views(f.q.in, f.k.in, f.store.V),
		writes: l.views(f.q.out, f.k.out),
	}
	for _, t := range append(d.reads, d.writes...) { // the pages that are written, not the whole caches
		d.bytes += 2 * l.touched(t)
	}
	d.writes = append(d.writes, regions(keys, values)...)
	if form != queriesThere {
		d.writes = append(d.writes, regions(queries)...)
	}
	return l.dispatch(d)
}

// copyQueries makes room for the copy of the queries that the attention behind wants.
func (f *headStore) copyQueries(l *lowering) (form int, queries region) {
	o := f.attention
	if o == nil || o.Q.Width/o.Heads != l.plan.Caches[f.store.Cache].KeyDim {
		return queriesThere, l.batchBuffer() // not looked at
	}
	if _, form = l.queryForm(o); form == queriesThere {
		return form, l.batchBuffer()
	}
	s := l.queryCopy(o)
	l.staged[queriesKey(o)] = s
	return form, s.region
}

// headNorm gives what the kernel needs to know of a chain's norm.
func (l *lowering) headNorm(h headChain, dim int) (weight region, step uint32, eps float32) {
	if h.norm == nil {
		return l.batchBuffer(), 0, 0
	}
	return l.vector(h.norm.W), groupStep(h.norm.W, h.in, dim), h.norm.Eps
}
