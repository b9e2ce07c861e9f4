package ops

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ganglion/gpu/tensor"
)

// vectorOf makes a float32 weight of n zeros.
func vectorOf(n int) *Weight {
	return &Weight{Name: "w", Type: tensor.F32, Cols: n, Rows: 1, Experts: 1, Data: make([]byte, 4*n)}
}

func matrixOf(cols, rows, experts int) *Weight {
	return &Weight{Name: "m", Type: tensor.F32, Cols: cols, Rows: rows, Experts: experts, Data: make([]byte, 4*cols*rows*experts)}
}

// parts are the operations of smallPlan, so that tests can spoil one.
type parts struct {
	*Plan
	embed  *Embed
	mul    *MatMul
	norm   *RMSNorm
	rope   *RoPE
	store  *KVStore
	att    *Attention
	route  *Route
	expert *ExpertMatMul
	sum    *ExpertSum
	conv   *ShortConv
	m1     *Mamba1
	m2     *Mamba2
	delta  *GatedDelta
	pos    *PosScale
	cap    *Softcap
	bin    *Binary
	vec    *AddVec
	rows   *Rows
}

// smallPlan is a valid plan with every kind of check in it.
func smallPlan() parts {
	b := NewBuilder("small")
	p := parts{Plan: b.Plan}
	p.Vocab, p.Embed = 5, 8
	add := func(op Op) { b.Add(op) }
	x := b.Buffer("x", 8)
	p.embed = &Embed{Table: b.Weight(matrixOf(8, 5, 1)), Scale: 1, Out: x}
	add(p.embed)
	qkv := b.Buffer("qkv", 16)
	p.mul = &MatMul{W: b.Weight(matrixOf(8, 16, 1)), Bias: b.Weight(vectorOf(16)), In: x, Out: qkv}
	add(p.mul)
	q, k, v := qkv.Cols(0, 8), qkv.Cols(8, 4), qkv.Cols(12, 4)
	p.norm = &RMSNorm{W: b.Weight(vectorOf(4)), Eps: 1e-6, Group: 4, In: q, Out: q}
	add(p.norm)
	p.rope = &RoPE{Table: b.Table(&RoPETable{NRot: 4, Base: 1e4, Scale: 1, Magnitude: 1}), HeadDim: 4, In: q, Out: q}
	add(p.rope)
	c := b.Cache(Cache{Name: "kv", KVHeads: 1, KeyDim: 4, ValueDim: 4, Window: 6})
	p.store = &KVStore{Cache: c, K: k, V: v}
	add(p.store)
	p.att = &Attention{Cache: c, Heads: 2, Scale: 1, Window: 6, Sinks: b.Weight(vectorOf(2)), Q: q, Out: b.Buffer("att", 8)}
	add(p.att)
	p.route = &Route{TopK: 2, Groups: 2, GroupsUsed: 1, Bias: b.Weight(vectorOf(4)), In: x.Cols(0, 4),
		IDs: b.Indices("ids", 2), Weights: b.Buffer("weights", 2)}
	add(p.route)
	p.expert = &ExpertMatMul{W: b.Weight(matrixOf(8, 3, 4)), Bias: b.Weight(matrixOf(3, 4, 1)), IDs: p.route.IDs, In: x, Out: b.Buffer("experts", 6)}
	add(p.expert)
	p.sum = &ExpertSum{IDs: p.route.IDs, Weights: p.route.Weights, PerExpert: b.Weight(vectorOf(4)), In: p.expert.Out, Out: b.Buffer("moe", 3)}
	add(p.sum)
	p.conv = &ShortConv{W: b.Weight(matrixOf(4, 8, 1)), Bias: b.Weight(vectorOf(8)), State: b.State(State{"conv", 24}), In: x, Out: b.Buffer("conv", 8)}
	add(p.conv)
	p.m1 = &Mamba1{A: b.Weight(vectorOf(16)), D: b.Weight(vectorOf(8)), N: 2, State: b.State(State{"m1", 16}),
		X: x, Dt: p.conv.Out, B: qkv.Cols(0, 2), C: qkv.Cols(2, 2), Out: b.Buffer("m1", 8)}
	add(p.m1)
	p.m2 = &Mamba2{A: b.Weight(vectorOf(4)), D: b.Weight(vectorOf(4)), Heads: 4, Groups: 2, N: 3, State: b.State(State{"m2", 24}),
		X: x, Dt: qkv.Cols(0, 4), B: qkv.Cols(0, 6), C: qkv.Cols(6, 6), Out: b.Buffer("m2", 8)}
	add(p.m2)
	p.delta = &GatedDelta{KHeads: 2, VHeads: 4, Dim: 2, State: b.State(State{"delta", 16}), Q: qkv.Cols(0, 4), K: qkv.Cols(4, 4),
		V: x, Gate: qkv.Cols(8, 4), Beta: qkv.Cols(12, 4), Out: b.Buffer("delta", 8)}
	add(p.delta)
	p.pos = &PosScale{Floor: 4, Scale: 1, In: x, Out: x}
	add(p.pos)
	p.bin = &Binary{A: x, B: qkv.Cols(0, 4), Out: x}
	add(p.bin)
	p.vec = &AddVec{W: b.Weight(vectorOf(2)), In: x, Out: x}
	add(p.vec)
	out := View{}
	b.rows = PerOut
	out = b.Buffer("out", 8)
	p.rows = &Rows{In: x, Out: out}
	add(p.rows)
	p.cap = &Softcap{Cap: 30, In: out, Out: out}
	add(p.cap)
	p.Logits = out.Cols(1, 5)
	return p
}

func TestValidateAccepts(t *testing.T) {
	if err := smallPlan().Validate(); err != nil {
		t.Fatal(err)
	}
}

// TestValidateRefuses spoils one thing of a valid plan at a time.
func TestValidateRefuses(t *testing.T) {
	wider := func(v View) View { return View{v.Buf, v.Off, v.Width + 1} }
	tests := []struct {
		name  string
		spoil func(p parts)
		says  string
	}{
		// Parts.
		{"no vocabulary", func(p parts) { p.Vocab = 0 }, "vocabulary of 0"},
		{"buffer without width", func(p parts) { p.Buffers[0].Width = 0 }, `buffer "x": width 0`},
		{"buffer of unknown rows", func(p parts) { p.Buffers[0].Rows = 2 }, "rows 2"},
		{"cache without heads", func(p parts) { p.Caches[0].KVHeads = 0 }, `cache "kv": 0 heads`},
		{"cache with negative window", func(p parts) { p.Caches[0].Window = -1 }, "window -1"},
		{"negative state", func(p parts) { p.States[0].Floats = -1 }, `state "conv": -1`},
		{"odd rotation", func(p parts) { p.Tables[0].NRot = 3 }, "rotates 3 columns"},
		{"table without scale", func(p parts) { p.Tables[0].Scale = 0 }, "must be positive"},
		{"table without magnitude", func(p parts) { p.Tables[0].Magnitude = math.NaN() }, "must be positive"},
		{"table with few factors", func(p parts) { p.Tables[0].Factors = make([]float32, 1) }, "1 factors for 4 columns"},
		{"table with few axes", func(p parts) { p.Tables[0].Axes = make([]uint8, 1) }, "axes [0] for 4 columns"},
		{"table with unknown axis", func(p parts) { p.Tables[0].Axes = []uint8{0, 3} }, "axes [0 3]"},
		{"table with negative period", func(p parts) { p.Tables[0].Period = -1 }, "again every -1 pairs"},
		{"negative slices", func(p parts) { p.Slices = -1 }, "-1 slices"},
		{"negative spans", func(p parts) { p.Spans = -1 }, "-1 spans"},
		{"yarn without context", func(p parts) { p.Tables[0].YaRN = true }, "YaRN over a context of 0"},
		{"weight too short", func(p parts) { p.mul.W.Data = p.mul.W.Data[1:] }, "511 bytes"},
		{"weight of huge shape", func(p parts) { p.mul.W.Rows = 1 << 62 }, "bytes for shape"},
		{"weight of huge stack", func(p parts) { p.mul.W.Experts = 1 << 62 }, "bytes for shape"},
		{"weight of unknown type", func(p parts) { p.mul.W.Type = 999 }, "no weight type"},
		{"weight of half a block", func(p parts) { p.mul.W.Type = tensor.Q4_0 }, "weight \"m\""},
		{"weight without columns", func(p parts) { p.mul.W.Cols = 0 }, "shape [1, 16, 0]"},
		// Operands.
		{"weight missing", func(p parts) { p.mul.W = nil }, "needed weight is missing"},
		{"weight not registered", func(p parts) { p.mul.Bias = vectorOf(16) }, "not registered"},
		{"buffer that is not there", func(p parts) { p.mul.In.Buf = 99 }, "buffer 99 does not exist"},
		{"negative buffer", func(p parts) { p.mul.In.Buf = -1 }, "buffer -1 does not exist"},
		{"columns outside", func(p parts) { p.mul.In.Off = 1 }, `outside buffer "x"`},
		{"columns that overflow", func(p parts) { p.mul.In.Off = math.MaxInt }, `outside buffer "x"`},
		{"output outside", func(p parts) { p.mul.Out = wider(p.mul.Out) }, `outside buffer "qkv"`},
		{"unwritten buffer", func(p parts) { p.mul.In = p.att.Out }, `of buffer "att" before they are written`},
		{"unwritten columns", func(p parts) {
			p.mul.Out, p.mul.W.Rows, p.mul.Bias.Cols = p.mul.Out.Cols(0, 15), 15, 15
			p.mul.W.Data, p.mul.Bias.Data = make([]byte, 480), make([]byte, 60)
		}, `reads columns [12,16) of buffer "qkv"`},
		{"logits of other width", func(p parts) { p.Vocab = 4 }, "4 columns"},
		{"logits per row", func(p parts) { p.Logits = p.pos.In.Cols(0, 5) }, "per output"},
		{"logits unwritten", func(p parts) { p.Ops = p.Ops[:len(p.Ops)-2] }, "logits"},
		// Operations.
		{"embed/short table", func(p parts) { p.Vocab = 6 }, "5 rows for a vocabulary of 6"},
		{"embed/width", func(p parts) { p.embed.Out = p.embed.Out.Cols(0, 7) }, "table row is 8 wide, want 7"},
		{"matmul/input", func(p parts) { p.mul.In = p.mul.In.Cols(0, 7) }, "input is 7 wide, want 8"},
		{"matmul/output", func(p parts) { p.mul.Out = p.mul.Out.Cols(0, 15) }, "output is 15 wide, want 16"},
		{"matmul/bias", func(p parts) { p.mul.Bias = p.norm.W }, "has 4 elements, want 16"},
		{"matmul/in place", func(p parts) {
			p.Buffers[p.mul.Out.Buf].Width = 99
			p.mul.In.Buf, p.embed.Out.Buf = p.mul.Out.Buf, p.mul.Out.Buf
		}, "overlaps an input"},
		{"rmsnorm/group", func(p parts) { p.norm.Group = 3 }, "no multiple of the group 3"},
		{"rmsnorm/weight", func(p parts) { p.norm.W = p.vec.W }, "2 elements for groups of 4"},
		{"rmsnorm/partly in place", func(p parts) { p.norm.Out.Off++ }, "overlaps an input partly"},
		{"rope/table", func(p parts) { p.rope.Table = 1 }, "table 1 does not exist"},
		{"rope/head", func(p parts) { p.rope.HeadDim = 3 }, "of heads 3 wide"},
		{"rope/start", func(p parts) { p.rope.Start = 1 }, "from 1 of heads 4"},
		{"rope/width", func(p parts) { p.rope.HeadDim = 5 }, "no multiple of the head width 5"},
		{"kvstore/cache", func(p parts) { p.store.Cache = 1 }, "cache 1 does not exist"},
		{"kvstore/width", func(p parts) { p.store.K = p.store.K.Cols(0, 3) }, "key is 3 wide, want 4"},
		{"attention/cache", func(p parts) { p.att.Cache = -1 }, "cache -1 does not exist"},
		{"attention/nothing stored", func(p parts) { p.Ops[4] = p.pos }, "no kvstore before"},
		{"attention/heads", func(p parts) { p.Caches[0].KVHeads, p.Caches[0].KeyDim, p.Caches[0].ValueDim = 4, 1, 1 }, "2 heads do not divide"},
		{"attention/window", func(p parts) { p.att.Window = 7 }, "window 7 over a cache of window 6"},
		{"attention/no window", func(p parts) { p.att.Window = 0 }, "window 0 over"},
		{"attention/negative", func(p parts) { p.att.Softcap = -1 }, "none may be negative"},
		{"attention/sinks", func(p parts) { p.att.Sinks = p.norm.W }, "4 elements, want 2"},
		{"attention/span", func(p parts) { p.att.Span = 1 }, "span 1 of 0"},
		{"attention/span and ALiBi", func(p parts) { p.Spans, p.att.Span, p.att.ALiBi = 1, 1, 8 }, "ALiBi 8"},
		{"deepstack/slice", func(p parts) { p.Ops[len(p.Ops)-3] = &Deepstack{Slice: 1, In: p.pos.In, Out: p.pos.Out} }, "slice 1 of 0"},
		{"deepstack/width", func(p parts) {
			p.Slices, p.Embed = 1, 7
			p.Ops[len(p.Ops)-3] = &Deepstack{Slice: 1, In: p.pos.In, Out: p.pos.Out}
		}, "slice is 7 wide, want 8"},
		{"attention/in place", func(p parts) { p.att.Out = p.att.Q }, "overlaps an input"},
		{"route/too many", func(p parts) { p.route.TopK = 5 }, "chooses 5 of 4"},
		{"route/groups", func(p parts) { p.route.Groups = 3 }, "3 groups"},
		{"route/more than groups hold", func(p parts) { p.route.Groups, p.route.GroupsUsed = 4, 1 }, "4 groups, 1 used, of 4 experts, 2 chosen"},
		{"route/kind", func(p parts) { p.route.Kind = 9 }, "unknown kind 9"},
		{"route/ids are floats", func(p parts) { p.Buffers[p.route.IDs.Buf].Elem = F32 }, "wrong element type"},
		{"expertmatmul/few experts", func(p parts) { p.expert.W.Experts, p.expert.W.Rows = 2, 6 }, "output is 6 wide, want 12"},
		{"expertmatmul/fewer than the router has", func(p parts) {
			p.expert.W.Experts, p.expert.W.Data = 3, make([]byte, 4*8*3*3)
			p.expert.Bias = nil
		}, "ids of 4 experts for a stack of 3"},
		{"expertmatmul/input", func(p parts) { p.expert.In = p.expert.In.Cols(0, 7) }, "input is 7 wide"},
		{"expertsum/scales", func(p parts) { p.sum.PerExpert = p.vec.W }, "ids of 4 experts for a stack of 2"},
		{"expertsum/width", func(p parts) { p.sum.Out = p.sum.Out.Cols(0, 2) }, "input is 6 wide, want 4"},
		{"shortconv/state", func(p parts) { p.States[0].Floats = 25 }, "state conv is 25 wide, want 24"},
		{"shortconv/no state", func(p parts) { p.conv.State = 4 }, "state 4 does not exist"},
		{"shortconv/in place", func(p parts) { p.conv.Out = p.conv.In }, "overlaps an input"},
		{"shortconv/kernel", func(p parts) { p.conv.W = p.embed.Table }, "kernel rows is 5"},
		{"mamba1/decay", func(p parts) { p.m1.A = p.m1.D }, "8 elements, want 16"},
		{"mamba2/groups", func(p parts) { p.m2.Groups = 3 }, "3 groups"},
		{"mamba2/dt", func(p parts) { p.m2.Dt = p.m2.Dt.Cols(0, 3) }, "dt is 3 wide"},
		{"gateddelta/heads", func(p parts) { p.delta.KHeads = 3 }, "4 value heads over 3"},
		{"gateddelta/same state", func(p parts) { p.delta.State = p.m1.State }, "state 1 has an operation already"},
		{"posscale/floor", func(p parts) { p.pos.Floor = 0 }, "floor 0 must be positive"},
		{"softcap/cap", func(p parts) { p.cap.Cap = 0 }, "cap must be positive"},
		{"binary/repeat", func(p parts) { p.bin.B = p.bin.B.Cols(0, 3) }, "width 3 does not repeat over 8"},
		{"addvec/repeat", func(p parts) {
			p.vec.W = p.sum.PerExpert
			p.vec.In, p.vec.Out = p.vec.In.Cols(0, 6), p.vec.In.Cols(0, 6)
		}, "does not repeat over 6"},
		{"rows/per row", func(p parts) { p.rows.Out = p.att.Out }, "must read a per-row"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := smallPlan()
			tt.spoil(p)
			err := p.Validate()
			if !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want an error about %q", err, tt.says)
			}
		})
	}
}

// TestPlanRandom lets Validate meet plans whose numbers are random: it may refuse
// them, never panic.
func TestPlanRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := smallPlan()
		n := rapid.SampledFrom([]int{-1 << 62, -1, 0, 1, 2, 3, 7, 8, 9, 1 << 20, math.MaxInt})
		view := func(v *View) {
			switch rapid.IntRange(0, 2).Draw(t, "field") {
			case 0:
				v.Buf = Buf(n.Draw(t, "buf"))
			case 1:
				v.Off = n.Draw(t, "off")
			case 2:
				v.Width = n.Draw(t, "width")
			}
		}
		spoil := []func(){
			func() { view(&p.mul.In) }, func() { view(&p.att.Q) }, func() { view(&p.store.V) }, func() { view(&p.bin.B) },
			func() { view(&p.route.IDs) }, func() { view(&p.delta.Gate) }, func() { view(&p.m2.B) }, func() { view(&p.Logits) },
			func() { p.mul.W.Cols = n.Draw(t, "cols") }, func() { p.expert.W.Experts = n.Draw(t, "experts") },
			func() { p.att.Heads = n.Draw(t, "heads") }, func() { p.Caches[0].KeyDim = n.Draw(t, "key") },
			func() { p.norm.Group = n.Draw(t, "group") }, func() { p.rope.HeadDim = n.Draw(t, "head") },
			func() { p.rope.Start = n.Draw(t, "start") }, func() { p.route.TopK = n.Draw(t, "k") },
			func() { p.route.Groups = n.Draw(t, "groups") }, func() { p.m1.N = n.Draw(t, "n") },
			func() { p.m2.Heads = n.Draw(t, "heads") }, func() { p.delta.Dim = n.Draw(t, "dim") },
			func() { p.delta.VHeads = n.Draw(t, "vheads") }, func() { p.conv.State = n.Draw(t, "state") },
		}
		for range rapid.IntRange(1, 4).Draw(t, "spoils") {
			rapid.SampledFrom(spoil).Draw(t, "spoil")()
		}
		if err := p.Validate(); err != nil && !errors.Is(err, ErrPlan) {
			t.Fatalf("%v does not wrap ErrPlan", err)
		}
	})
}
