package compute

import "ganglion/gpu/ops"

// Recurrent operations have an invocation for each output column of a sequence and walk
// along its rows. How a slot's state lies on the device is the kernels' affair: SaveState
// and LoadState turn it over (carry.go).

// alongRows dispatches a kernel of recurrent.glsl; bind and constants are what comes
// behind the batch, the activations and the workgroup's size.
func (l *lowering) alongRows(kernel string, constant []uint32, bind []region, p params, flops int64, state region, out ops.View, in ...ops.View) error {
	return l.dispatch(dispatch{
		kernel:    kernel,
		constants: append([]uint32{elementWG}, constant...),
		bind:      append([]region{l.batchBuffer(), l.arena(out)}, append(bind, state)...),
		params:    p,
		flops:     flops,
		groups:    [3]int{groupsOf(out.Width), l.batch.seqCap},
		reads:     append(l.views(in...), regions(state)...),
		writes:    append(l.views(out), regions(state)...),
	})
}

// loopRounds bounds the rounds that an invocation's loops run in all, below the 65,535
// at which llvmpipe ends them (gpu/kernels/README.md).
const loopRounds = 60000

// scan dispatches a kernel that walks over a state of n numbers passes times for every
// row, as often as the rounds of its loops make necessary.
func (l *lowering) scan(kernel string, n, passes int, bind []region, p params, state region, out ops.View, in ...ops.View) error {
	const around = 32 // rounds for a row beside those over the state
	most := max(loopRounds/(passes*(n+around)), 1)
	for from := 0; from < l.capacity(out); from += most {
		start := params{}.u32(wordSeqs, l.batch.seqs).i32(from, most)
		flops := 4 * int64(passes*n) * int64(out.Width) * int64(min(most, l.capacity(out)-from))
		if err := l.alongRows(kernel, []uint32{uint32(n)}, bind, start.bytes(p), flops, state, out, in...); err != nil {
			return err
		}
	}
	return nil
}

func (l *lowering) shortConv(o *ops.ShortConv) error {
	p := params{}.u32(wordSeqs, l.batch.seqs).i32(o.In.Width).view(l.operand(o.In)).view(l.operand(o.Out)).i32(flag(o.Bias != nil))
	return l.alongRows("shortconv", []uint32{uint32(o.W.Cols), uint32(o.Act)},
		[]region{l.vector(o.W), l.vector(o.Bias)}, p, 2*int64(o.W.Cols)*int64(o.Out.Width)*int64(l.capacity(o.Out)), l.state(o.State), o.Out, o.In)
}

func (l *lowering) mamba1(o *ops.Mamba1) error {
	p := params{}.i32(o.X.Width).view(l.operand(o.X)).view(l.operand(o.Dt)).
		view(l.operand(o.B)).view(l.operand(o.C)).view(l.operand(o.Out))
	return l.scan("mamba1", o.N, 1, []region{l.vector(o.A), l.vector(o.D)}, p, l.state(o.State), o.Out, o.X, o.Dt, o.B, o.C)
}

func (l *lowering) mamba2(o *ops.Mamba2) error {
	p := params{}.i32(o.X.Width, o.X.Width/o.Heads, o.Heads/o.Groups).view(l.operand(o.X)).view(l.operand(o.Dt)).
		view(l.operand(o.B)).view(l.operand(o.C)).view(l.operand(o.Out))
	return l.scan("mamba2", o.N, 1, []region{l.vector(o.A), l.vector(o.D)}, p, l.state(o.State), o.Out, o.X, o.Dt, o.B, o.C)
}

func (l *lowering) gatedDelta(o *ops.GatedDelta) error {
	p := params{}.i32(o.KHeads, o.VHeads).view(l.operand(o.Q)).view(l.operand(o.K)).view(l.operand(o.V)).
		view(l.operand(o.Gate)).view(l.operand(o.Beta)).view(l.operand(o.Out)).f32(o.Scale)
	return l.scan("gateddelta", o.Dim, 2, nil, p, l.state(o.State), o.Out, o.Q, o.K, o.V, o.Gate, o.Beta)
}
