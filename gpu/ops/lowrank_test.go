package ops

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// lowRankPlan is a valid plan with every form of LowRank.
type lowRankPlan struct {
	*Plan
	route                  *Route
	plain, expert, byToken *LowRank
}

func newLowRankPlan() lowRankPlan {
	b := NewBuilder("lowrank")
	p := lowRankPlan{Plan: b.Plan}
	p.Vocab, p.Embed, p.Adapters = 5, 8, 2
	x := b.Embed(b.Weight(matrixOf(8, 5, 1)), 1)
	p.byToken = &LowRank{Factor: 1, ByToken: true, A: b.Weight(matrixOf(3, 5, 1)), B: b.Weight(matrixOf(3, 8, 1)), Out: x}
	b.Add(p.byToken)
	y := b.MatMul("y", b.Weight(matrixOf(8, 6, 1)), nil, x)
	p.plain = &LowRank{Adapter: 1, Factor: 2, A: b.Weight(matrixOf(8, 2, 1)), B: b.Weight(matrixOf(2, 6, 1)), In: x, Out: y}
	b.Add(p.plain)
	p.route = &Route{TopK: 2, In: x.Cols(0, 4), IDs: b.Indices("ids", 2), Weights: b.Buffer("weights", 2)}
	b.Add(p.route)
	z := b.Buffer("z", 14)
	b.Add(&ExpertMatMul{W: b.Weight(matrixOf(8, 7, 4)), IDs: p.route.IDs, In: x, Out: z})
	p.expert = &LowRank{Factor: 1, A: b.Weight(matrixOf(8, 5, 4)), B: b.Weight(matrixOf(5, 7, 4)), IDs: p.route.IDs, In: x, Out: z}
	b.Add(p.expert)
	p.Logits = b.Outputs(y).Cols(0, 5)
	return p
}

func TestLowRankWidth(t *testing.T) {
	p := newLowRankPlan()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := p.LowRankWidth(); got != 10 {
		t.Errorf("widest A·x has %d floats, want 2 experts of rank 5", got)
	}
	if got := (&Plan{}).LowRankWidth(); got != 0 {
		t.Errorf("a plan without updates keeps %d floats", got)
	}
}

func TestValidateRefusesLowRank(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(p lowRankPlan)
		says  string
	}{
		{"negative count", func(p lowRankPlan) { p.Adapters = -1 }, "-1 adapters"},
		{"adapter too large", func(p lowRankPlan) { p.plain.Adapter = 2 }, "adapter 2 of 2"},
		{"adapter negative", func(p lowRankPlan) { p.plain.Adapter = -1 }, "adapter -1 of 2"},
		{"factor", func(p lowRankPlan) { p.plain.Factor = float32(math.Inf(1)) }, "not finite"},
		{"half missing", func(p lowRankPlan) { p.plain.B = nil }, "needed weight is missing"},
		{"rank", func(p lowRankPlan) { p.plain.B = p.expert.B }, "B is 5 wide, want 2"},
		{"input", func(p lowRankPlan) { p.plain.In = p.plain.In.Cols(0, 7) }, "input is 7 wide, want 8"},
		{"output", func(p lowRankPlan) { p.plain.Out = p.plain.Out.Cols(0, 5) }, "output is 5 wide, want 6"},
		{"in place", func(p lowRankPlan) { p.Buffers[0].Width = 14; p.plain.Out.Buf = 0 }, "overlaps an input"},
		{"output not written", func(p lowRankPlan) { p.Ops[2], p.Ops[3] = p.Ops[3], p.Ops[2] }, `buffer "y" before`},
		{"stacks differ", func(p lowRankPlan) { p.expert.B = p.plain.B }, "factor A has 4 experts, B 1"},
		{"fewer than the router has", func(p lowRankPlan) {
			p.expert.A.Experts, p.expert.A.Data = 3, p.expert.A.Data[:4*8*5*3]
			p.expert.B.Experts, p.expert.B.Data = 3, p.expert.B.Data[:4*5*7*3]
		}, "ids of 4 experts for a stack of 3"},
		{"ids are floats", func(p lowRankPlan) { p.expert.IDs = p.route.Weights }, "wrong element type"},
		{"table", func(p lowRankPlan) {
			p.byToken.A = p.plain.B
			p.byToken.A.Rows = 4
			p.byToken.A.Data = p.byToken.A.Data[:32]
		}, "4 rows for a vocabulary of 5"},
		{"table rank", func(p lowRankPlan) { p.byToken.B = p.plain.A }, "B is 8 wide, want 3"},
		{"table output", func(p lowRankPlan) { p.byToken.Out = p.byToken.Out.Cols(0, 7) }, "output is 7 wide, want 8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newLowRankPlan()
			tt.spoil(p)
			err := p.Validate()
			if !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want an error about %q", err, tt.says)
			}
		})
	}
}
