package appliance

import (
	"fmt"
	"time"

	"ganglion/gpu/engine"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/sampling"
)

// readPlugged is read of a sequence with plugins: steps after the first one are planned
// between its heads.
func (q *sequence) readPlugged(heads []engine.Head, v Vocabulary, now func() time.Time, s *sampling.Scratch) (used int) {
	a, g := &q.ahead, q.plug
	a.drafted += len(a.run) - a.forced
	for i := range heads {
		if i > 0 {
			if q.tokens[len(q.tokens)-1] != a.run[i-1] {
				break
			}
			if i > a.forced {
				a.came++
			}
			g.plan()
		}
		before := len(q.tokens)
		q.advancePlugged(&heads[i], v, now, s)
		used++
		if q.over() || len(q.tokens) != before+1 {
			break
		}
	}
	a.run, a.forced = a.run[:0], 0
	g.next = append(g.next[:0], g.pipe.Forced()...)
	return used
}

// advancePlugged is advance of a sequence with plugins.
func (q *sequence) advancePlugged(h *engine.Head, v Vocabulary, now func() time.Time, s *sampling.Scratch) {
	defer func() {
		if p := recover(); p != nil {
			q.err = fmt.Errorf("appliance: sequence: panic: %v", p)
		}
	}()
	g := q.plug
	from := now()
	if q.first.IsZero() {
		q.first = from
	}
	defer func() { q.sampled += now().Sub(from) }()
	if q.err = userError(g.fault); q.err != nil {
		return
	}
	if h.Err != nil {
		q.err = h.Err
		return
	}
	if r := g.pipe.Stopped(); r != 0 {
		q.stopped(r)
		return
	}
	in := sampling.Input{Best: h.Best, Max: h.Max, LogSumExp: h.LogSumExp, IDs: h.IDs, Logits: h.Logits, Row: h.Row}
	choice, err := q.choosePlugged(&in, s)
	if err != nil {
		q.err = userError(err)
		return
	}
	for _, sh := range g.shadows {
		sh.look(&in, choice.ID, len(q.tokens))
	}
	if v.IsEOG(choice.ID) {
		q.endPlugged(FinishStop)
		return
	}
	t := Token{ID: choice.ID, Logprob: choice.Logprob, Top: q.alternatives(&in, v)}
	q.join(t)
}

// choosePlugged takes the token that is forced, or chooses one.
func (q *sequence) choosePlugged(in *sampling.Input, s *sampling.Scratch) (sampling.Choice, error) {
	if id, ok := q.plug.pipe.NextForced(); ok {
		return sampling.Force(in, id), nil
	}
	return q.chain.Choose(in, len(q.tokens), s)
}

// join adds a token to the text, as far as the plugins agree.
func (q *sequence) join(t Token) {
	g := q.plug
	q.chain.Accept(t.ID)
	q.tokens = append(q.tokens, t.ID)
	raw := q.flow.dec.Push(t.ID)
	g.pending = append(g.pending[:0], raw...)
	for _, sh := range g.shadows {
		sh.accept(t.ID, raw)
	}
	verdict, err := g.pipe.Accept(t.ID)
	g.pending = g.pending[:0]
	if err == nil && verdict.Rewind > 0 {
		q.flow.join(t, nil)
		q.rewind(verdict.Rewind)
		return
	}
	var text []byte
	var also pipeline.Verdict
	if err == nil {
		text, also, err = g.pipe.Text(raw, false)
	}
	if err != nil {
		q.err = userError(err)
		return
	}
	stopped := q.flow.join(t, text)
	switch {
	case also.Rewind > 0:
		q.rewind(also.Rewind)
	case stopped:
		q.reason = FinishStop
	case verdict.Stop != 0:
		q.stopped(verdict.Stop)
	case also.Stop != 0:
		q.stopped(also.Stop)
	case len(q.flow.tokens) >= q.max:
		q.endPlugged(FinishLength)
	default:
		if chunk, ok := q.flow.next(); ok {
			q.c.publish(chunk)
		}
	}
}

// rewind takes back the last n tokens, which no chunk has.
func (q *sequence) rewind(n int) {
	keep := len(q.tokens) - n
	for i := len(q.tokens) - 1; i >= keep; i-- {
		q.chain.Retract(q.tokens[i])
	}
	q.tokens = q.tokens[:keep]
	q.flow.rewind(n)
	for _, sh := range q.plug.shadows {
		sh.gone = "the text went back"
	}
	// What guesses was made for another text.
	q.ahead.lookup = nil
	if q.ahead.reader != nil {
		q.ahead.mode = SpeculateOff
	}
	if err := q.plug.pipe.Rewind(n); err != nil {
		q.err = userError(err)
	}
}

// stopped ends the text for the reason that a plugin gave.
func (q *sequence) stopped(r abi.StopReason) {
	switch r {
	case abi.StopLength:
		q.endPlugged(FinishLength)
	case abi.StopContentFilter:
		q.endPlugged(FinishFilter)
	case abi.StopError:
		q.err = Errorf(CodeRefused, "", "a plugin ended the text with an error")
	default:
		q.endPlugged(FinishStop)
	}
}

// endPlugged is end of a sequence with plugins: they see the end of the text before it is
// sent. No token can be taken back any more.
func (q *sequence) endPlugged(reason FinishReason) {
	text, verdict, err := q.plug.pipe.Text(q.flow.dec.Flush(), true)
	switch {
	case err != nil:
		q.err = userError(err)
		return
	case verdict.Stop == abi.StopContentFilter:
		reason = FinishFilter
	}
	if q.flow.close(text) {
		reason = FinishStop
	}
	q.reason = reason
}

// stopReason tells plugins how a sequence ended.
func stopReason(q *sequence) abi.StopReason {
	switch {
	case q.err != nil:
		return abi.StopError
	case q.reason == FinishLength:
		return abi.StopLength
	case q.reason == FinishFilter:
		return abi.StopContentFilter
	}
	return abi.StopStop
}
