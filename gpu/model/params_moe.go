package model

import (
	"slices"

	"ganglion/gpu/ops"
)

// expertParams are the keys of a mixture of experts. They are read for every
// architecture; which of them count is a family's matter, as in the reference.
type expertParams struct {
	experts     int
	expertsUsed []int   // by layer
	expertFF    []int   // by layer, 0 = not given
	sharedFF    int     // expert_shared_feed_forward_length, 0 = not given
	sharedCount int     // expert_shared_count
	denseLead   int     // leading layers without experts
	moeStep     int     // interleave_moe_layer_step: every so many layers have experts; 0 = not given
	groups      int     // expert_group_count
	groupsUsed  int     // expert_group_used_count
	expertScale float64 // expert_weights_scale; 0 and 1 mean none
	expertNorm  bool    // expert_weights_norm
	gatingFunc  int     // expert_gating_func, 0 = not given
}

// maxExperts bounds what a hostile file can ask for: routing costs experts × used
// steps per row. The largest published has 512.
const maxExperts = 1024

func readExperts(r *reader, blocks int) expertParams {
	p := expertParams{
		experts:     r.dim("expert_count", 0),
		expertsUsed: r.perLayer("expert_used_count", blocks, 0),
		expertFF:    r.perLayer("expert_feed_forward_length", blocks, 0),
		sharedFF:    r.dim("expert_shared_feed_forward_length", 0),
		sharedCount: r.dim("expert_shared_count", 0),
		denseLead:   r.dim("leading_dense_block_count", 0),
		moeStep:     r.dim("interleave_moe_layer_step", 0),
		groups:      r.dim("expert_group_count", 0),
		groupsUsed:  r.dim("expert_group_used_count", 0),
		expertScale: r.float("expert_weights_scale", 0),
		gatingFunc:  r.dim("expert_gating_func", 0),
	}
	p.expertNorm, _ = r.src.Bool(r.arch + ".expert_weights_norm")
	p.check(r)
	return p
}

func (p *expertParams) check(r *reader) {
	if p.experts > maxExperts {
		r.fail("key %q: %d is more than %d", r.arch+".expert_count", p.experts, maxExperts)
		return
	}
	if p.experts > 0 && slices.Max(p.expertsUsed) < 1 {
		r.fail("key %q: none of %d experts", r.arch+".expert_used_count", p.experts)
	}
	for il, n := range p.expertsUsed {
		if n > p.experts {
			r.fail("key %q: layer %d uses %d of %d experts", r.arch+".expert_used_count", il, n, p.experts)
		}
		if p.expertFF[il] > maxFeedForward {
			r.fail("key %q: %d is more than %d", r.arch+".expert_feed_forward_length", p.expertFF[il], maxFeedForward)
		}
	}
	if p.sharedFF > maxFeedForward || p.sharedCount > maxExperts {
		r.fail("keys %q and %q: shared experts of width %d, %d of them", r.arch+".expert_shared_feed_forward_length",
			r.arch+".expert_shared_count", p.sharedFF, p.sharedCount)
	}
	if p.groups > 1 && p.experts > 0 {
		switch {
		case p.groups >= p.experts || p.experts%p.groups != 0:
			r.fail("key %q: %d groups of %d experts", r.arch+".expert_group_count", p.groups, p.experts)
		case p.groupsUsed < 1 || p.groupsUsed >= p.groups:
			r.fail("key %q: %d of %d groups", r.arch+".expert_group_used_count", p.groupsUsed, p.groups)
		}
	}
	if p.gatingFunc > len(gatings) {
		r.fail("key %q: %d is not known (1 softmax, 2 sigmoid, 3 softmax of the chosen, 4 square root of softplus)",
			r.arch+".expert_gating_func", p.gatingFunc)
	}
}

// gatings are the values of expert_gating_func from 1 on.
var gatings = [...]ops.RouteKind{ops.RouteSoftmax, ops.RouteSigmoid, ops.RouteRaw, ops.RouteSqrtSoftplus}

// gating is the file's expert_gating_func, or the family's own when it gives none.
func (p *expertParams) gating(def ops.RouteKind) ops.RouteKind {
	if p.gatingFunc == 0 {
		return def
	}
	return gatings[p.gatingFunc-1]
}

// sharedOr is expert_shared_feed_forward_length, or a family's default.
func (p *expertParams) sharedOr(def int) int {
	if p.sharedFF > 0 {
		return p.sharedFF
	}
	return def
}
