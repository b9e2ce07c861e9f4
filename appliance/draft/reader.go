package draft

import (
	"math"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/plugins/sampling"
)

const (
	modelKinds = 10       // kinds of guesses: by tenths of the smaller model's own probability
	meanGain   = 1.0 / 16 // weight of one guess in a reader's mean
	firstMean  = 0.7      // what is believed of a text before the first guess

	firstRest, longestRest = 4, 64 // tokens without a guess before one is tried again
)

// Reader is one sequence as the smaller model follows it.
type Reader struct {
	chain *sampling.Chain
	slot  int
	in    bool // slot is this reader's
	off   bool // guessing failed once, or the reader was closed

	// The slot holds fed tokens of the text and after them the guesses of tail.
	fed  int
	tail []int32

	guesses []Guess   // for the text from base on
	chances []float64 // the smaller model's own probability of each
	base    int

	mean float64 // share of guesses that came, lately
	rest int     // length of text up to which no guess is made
	last int     // length of the latest rest

	live bool // the reader has a slot and room for the guesses asked for
	want bool // a guess is wanted in this round
}

// NewReader makes a reader of one sequence that is sampled so. The smaller model
// draws with the same numbers at the same positions, so that it guesses a sampled text
// about as well as a greedy one; penalties and further stages are left out.
func (m *Model) NewReader(p sampling.Params) (*Reader, error) {
	p.Vocab = m.info.Vocab
	p.PresencePenalty, p.FrequencyPenalty, p.Stages, p.Plugins, p.Watcher, p.TopLogprobs = 0, 0, nil, nil, nil, 0
	chain, err := sampling.New(p)
	if err != nil {
		return nil, err
	}
	return &Reader{chain: chain, mean: firstMean}, nil
}

// Close gives the reader's slot back; it may be called twice.
func (m *Model) Close(r *Reader) {
	if r.in {
		r.in, r.off = false, true
		m.source.Release(r.slot)
	}
}

// Guesses returns what Model.Guess found for the reader, valid until its next call.
func (r *Reader) Guesses() []Guess { return r.guesses }

// fail ends guessing for a reader; its slot stays until Close.
func (r *Reader) fail() { r.off, r.guesses = true, r.guesses[:0] }

// begin learns from the guesses before, takes those back that did not come, and sees
// to a slot.
func (m *Model) begin(a *Ask) (err error) {
	r := a.Reader
	m.learn(r, a.Text)
	r.guesses, r.chances, r.want = r.guesses[:0], r.chances[:0], false
	r.live = !r.off && len(a.Text)+a.Limit <= m.info.Context
	switch {
	case !r.live:
		return nil
	case !r.in:
		r.slot, r.fed, r.in = m.source.Acquire(a.Text, 0)
		r.live = r.in
		return nil
	}
	in := r.fed + len(r.tail)
	for _, id := range r.tail {
		if r.fed >= len(a.Text) || a.Text[r.fed] != id {
			break
		}
		r.fed++
	}
	r.tail = r.tail[:0]
	if r.fed = min(r.fed, len(a.Text)-1); r.fed < in { // the last token runs again, for what follows it
		r.fed, err = m.source.Truncate(r.slot, r.fed)
	}
	return err
}

// learn compares the latest guesses with what came, whether they were run or not.
func (m *Model) learn(r *Reader, text []int32) {
	for i, g := range r.guesses {
		if r.base+i >= len(text) {
			break
		}
		came := text[r.base+i] == g.ID
		m.odds[tenth(r.chances[i])].saw(came)
		if !came {
			r.mean -= meanGain * r.mean
			break
		}
		r.mean += meanGain * (1 - r.mean)
	}
}

// ready tells whether a reader that has caught up should guess. One whose guesses are
// not worth it tries again after rests that grow.
func (m *Model) ready(r *Reader, length, sequences int, step *Price) bool {
	if length < r.rest {
		return false
	}
	if m.worth(r, sequences, step) {
		r.last = 0
		return true
	}
	if r.last = min(2*r.last, longestRest); r.last == 0 {
		r.last = firstRest
	}
	r.rest = length + r.last
	return true
}

// worth tells whether another guess promises more than it costs: its row in the next
// step, and its share of a round here.
func (m *Model) worth(r *Reader, sequences int, step *Price) bool {
	reach := r.mean
	for _, g := range r.guesses {
		reach *= g.Odds
	}
	alone := step.Of(sequences)
	cost := step.Of(sequences+1) - alone
	if m.price.Known() {
		cost += m.price.Of(sequences) / float64(sequences)
	}
	return reach*alone/float64(sequences) > cost
}

// take draws a guess from a head.
func (m *Model) take(r *Reader, h *engine.Head) {
	in := sampling.Input{Best: h.Best, Max: h.Max, LogSumExp: h.LogSumExp, IDs: h.IDs, Logits: h.Logits, Row: h.Row}
	choice, err := r.chain.Choose(&in, r.fed+len(r.tail), &m.scratch)
	if err != nil || m.ends(choice.ID) {
		r.want = false
		return
	}
	p := math.Exp(choice.Logprob)
	r.guesses = append(r.guesses, Guess{choice.ID, m.odds[tenth(p)].mean(p)})
	r.chances = append(r.chances, p)
}

// tenth sorts guesses by the smaller model's own probability.
func tenth(p float64) int { return min(max(int(p*modelKinds), 0), modelKinds-1) }

// Want says to the engine what a chain needs to be read back, of the target's rows and
// of the smaller model's alike.
func Want(n sampling.Needs) ops.Want {
	switch n.View {
	case sampling.Best:
		return ops.Want{Kind: ops.WantBest}
	case sampling.Top:
		return ops.Want{Kind: ops.WantTop, K: n.K, Stats: n.Stats}
	}
	return ops.Want{Kind: ops.WantRow}
}
