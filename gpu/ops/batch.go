package ops

import (
	"fmt"
	"sync/atomic"

	"ganglion/plugins/rowstats"
)

// Batch is the parameter buffer of one submission: everything that changes from
// step to step. Rows of one sequence stand together in ascending positions
// without a gap; a sequence's earlier positions must already be on its pages.
type Batch struct {
	Tokens []int32 // [rows] token ids; -1 where Embeds gives the row
	Pos    []int32 // [rows] absolute positions in the sequence
	Slot   []int32 // [rows] the slot that holds the sequence
	Outs   []int32 // [outs] rows whose logits are wanted, ascending
	Want   []Want  // [outs] what to read back of each

	// Pages are the page tables: [groups][slots][Paging.PerSlot] page numbers, -1 for
	// none. Rows write to the pages of their own positions, which no other sequence
	// of the batch may have; all other pages may be shared.
	Pages []int32

	// Embeds, when not nil, holds [rows, Plan.EmbedWidth] input embeddings; it is read
	// for rows whose token is -1 (pictures and sound).
	Embeds []float32

	// Rotary, when not nil, holds [rows, Axes] positions by which RoPE turns pairs of a
	// table with axes; nil is Pos on every axis. Rows of text have Pos as far as no picture
	// came before: a picture takes fewer steps of these positions than it has rows.
	Rotary []int32

	// Spans, when not nil, holds [rows, Plan.Spans] spans of what rows attend to; nil is
	// the zero span for all.
	Spans []Span

	// Lists are the lists of Plan.Lists: which units of which rows each Gather takes.
	Lists [][]int32

	// Scales, when not nil, holds [rows, Plan.Adapters] strengths of the adapters; nil
	// is 0 for all, as is a model without adapters.
	Scales []float32

	// Stop, when not nil, ends the run early once it is set: Run then returns ErrStopped, and
	// what the batch wrote to pages and state is in doubt, as after any other error.
	Stop *Stop
}

// Stop asks a run to end early. It may be set by any goroutine at any time. The run notices
// between operations and within those that take long: on a processor after some milliseconds,
// on a GPU once the submissions that are under way are through. A Stop that is not set
// changes no bit. The zero Stop is not set.
type Stop struct{ set atomic.Int32 }

// Set ends the runs of batches that have it.
func (s *Stop) Set() { s.set.Store(1) }

// Stopped tells whether it is set; a nil Stop is not.
func (s *Stop) Stopped() bool { return s != nil && s.set.Load() != 0 }

// Span is what a row attends to beside the positions up to its own: a row at position p
// sees the positions from max(From, what its window leaves) to max(p+1, Until)−1. From is
// at most p, and Until at most one beyond the sequence's last row in the batch, so that
// all rows of a picture that is seen as a whole are in one batch. The zero Span is that of
// text: everything up to p.
type Span struct{ From, Until int32 }

// Axes is the number of positions of a row in Batch.Rotary: time, line and column.
const Axes = 3

// Check reports the first violation of the batch's rules.
func (b *Batch) Check(p *Plan, o Options) error {
	rows := len(b.Tokens)
	if rows == 0 || rows > o.MaxRows || len(b.Pos) != rows || len(b.Slot) != rows || len(b.Want) != len(b.Outs) {
		return fmt.Errorf("ops: batch: %d tokens, %d positions, %d slots, %d outputs, %d wants (at most %d rows)",
			rows, len(b.Pos), len(b.Slot), len(b.Outs), len(b.Want), o.MaxRows)
	}
	for r := range rows {
		switch {
		case int(b.Tokens[r]) >= p.TokenIDs() || b.Tokens[r] < -1 || (b.Tokens[r] == -1 && len(b.Embeds) < (r+1)*p.EmbedWidth()):
			return fmt.Errorf("ops: batch: row %d: token %d outside the vocabulary of %d", r, b.Tokens[r], p.TokenIDs())
		case b.Slot[r] < 0 || int(b.Slot[r]) >= o.Slots:
			return fmt.Errorf("ops: batch: row %d: slot %d of %d", r, b.Slot[r], o.Slots)
		case b.Pos[r] < 0 || int(b.Pos[r]) >= o.Context:
			return fmt.Errorf("ops: batch: row %d: position %d outside the context of %d", r, b.Pos[r], o.Context)
		case r > 0 && b.Slot[r] == b.Slot[r-1] && b.Pos[r] != b.Pos[r-1]+1:
			return fmt.Errorf("ops: batch: row %d: position %d after %d in slot %d", r, b.Pos[r], b.Pos[r-1], b.Slot[r])
		}
	}
	if err := b.checkSlots(); err != nil {
		return err
	}
	if err := b.checkScales(p); err != nil {
		return err
	}
	if err := b.checkRotary(o); err != nil {
		return err
	}
	if err := b.checkSpans(p); err != nil {
		return err
	}
	if err := b.checkLists(p); err != nil {
		return err
	}
	for i, r := range b.Outs {
		if r < 0 || int(r) >= rows || (i > 0 && r <= b.Outs[i-1]) {
			return fmt.Errorf("ops: batch: output %d names row %d of %d", i, r, rows)
		}
		if w := b.Want[i]; w.Kind > WantRow || (w.Kind == WantTop && (w.K <= 0 || w.K > p.Vocab)) {
			return fmt.Errorf("ops: batch: output %d: read-back of kind %d, best %d of %d tokens", i, w.Kind, w.K, p.Vocab)
		}
	}
	return nil
}

// CheckRun is Check and CheckPages for a program of a shape, and reports a position beyond
// a table that is indexed by positions: what every backend asks before it runs a batch.
// It allocates nothing.
func (b *Batch) CheckRun(p *Plan, o Options, g *Paging, s Shape) error {
	if err := b.Check(p, o); err != nil {
		return err
	}
	if err := b.CheckPages(g); err != nil {
		return err
	}
	if len(b.Tokens) > s.Rows || len(b.Outs) > s.Outs {
		return fmt.Errorf("ops: batch: %d rows and %d outputs in a program for %d and %d", len(b.Tokens), len(b.Outs), s.Rows, s.Outs)
	}
	for _, op := range p.Ops {
		e, ok := op.(*Embed)
		if !ok || !e.ByPosition {
			continue
		}
		for r, pos := range b.Pos {
			if int(pos) >= e.Table.Rows {
				return fmt.Errorf("ops: batch: row %d: position %d outside table %q of %d rows", r, pos, e.Table.Name, e.Table.Rows)
			}
		}
	}
	return nil
}

// checkSlots reports a slot whose rows do not stand together. It compares the starts
// of runs, so that it needs no memory; a batch has no more runs than slots.
func (b *Batch) checkSlots() error {
	for r := 1; r < len(b.Slot); r++ {
		if b.Slot[r] == b.Slot[r-1] {
			continue
		}
		for q := range r {
			if b.Slot[q] == b.Slot[r] {
				return fmt.Errorf("ops: batch: row %d: slot %d was used by row %d already, apart from it", r, b.Slot[r], q)
			}
		}
	}
	return nil
}

// checkRotary reports a position that tables of angles do not have.
func (b *Batch) checkRotary(o Options) error {
	if b.Rotary != nil && len(b.Rotary) != Axes*len(b.Tokens) {
		return fmt.Errorf("ops: batch: %d rotary positions for %d rows", len(b.Rotary), len(b.Tokens))
	}
	for i, pos := range b.Rotary {
		if pos < 0 || int(pos) >= o.Context {
			return fmt.Errorf("ops: batch: row %d: rotary position %d outside the context of %d", i/Axes, pos, o.Context)
		}
	}
	return nil
}

// checkSpans reports a span of positions that are not there when the row looks.
func (b *Batch) checkSpans(p *Plan) error {
	if b.Spans == nil {
		return nil
	}
	if len(b.Spans) != p.Spans*len(b.Tokens) {
		return fmt.Errorf("ops: batch: %d spans for %d rows of %d", len(b.Spans), len(b.Tokens), p.Spans)
	}
	last := -1 // row of the sequence
	for r, pos := range b.Pos {
		if last < r {
			for last = r; last+1 < len(b.Slot) && b.Slot[last+1] == b.Slot[r]; last++ {
			}
		}
		for _, s := range b.Spans[r*p.Spans : (r+1)*p.Spans] {
			if s.From < 0 || s.From > pos || s.Until < 0 || s.Until > b.Pos[last]+1 {
				return fmt.Errorf("ops: batch: row %d: position %d looks at [%d, %d), the sequence ends at %d", r, pos, s.From, s.Until, b.Pos[last]+1)
			}
		}
	}
	return nil
}

// CutAt is where a batch may be cut, at most at row to, so that rows from row from on run
// without those behind: no row before the cut looks at one behind it. It is from where a
// picture from there on reaches beyond to.
func (b *Batch) CutAt(from, to int) int {
	if b.Spans == nil || to == len(b.Tokens) || b.Slot[to] != b.Slot[to-1] {
		return to
	}
	start := to - 1 // of the sequence that is cut, but not before from
	for start > from && b.Slot[start-1] == b.Slot[to] {
		start--
	}
	each := len(b.Spans) / len(b.Tokens)
	cut, until := start, int32(0)
	for r := start; r < to; r++ {
		for _, s := range b.Spans[r*each : (r+1)*each] {
			until = max(until, s.Until)
		}
		if until <= b.Pos[r]+1 {
			cut = r + 1
		}
	}
	return cut
}

// SpanOf is what a row attends to in operations of a number (Attention.Span).
func (b *Batch) SpanOf(row, number int) Span {
	if b.Spans == nil || number == 0 {
		return Span{}
	}
	return b.Spans[row*(len(b.Spans)/len(b.Tokens))+number-1]
}

// WantKind says how much of an output row is read back.
type WantKind uint8

const (
	// WantBest reads back the best token, its logit and the log-sum-exp.
	WantBest WantKind = iota
	// WantTop reads back the best K tokens as well, best first, ties by lower id.
	WantTop
	// WantRow reads back the whole row of logits as well.
	WantRow
)

// Want is what one output row must give back: no more is read.
type Want struct {
	Kind  WantKind
	K     int  // for WantTop: 1 … Plan.Vocab
	Stats bool // and the statistics of the row
}

// Head is what came back for one output row. The slices belong to the runtime
// and are valid until it compiles or runs another program, or this one again.
type Head struct {
	// Err is not nil when a logit of the row is not finite; the other fields then
	// mean nothing. Other rows are not touched by it.
	Err error

	Best      int32   // token with the largest logit, ties to the lowest id
	Max       float32 // its logit
	LogSumExp float32 // natural log of the sum of exp(logit) over the vocabulary

	IDs    []int32   // WantTop: K ids, best first
	Logits []float32 // WantTop: their logits
	Row    []float32 // WantRow: [Vocab]

	Stats rowstats.Stats // Want.Stats: those of the row; else zero
}

// Result receives the heads of one run; it is reused from run to run.
type Result struct {
	Heads []Head
}
