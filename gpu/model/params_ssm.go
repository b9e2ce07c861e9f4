package model

// stateSpace holds the sizes of recurrent layers: the keys ssm.*.
type stateSpace struct {
	conv   int // kernel width of the convolution
	inner  int // channels
	state  int // state values of a channel; width of a head under DeltaNet
	rank   int // of the time step's projection (Mamba 1); number of heads or value heads
	groups int // of B and C; number of key heads

	mayBare bool // the mixer may go without a norm of its result
}

// maxState and maxKernel bound what a hostile file can ask for; the largest published
// are 256 and 4.
const (
	maxState  = 1 << 12
	maxKernel = 1 << 8
	maxInner  = 1 << 18
)

// readStateSpace reads the sizes; grouped families need ssm.group_count.
func (g *graph) readStateSpace(grouped bool) stateSpace {
	need := func(name string, most int) int {
		n := g.keys.dim("ssm."+name, -1)
		if n < 1 || n > most {
			g.fail("key %q is %d, want 1 … %d", g.key("ssm."+name), n, most)
			return 1
		}
		return n
	}
	s := stateSpace{conv: need("conv_kernel", maxKernel), inner: need("inner_size", maxInner),
		state: need("state_size", maxState), rank: need("time_step_rank", maxInner), groups: 1}
	if grouped {
		s.groups = need("group_count", maxInner)
	}
	return s
}

// headed checks that channels divide over the heads and heads over the groups.
func (g *graph) headed(s stateSpace) stateSpace {
	if s.inner%s.rank != 0 || s.rank%s.groups != 0 {
		g.fail("keys %q, %q and %q: %d channels, %d heads, %d groups do not divide", g.key("ssm.inner_size"),
			g.key("ssm.time_step_rank"), g.key("ssm.group_count"), s.inner, s.rank, s.groups)
		s.inner, s.rank, s.groups = 1, 1, 1
	}
	return s
}

// recurrentByHeads tells layers with recurrent state by their having no KV heads.
func (g *graph) recurrentByHeads() bool { return g.kvHeads[g.il] == 0 }

// recurrentLayers reads which layers have recurrent state: an array, or all but every
// interval-th.
func (g *graph) recurrentLayers(interval int) []bool {
	const key = "attention.recurrent_layers"
	if have := g.keys.flags(key, g.blocks); have != nil {
		return have
	}
	out := make([]bool, g.blocks)
	all, one := g.src.Bool(g.key(key))
	interval = g.keys.dim("full_attention_interval", interval)
	if interval < 1 && !one {
		g.fail("key %q is %d", g.key("full_attention_interval"), interval)
		return out
	}
	for il := range out {
		out[il] = all
		if !one {
			out[il] = (il+1)%interval != 0
		}
	}
	return out
}
