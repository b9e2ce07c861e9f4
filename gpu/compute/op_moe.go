package compute

import "ganglion/gpu/ops"

// elementWG is the size of workgroups whose invocations have an element each.
const elementWG = 64

func groupsOf(n int) int { return (n + elementWG - 1) / elementWG }

func (l *lowering) route(o *ops.Route) error {
	experts, groups, scale := o.In.Width, max(o.Groups, 1), o.Scale
	if scale == 0 {
		scale = 1
	}
	return l.dispatch(dispatch{
		kernel:    "route",
		constants: []uint32{elementWG, uint32(o.Kind), uint32(experts), uint32(o.TopK)},
		bind:      []region{l.batchBuffer(), l.arena(o.In), l.vector(o.Bias)},
		params: params{}.u32(l.rows(o.In).count).view(l.operand(o.In)).view(l.operand(o.IDs)).view(l.operand(o.Weights)).
			i32(flag(o.Bias != nil), groups, o.GroupsUsed, experts/groups, max(o.Share, 1), flag(o.Norm)).f32(scale),
		groups: [3]int{1, l.capacity(o.In)},
		reads:  l.views(o.In),
		writes: l.views(o.IDs, o.Weights),
	})
}

func (l *lowering) expertSum(o *ops.ExpertSum) error {
	return l.dispatch(dispatch{
		kernel: "expertsum",
		bind:   []region{l.batchBuffer(), l.arena(o.Out), l.vector(o.PerExpert)},
		params: params{}.u32(l.rows(o.Out).count).i32(o.Out.Width, o.IDs.Width).
			view(l.operand(o.IDs)).view(l.operand(o.Weights)).view(l.operand(o.In)).view(l.operand(o.Out)).
			i32(flag(o.PerExpert != nil)),
		groups: [3]int{groupsOf(o.Out.Width), l.capacity(o.Out)},
		reads:  l.views(o.IDs, o.Weights, o.In),
		writes: l.views(o.Out),
	})
}
