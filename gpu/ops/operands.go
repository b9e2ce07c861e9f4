package ops

import "fmt"

// The names and operands of the operations: what Plan.Validate, NewLayout and a
// backend's scheduler need to know without knowing the operation.

func (o *Embed) Name() string        { return "embed" }
func (o *Deepstack) Name() string    { return "deepstack" }
func (o *Rows) Name() string         { return "rows" }
func (o *MatMul) Name() string       { return "matmul" }
func (o *RMSNorm) Name() string      { return "rmsnorm" }
func (o *LayerNorm) Name() string    { return "layernorm" }
func (o *L2Norm) Name() string       { return "l2norm" }
func (o *Binary) Name() string       { return "binary" }
func (o *AddVec) Name() string       { return "addvec" }
func (o *Scale) Name() string        { return "scale" }
func (o *Unary) Name() string        { return "unary" }
func (o *GLU) Name() string          { return "glu" }
func (o *Softcap) Name() string      { return "softcap" }
func (o *PosScale) Name() string     { return "posscale" }
func (o *RoPE) Name() string         { return "rope" }
func (o *KVStore) Name() string      { return "kvstore" }
func (o *Attention) Name() string    { return "attention" }
func (o *Route) Name() string        { return "route" }
func (o *ExpertMatMul) Name() string { return "expertmatmul" }
func (o *ExpertSum) Name() string    { return "expertsum" }
func (o *ShortConv) Name() string    { return "shortconv" }
func (o *Mamba1) Name() string       { return "mamba1" }
func (o *Mamba2) Name() string       { return "mamba2" }
func (o *GatedDelta) Name() string   { return "gateddelta" }

func (o *Embed) Reads() []View        { return nil }
func (o *Embed) Writes() []View       { return []View{o.Out} }
func (o *Deepstack) Reads() []View    { return []View{o.In} }
func (o *Deepstack) Writes() []View   { return []View{o.Out} }
func (o *Rows) Reads() []View         { return []View{o.In} }
func (o *Rows) Writes() []View        { return []View{o.Out} }
func (o *MatMul) Reads() []View       { return []View{o.In} }
func (o *MatMul) Writes() []View      { return []View{o.Out} }
func (o *RMSNorm) Reads() []View      { return []View{o.In} }
func (o *RMSNorm) Writes() []View     { return []View{o.Out} }
func (o *LayerNorm) Reads() []View    { return []View{o.In} }
func (o *LayerNorm) Writes() []View   { return []View{o.Out} }
func (o *L2Norm) Reads() []View       { return []View{o.In} }
func (o *L2Norm) Writes() []View      { return []View{o.Out} }
func (o *Binary) Reads() []View       { return []View{o.A, o.B} }
func (o *Binary) Writes() []View      { return []View{o.Out} }
func (o *AddVec) Reads() []View       { return []View{o.In} }
func (o *AddVec) Writes() []View      { return []View{o.Out} }
func (o *Scale) Reads() []View        { return []View{o.In} }
func (o *Scale) Writes() []View       { return []View{o.Out} }
func (o *Unary) Reads() []View        { return []View{o.In} }
func (o *Unary) Writes() []View       { return []View{o.Out} }
func (o *GLU) Reads() []View          { return []View{o.Gate, o.Up} }
func (o *GLU) Writes() []View         { return []View{o.Out} }
func (o *Softcap) Reads() []View      { return []View{o.In} }
func (o *Softcap) Writes() []View     { return []View{o.Out} }
func (o *PosScale) Reads() []View     { return []View{o.In} }
func (o *PosScale) Writes() []View    { return []View{o.Out} }
func (o *RoPE) Reads() []View         { return []View{o.In} }
func (o *RoPE) Writes() []View        { return []View{o.Out} }
func (o *KVStore) Reads() []View      { return []View{o.K, o.V} }
func (o *KVStore) Writes() []View     { return nil }
func (o *Attention) Reads() []View    { return []View{o.Q} }
func (o *Attention) Writes() []View   { return []View{o.Out} }
func (o *Route) Reads() []View        { return []View{o.In} }
func (o *Route) Writes() []View       { return []View{o.IDs, o.Weights} }
func (o *ExpertMatMul) Reads() []View { return []View{o.IDs, o.In} }
func (o *ExpertMatMul) Writes() []View {
	return []View{o.Out}
}
func (o *ExpertSum) Reads() []View  { return []View{o.IDs, o.Weights, o.In} }
func (o *ExpertSum) Writes() []View { return []View{o.Out} }
func (o *ShortConv) Reads() []View  { return []View{o.In} }
func (o *ShortConv) Writes() []View { return []View{o.Out} }
func (o *Mamba1) Reads() []View     { return []View{o.X, o.Dt, o.B, o.C} }
func (o *Mamba1) Writes() []View    { return []View{o.Out} }
func (o *Mamba2) Reads() []View     { return []View{o.X, o.Dt, o.B, o.C} }
func (o *Mamba2) Writes() []View    { return []View{o.Out} }
func (o *GatedDelta) Reads() []View {
	return []View{o.Q, o.K, o.V, o.Gate, o.Beta}
}
func (o *GatedDelta) Writes() []View { return []View{o.Out} }

func (o *Embed) weights() (needed, optional []*Weight)     { return list(o.Table), nil }
func (o *Deepstack) weights() (needed, optional []*Weight) { return nil, nil }
func (o *Rows) weights() (needed, optional []*Weight)      { return nil, nil }
func (o *MatMul) weights() (needed, optional []*Weight) {
	return list(o.W), list(o.Bias)
}
func (o *RMSNorm) weights() (needed, optional []*Weight)   { return nil, list(o.W) }
func (o *LayerNorm) weights() (needed, optional []*Weight) { return nil, list(o.W, o.Bias) }
func (o *L2Norm) weights() (needed, optional []*Weight)    { return nil, nil }
func (o *Binary) weights() (needed, optional []*Weight)    { return nil, nil }
func (o *AddVec) weights() (needed, optional []*Weight)    { return list(o.W), nil }
func (o *Scale) weights() (needed, optional []*Weight)     { return nil, nil }
func (o *Unary) weights() (needed, optional []*Weight)     { return nil, nil }
func (o *GLU) weights() (needed, optional []*Weight)       { return nil, nil }
func (o *Softcap) weights() (needed, optional []*Weight)   { return nil, nil }
func (o *PosScale) weights() (needed, optional []*Weight)  { return nil, nil }
func (o *RoPE) weights() (needed, optional []*Weight)      { return nil, nil }
func (o *KVStore) weights() (needed, optional []*Weight)   { return nil, nil }
func (o *Attention) weights() (needed, optional []*Weight) { return nil, list(o.Sinks) }
func (o *Route) weights() (needed, optional []*Weight)     { return nil, list(o.Bias) }
func (o *ExpertMatMul) weights() (needed, optional []*Weight) {
	return list(o.W), list(o.Bias)
}
func (o *ExpertSum) weights() (needed, optional []*Weight)  { return nil, list(o.PerExpert) }
func (o *ShortConv) weights() (needed, optional []*Weight)  { return list(o.W), list(o.Bias) }
func (o *Mamba1) weights() (needed, optional []*Weight)     { return list(o.A, o.D), nil }
func (o *Mamba2) weights() (needed, optional []*Weight)     { return list(o.A, o.D), nil }
func (o *GatedDelta) weights() (needed, optional []*Weight) { return nil, nil }

func list(ws ...*Weight) []*Weight { return ws }

func width(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s is %d wide, want %d", what, got, want)
	}
	return nil
}
