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
		g.deciding = i == len(heads)-1 // the tokens before are forced
		g.watched.head = i
		q.advancePlugged(&heads[i], v, now, s)
		g.deciding = false
		used++
		if q.over() || len(q.tokens) != before+1 {
			break
		}
	}
	a.run, a.forced = a.run[:0], 0
	g.next, g.unsettled = append(g.next[:0], g.pipe.Forced()...), g.pipe.MayRefuse()
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
	in := inputOf(h)
	choice, err := q.choosePlugged(&in, s)
	if err != nil {
		q.err = userError(err)
		return
	}
	if len(g.shadows) > 0 {
		g.watched.note(choice.ID, len(q.tokens), len(q.flow.text))
	}
	if v.IsEOG(choice.ID) {
		q.endPlugged(FinishStop)
		return
	}
	t := Token{ID: choice.ID, Logprob: choice.Logprob, Top: q.alternatives(&in, v)}
	q.join(t, v)
}

// choosePlugged takes the token that is forced, or chooses one.
func (q *sequence) choosePlugged(in *sampling.Input, s *sampling.Scratch) (sampling.Choice, error) {
	if id, ok := q.plug.pipe.NextForced(); ok {
		return q.chain.Force(in, id, len(q.tokens), s), nil
	}
	return q.chain.Choose(in, len(q.tokens), s)
}

// join adds a token to the text, as far as the plugins agree.
func (q *sequence) join(t Token, v Vocabulary) {
	g := q.plug
	q.chain.Accept(t.ID)
	q.tokens = append(q.tokens, t.ID)
	raw := q.flow.dec.Push(t.ID)
	g.pending = append(g.pending[:0], raw...)
	if len(g.shadows) > 0 {
		g.watched.joined(raw)
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
	t.Changes = changesOf(g.pipe.Changes(), v)
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

// changesOf makes the changes of a token of a pipeline's ones.
func changesOf(list []pipeline.Change, v Vocabulary) (out []TokenChange) {
	for _, c := range list {
		t := TokenChange{Plugin: c.Plugin, Stage: c.Stage, Kind: string(c.Kind), Left: c.Left}
		if c.From != pipeline.NoToken {
			t.From = &Alternative{ID: c.From, Text: render(v, c.From)}
		}
		if c.Temperature >= 0 {
			t.Temperature = &c.Temperature
		}
		out = append(out, t)
	}
	return out
}

// rewind takes back the last n tokens, which no chunk has.
func (q *sequence) rewind(n int) {
	keep := len(q.tokens) - n
	for i := len(q.tokens) - 1; i >= keep; i-- {
		q.chain.Retract(q.tokens[i])
	}
	q.tokens = q.tokens[:keep]
	q.flow.rewind(n)
	q.plug.watched.back = true
	// What guesses was made for another text.
	q.ahead.lookup = nil
	if q.ahead.reader != nil {
		q.ahead.mode = SpeculateOff
	}
	if err := q.plug.pipe.Rewind(n); err != nil {
		q.err = userError(err)
		return
	}
	if r := q.plug.pipe.Stopped(); r != 0 {
		q.stopped(r)
	}
}

// inputOf is a head as a chain sees it.
func inputOf(h *engine.Head) sampling.Input {
	return sampling.Input{Best: h.Best, Max: h.Max, LogSumExp: h.LogSumExp, IDs: h.IDs, Logits: h.Logits, Row: h.Row, Stats: h.Stats}
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
