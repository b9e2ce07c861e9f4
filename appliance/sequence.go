package appliance

import (
	"fmt"
	"time"

	"ganglion/appliance/draft"
	"ganglion/gpu/engine"
	"ganglion/plugins/sampling"
)

// sequence is one request on its way through the scheduler, which owns it from
// submission to the end.
type sequence struct {
	c        *Completion
	record   *Record
	created  time.Time
	prompt   []int32
	tokens   []int32               // the prompt and what was chosen since
	media    *spread               // nil: the prompt is text alone
	lora     []engine.AdapterScale // the adapters that act
	max      int
	chain    *sampling.Chain
	sampling sampling.Params
	alts     int // alternatives wanted of each token
	flow     textFlow
	warn     []string

	slot     int
	moves    int  // of the model before it took the slot, see engine.Info.Moves
	cached   int  // prompt tokens that were in the slot
	fed      int  // tokens in the slot, those of the batch being run included
	take     int  // prompt rows in the batch being formed
	squeezed bool // a picture that is read at once did not fit into the last batch
	heads    int  // heads of the batch being run that are this sequence's
	ahead    ahead
	plug     *plugged    // nil: there are no plugins
	stages   *stageNotes // nil: nobody asked

	// Clock readings.
	arrived, queued, started, first time.Time
	sampled                         time.Duration // inside the chain

	reason FinishReason // set when the sequence is complete
	err    error        // set when it failed
	top    []sampling.Candidate
}

// over tells whether the sequence has ended.
func (q *sequence) over() bool { return q.reason != "" || q.err != nil }

// prefilling tells whether tokens are left to run besides the last one chosen.
func (q *sequence) prefilling() bool { return q.missing() > 0 }

// appendRows appends the next take tokens as rows of this step. Once all tokens are in
// place, a head is wanted for the last one and for each guess that is run behind it.
func (q *sequence) appendRows(rows []engine.Row, take int) []engine.Row {
	if q.plug != nil {
		rows, take = q.appendReading(rows, take)
	}
	for i, id := range q.tokens[q.fed : q.fed+take] {
		rows = append(rows, q.row(q.fed+i, id))
	}
	q.fed += take
	q.heads = 0
	if q.fed < len(q.tokens) {
		return rows
	}
	last := &rows[len(rows)-1]
	last.Want, last.Read = true, draft.Want(q.chain.Needs())
	for i, id := range q.ahead.run {
		row := q.row(q.fed+i, id)
		row.Want, row.Read = true, draft.Want(q.chain.NeedsAfter(i+1))
		rows = append(rows, row)
	}
	q.fed += len(q.ahead.run)
	q.heads = 1 + len(q.ahead.run)
	if q.plug != nil {
		return q.appendAuxiliary(rows)
	}
	return rows
}

// row is the token of a position as a row of a batch.
func (q *sequence) row(pos int, id int32) engine.Row {
	r := engine.Row{Slot: q.slot, Token: id}
	if q.media != nil {
		q.media.fill(&r, pos)
	}
	return r
}

// read chooses a token from each of the sequence's heads in turn, as long as it is
// the one that the next head was computed for, and returns how many heads it used.
func (q *sequence) read(heads []engine.Head, v Vocabulary, now func() time.Time, s *sampling.Scratch) (used int) {
	a := &q.ahead
	a.drafted += len(a.run)
	for i := range heads {
		if n := len(q.tokens); i > 0 {
			if q.tokens[n-1] != a.run[i-1] {
				break
			}
			a.came++
		}
		q.advance(&heads[i], v, now, s)
		used++
		if q.over() {
			break
		}
	}
	a.run = a.run[:0]
	return used
}

// advance chooses the token that follows, adds it to the text, and releases text. A
// panic in it ends this sequence alone.
func (q *sequence) advance(h *engine.Head, v Vocabulary, now func() time.Time, s *sampling.Scratch) {
	defer func() {
		if p := recover(); p != nil {
			q.err = fmt.Errorf("appliance: sequence: panic: %v", p)
		}
	}()
	if h.Err != nil {
		q.err = h.Err
		return
	}
	in := sampling.Input{Best: h.Best, Max: h.Max, LogSumExp: h.LogSumExp, IDs: h.IDs, Logits: h.Logits, Row: h.Row}
	from := now()
	if q.first.IsZero() {
		q.first = from
	}
	choice, err := q.chain.Choose(&in, len(q.tokens), s)
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
	t := Token{ID: choice.ID, Logprob: choice.Logprob, Top: q.alternatives(&in, v), Changes: q.stages.take(v)}
	q.sampled += now().Sub(from)

	q.tokens = append(q.tokens, choice.ID)
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
