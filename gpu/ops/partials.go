package ops

// Attention joins chunks of positions (KVChunk), and a backend keeps something of each
// until all are known. This is what it may need at once on processors; a forecast counts it.

// SplitHeads and RowHeads are how many heads a thread keeps chunks of: those whose
// chunks are tasks of their own, and those of a row that it computes alone.
const (
	SplitHeads = 16
	RowHeads   = 4
)

// Chunks is how many chunks of positions a row can attend to. One with a span sees all
// rows of its batch.
func (o *Attention) Chunks(opts Options) int {
	n := (opts.Context + KVChunk - 1) / KVChunk
	if o.Window > 0 {
		seen := o.Window
		if o.Span > 0 {
			seen += opts.MaxRows - 1
		}
		n = min(n, (seen-1)/KVChunk+2)
	}
	return n
}

// Sees is the range [lo, hi) of positions that a row at position pos attends to, given
// its span.
func (o *Attention) Sees(pos int, s Span) (lo, hi int) {
	switch {
	case o.Chunked:
		lo = pos - pos%o.Window
	case o.Window > 0:
		lo = pos - o.Window + 1
	}
	return max(lo, int(s.From), 0), max(pos+1, int(s.Until))
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
			most = max(most, a.Chunks(o)*PartialFloats(p.Caches[a.Cache].ValueDim, o.Numerics))
		}
	}
	return 4 * int64(SplitHeads+RowHeads) * int64(max(o.Threads, 1)) * int64(most)
}
