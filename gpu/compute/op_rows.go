package compute

import "ganglion/gpu/ops"

// Operations that look at more of the batch than its number of rows: the choice of
// output rows, rotation by positions, the store into pages.

func (l *lowering) pickRows(o *ops.Rows) error {
	in, out := l.operand(o.In), l.operand(o.Out)
	return l.dispatch(dispatch{
		kernel: "rows",
		bind:   []region{l.batchBuffer(), in.region, out.region},
		params: params{}.u32(l.rows(o.Out).count, out.width, l.batch.outs).view(in).view(out),
		groups: l.wide(o.Out),
		reads:  l.views(o.In), writes: l.views(o.Out),
	})
}

func (l *lowering) gather(o *ops.Gather) error {
	in, out := l.operand(o.In), l.operand(o.Out)
	return l.dispatch(dispatch{
		kernel:    "gather",
		constants: chosen(o.Terms, flag(o.Mean)),
		bind:      []region{l.batchBuffer(), in.region, out.region},
		params: params{}.u32(l.rows(o.Out).count, out.width, l.batch.lists[o.List]).i32(o.Unit, o.In.Width/o.Unit).
			f32(1 / float32(o.Terms)).view(in).view(out),
		groups: l.wide(o.Out),
		reads:  l.views(o.In), writes: l.views(o.Out),
	})
}

func (l *lowering) rope(o *ops.RoPE) error {
	t := l.plan.Tables[o.Table]
	pairs, heads := t.NRot/2, o.Out.Width/o.HeadDim
	positions, step := l.batch.turnsOf(t, l.rows(o.Out))
	d := l.elementwise("rope", 3*plainFlops, o.Out, o.In)
	d.constants = chosen(flag(o.NeoX), flag(t.Axes != nil))
	d.bind = append(d.bind, l.table(o.Table))
	d.params = params{}.u32(l.rows(o.Out).count, positions, l.rt.axesAt(t), step).i32(heads, o.HeadDim, o.Start, pairs).
		view(l.operand(o.In)).view(l.operand(o.Out))
	d.groups[0] = groupsOf(heads * (o.HeadDim - pairs))
	return l.dispatch(d)
}

// deepstack reads its slice where writeEmbeds puts it.
func (l *lowering) deepstack(o *ops.Deepstack) error {
	d := l.elementwise("deepstack", plainFlops, o.Out, o.In)
	rows, outs := l.rows(o.Out), uint32(0)
	if rows.count == wordOuts {
		outs = l.batch.outs
	}
	d.bind = append(d.bind, l.embedsBuffer())
	d.params = d.params.u32(rows.tokens, outs, uint32(o.Slice*l.shape.Rows*l.plan.Embed)).view(l.operand(o.In)).view(l.operand(o.Out))
	return l.dispatch(d)
}

// kvPart is how many values of a head one invocation stores.
func kvPart(kv ops.KVType) int {
	if kv == ops.KVQ8 {
		return ops.KVBlock
	}
	return 8
}

func (l *lowering) kvStore(o *ops.KVStore) error {
	c, kv := l.plan.Caches[o.Cache], l.rt.opts.KV
	keys, values, group := l.cache(o.Cache)
	rows, k, v := l.rows(o.K), l.operand(o.K), l.operand(o.V)
	part := kvPart(kv)
	parts := c.KVHeads * ((c.KeyDim+part-1)/part + (c.ValueDim+part-1)/part)
	d := dispatch{
		kernel: "kvstore_" + kvName(kv),
		bind:   []region{l.batchBuffer(), k.region, keys, values},
		params: params{}.u32(rows.count, rows.pos, rows.seq, l.batch.pagesOf(group)).
			i32(l.batch.pageN, c.KVHeads, c.KeyDim, c.ValueDim).view(k).view(v),
		groups: [3]int{groupsOf(parts), l.capacity(o.K)},
		reads:  l.views(o.K, o.V), writes: regions(keys, values),
	}
	for _, t := range d.reads { // the pages that are written, not the whole caches
		d.bytes += 2 * l.touched(t)
	}
	return l.dispatch(d)
}
