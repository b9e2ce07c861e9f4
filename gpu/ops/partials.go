package ops

// Attention joins chunks of positions (KVChunk), and a backend keeps something of each
// until all are known. This is what it may need at once on processors; a forecast counts it.

// SplitHeads and RowHeads are how many heads a thread keeps chunks of: those whose
// chunks are tasks of their own, and those of a row that it computes alone.
const (
	SplitHeads = 16
	RowHeads   = 4
)

// Chunks is how many chunks of positions a row can attend to.
func (o *Attention) Chunks(context int) int {
	n := (context + KVChunk - 1) / KVChunk
	if o.Window > 0 {
		n = min(n, (o.Window-1)/KVChunk+2)
	}
	return n
}

// PartialFloats is the size of what is kept of one head's chunk: the sums of the value's
// columns or, in exact mode before them, the exponentials, and behind them the maximum
// and the denominator; whole vectors of 8.
func PartialFloats(valueDim int, n Numerics) int {
	if n == Exact {
		valueDim = max(valueDim, KVChunk)
	}
	return (valueDim + 2 + 7) &^ 7
}

// PartialBytes is the most that an attention operation keeps of its chunks.
func (p *Plan) PartialBytes(o Options) int64 {
	most := 0
	for _, op := range p.Ops {
		if a, ok := op.(*Attention); ok {
			most = max(most, a.Chunks(o.Context)*PartialFloats(p.Caches[a.Cache].ValueDim, o.Numerics))
		}
	}
	return 4 * int64(SplitHeads+RowHeads) * int64(max(o.Threads, 1)) * int64(most)
}
