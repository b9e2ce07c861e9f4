package appliance

import (
	"fmt"
	"time"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/plugins/sampling"
)

// sequence is one request on its way through the scheduler, which owns it from
// submission to the end.
type sequence struct {
	c       *Completion
	record  *Record
	created time.Time
	prompt  []int32
	max     int
	chain   *sampling.Chain
	alts    int // alternatives wanted of each token
	flow    textFlow
	warn    []string

	slot   int
	cached int   // prompt tokens that were in the slot
	fed    int   // tokens in the slot; below len(prompt) while the prompt is read
	next   int32 // token to feed once the prompt is in place
	take   int   // prompt rows in the batch being formed
	wants  bool  // a head of the batch being run is this sequence's

	// Clock readings.
	arrived, queued, started, first time.Time
	sampled                         time.Duration // inside the chain

	reason FinishReason // set when the sequence is complete
	err    error        // set when it failed
	top    []sampling.Candidate
}

// over tells whether the sequence has ended.
func (q *sequence) over() bool { return q.reason != "" || q.err != nil }

// prefilling tells whether prompt rows are left to run.
func (q *sequence) prefilling() bool { return q.fed < len(q.prompt) }

// appendRows appends the sequence's rows of this step: the next take prompt tokens,
// or the last token chosen.
func (q *sequence) appendRows(rows []engine.Row) []engine.Row {
	q.wants = true
	if !q.prefilling() {
		q.fed++
		return append(rows, engine.Row{Slot: q.slot, Token: q.next, Want: true, Read: want(q.chain.Needs())})
	}
	for _, id := range q.prompt[q.fed : q.fed+q.take] {
		rows = append(rows, engine.Row{Slot: q.slot, Token: id})
	}
	q.fed += q.take
	if q.prefilling() {
		q.wants = false
		return rows
	}
	last := &rows[len(rows)-1]
	last.Want, last.Read = true, want(q.chain.Needs())
	return rows
}

// want says to the engine what a chain needs.
func want(n sampling.Needs) ops.Want {
	switch n.View {
	case sampling.Best:
		return ops.Want{Kind: ops.WantBest}
	case sampling.Top:
		return ops.Want{Kind: ops.WantTop, K: n.K}
	}
	return ops.Want{Kind: ops.WantRow}
}

// advance chooses the token that follows, adds it to the text, and releases text. A
// panic in it ends this sequence alone.
func (q *sequence) advance(h *engine.Head, v Vocabulary, now func() time.Time, s *sampling.Scratch) {
	defer func() {
		if p := recover(); p != nil {
			q.err = fmt.Errorf("appliance: sequence: panic: %v", p)
		}
	}()
	in := sampling.Input{Best: h.Best, Max: h.Max, LogSumExp: h.LogSumExp, IDs: h.IDs, Logits: h.Logits, Row: h.Row}
	from := now()
	if q.first.IsZero() {
		q.first = from
	}
	choice, err := q.chain.Choose(&in, q.fed, s)
	if err != nil {
		q.err = err
		return
	}
	if v.IsEOG(choice.ID) {
		q.sampled += now().Sub(from)
		q.end(FinishStop)
		return
	}
	q.chain.Accept(choice.ID)
	t := Token{ID: choice.ID, Logprob: choice.Logprob, Top: q.alternatives(&in, v)}
	q.sampled += now().Sub(from)

	q.next = choice.ID
	switch stopped := q.flow.push(t); {
	case stopped:
		q.reason = FinishStop
	case len(q.flow.tokens) >= q.max:
		q.end(FinishLength)
	default:
		if chunk, ok := q.flow.next(); ok {
			q.c.publish(chunk)
		}
	}
}

// end completes the text; an unfinished character may still complete a stop string.
func (q *sequence) end(reason FinishReason) {
	if q.flow.flush() {
		reason = FinishStop
	}
	q.reason = reason
}

// alternatives lists the most likely tokens of a step.
func (q *sequence) alternatives(in *sampling.Input, v Vocabulary) []Alternative {
	if q.alts == 0 {
		return nil
	}
	q.top = sampling.AppendTop(q.top[:0], in, q.alts)
	out := make([]Alternative, len(q.top))
	for i, c := range q.top {
		out[i] = Alternative{ID: c.ID, Text: render(v, c.ID), Logprob: sampling.Logprob(c.Logit, in.LogSumExp)}
	}
	return out
}

// timings returns the durations of the phases up to now.
func (q *sequence) timings(now time.Time) (t Timings) {
	if q.started.IsZero() {
		t.Queue = now.Sub(q.queued)
		return t
	}
	t.Queue = q.started.Sub(q.queued)
	if q.first.IsZero() {
		t.Prefill = now.Sub(q.started)
		return t
	}
	t.Prefill = q.first.Sub(q.started)
	t.Decode = now.Sub(q.first)
	t.FirstToken = q.first.Sub(q.arrived)
	return t
}
