package model

import "ganglion/gpu/ops"

// Families that run the same layers more than once, each time with a cache of its own.

// nanbeige is Nanbeige: Llama's layers, run num_loops times with the final norm
// between the passes unless skip_loop_final_norm. Where a file that loops has blocks
// for prediction, the reference takes as many layers off the end of all passes.
func nanbeige(g *graph) error {
	loops := g.keys.dim("num_loops", 1)
	if loops < 1 || loops > maxBlocks/g.blocks {
		g.fail("key %q: %d passes of %d layers", g.key("num_loops"), loops, g.blocks)
		return nil
	}
	steps := loops * g.blocks
	if loops > 1 {
		steps -= g.keys.dim("nextn_predict_layers", 0)
	}
	if steps < 1 {
		g.fail("key %q: leaves %d passes of %d layers none to run", g.key("nextn_predict_layers"), loops, g.blocks)
		return nil
	}
	skip := g.keys.flag("skip_loop_final_norm", false)
	l := preNorm(attention{table: g.rope(ropeSpec{factors: true})}, func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) })
	x := g.embed(1)
	g.last = -1
	for i := range steps {
		g.pass, g.il = i/g.blocks, i%g.blocks
		if i == steps-1 {
			g.last = g.il
		}
		if g.il == 0 && g.pass > 0 && !skip {
			x = g.normNamed("output_norm", x)
		}
		x = g.step(l, x)
	}
	g.head(x)
	return nil
}

// hrmText is HRM-Text: two stacks of layers, a low and a high one, that pass two
// streams to each other in cycles. block_count counts the layers as they are run; the
// file has each stack once, the low one first.
func hrmText(g *graph) error {
	size, high, low := g.keys.dim("hrm.layers_per_stack", -1), g.keys.dim("hrm.h_cycles", -1), g.keys.dim("hrm.l_cycles", -1)
	if size < 1 || high < 1 || low < 1 || size > maxBlocks || high > maxBlocks || low > maxBlocks || size*high*(low+1) != g.blocks {
		g.fail("keys %q, %q and %q: %d, %d and %d for %d layers", g.key("hrm.layers_per_stack"),
			g.key("hrm.h_cycles"), g.key("hrm.l_cycles"), size, high, low, g.blocks)
		return nil
	}
	g.last = -1
	l := layer{attn: attention{table: g.rope(ropeSpec{}), neox: true, gate: "attn_gate"}, attnNorm: bare, ffNorm: bare,
		ff: func(n ops.View) ops.View { return g.feedForward(ops.SiLU, n) }}
	stack := func(first int, x ops.View) ops.View {
		for g.il = first; g.il < first+size; g.il++ {
			x = g.step(l, x)
		}
		g.pass++
		return g.normed(bare, x)
	}
	scale := g.keys.float("embedding_scale", 0)
	if scale == 0 {
		scale = 1
	}
	zh := g.embed(float32(scale))
	// The low stream starts as the same vector at every position.
	var zl ops.View
	sum := g.Buffer("streams", g.embd)
	g.Add(&ops.AddVec{W: g.vector("hrm.z_l_init", g.embd), In: zh, Out: sum})
	for cycle := range high {
		if cycle > 0 {
			sum = g.Sum("streams", zh, zl)
		}
		for range low {
			zl = stack(0, sum)
			sum = g.Sum("streams", zh, zl)
		}
		zh = stack(size, sum)
	}
	g.logits(1, g.Outputs(zh))
	return nil
}
