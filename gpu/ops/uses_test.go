package ops

import (
	"testing"

	"ganglion/gpu/tensor"
)

func TestWeightUses(t *testing.T) {
	w := func(name string) *Weight { return &Weight{Name: name, Type: tensor.F32, Cols: 4, Rows: 4, Experts: 1} }
	tied, gate, bias, both, norm, a, b, unused := w("tied"), w("gate"), w("bias"), w("both"), w("norm"), w("a"), w("b"), w("unused")
	p := &Plan{Weights: []*Weight{tied, gate, bias, both, norm, a, b, unused}, Ops: []Op{
		&Embed{Table: tied}, &MatMul{W: tied}, &MatMul{W: gate, Bias: bias}, &ExpertMatMul{W: both, Bias: both},
		&RMSNorm{W: norm}, &RMSNorm{}, &LowRank{A: a, B: b},
	}}
	want := map[*Weight]WeightUse{
		tied: {Matrix: true, Table: true}, gate: {Matrix: true}, bias: {Vector: true}, both: {Matrix: true},
		norm: {Vector: true}, a: {Factor: true}, b: {Factor: true},
	}
	got := p.WeightUses()
	if len(got) != len(want) {
		t.Errorf("%d weights are used, want %d", len(got), len(want))
	}
	for w, u := range want {
		if got[w] == nil || *got[w] != u {
			t.Errorf("%s: %+v, want %+v", w.Name, got[w], u)
		}
	}
}
