package appliance

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/plugins/abi"
	"ganglion/plugins/sampling"
)

// Sequences are the auxiliary sequences of one plugin in one request: the text of the
// request behind other prompts. They are numbered from 1.
type Sequences interface {
	// Open adds one, while the plugin sees the prompt of the request. An error says that
	// there is no slot for it, or no room for the text behind its prompt. An instance that
	// takes the place of one that failed is given the sequences of that one.
	Open(prompt []int32) (seq int, err error)
	// Row are the logits of the step, [vocabulary], while it is being decided; else nil.
	Row(seq int) []float32
	// Stats are the statistics of that row.
	Stats(seq int) (sampling.Stats, bool)
}

var (
	errNoAuxiliary  = errors.New("appliance: there is no slot for an auxiliary sequence")
	errMediaBeside  = errors.New("appliance: a request with media has no auxiliary sequences")
	errNewAuxiliary = errors.New("appliance: an auxiliary sequence is opened while the plugin sees the prompt")
)

// auxiliary is one auxiliary sequence. It is in step with its request: its last token is
// run in the batch of the request's last token, and taken back with it.
type auxiliary struct {
	prompt []int32
	slot   int
	fed    int         // tokens in the slot
	wanted bool        // a head of it is in the batch being run
	left   atomic.Bool // its plugin left the request
	gone   bool        // it has no slot any more, and no claim to one

	// Of the step that is being decided.
	row     []float32
	stats   sampling.Stats
	counted bool // stats are those of row
}

// total is how many tokens an auxiliary sequence of q has, those not run yet included.
func (a *auxiliary) total(q *sequence) int { return len(a.prompt) + len(q.tokens) - len(q.prompt) }

// token is the token at a place of an auxiliary sequence of q.
func (a *auxiliary) token(q *sequence, at int) int32 {
	if at < len(a.prompt) {
		return a.prompt[at]
	}
	return q.tokens[len(q.prompt)+at-len(a.prompt)]
}

// owned are the auxiliary sequences of one plugin. Its methods are called by the goroutine
// that the plugin's instance belongs to.
type owned struct {
	s    *scheduler
	q    *sequence
	name string // of the plugin
	list []*auxiliary
	next int // of list, for an instance that opens them again
}

var _ Sequences = (*owned)(nil)

// instance begins a new instance of the plugin. Until the text begins the prompt is shown
// to it in full, so what an instance before it opened is given back.
func (o *owned) instance() {
	o.next = 0
	if !o.q.plug.began {
		o.leave()
		o.s.dropLeft(o.q)
		o.list = nil
	}
}

// leave gives the sequences back where their plugin is gone.
func (o *owned) leave() {
	for _, a := range o.list {
		a.left.Store(true)
	}
}

// Open implements Sequences.
func (o *owned) Open(prompt []int32) (int, error) {
	q := o.q
	if q.plug.began {
		if o.next == len(o.list) || !slices.Equal(o.list[o.next].prompt, prompt) {
			return 0, errNewAuxiliary
		}
		o.next++
		return o.next, nil
	}
	if len(prompt) == 0 {
		return 0, Errorf(CodeEmptyPrompt, "prompt", "an auxiliary sequence has no prompt")
	}
	if _, fault := roomAfter(prompt, o.s.info.Context); fault != nil {
		return 0, o.refuse(fault)
	}
	if q.media != nil {
		return 0, o.refuse(errMediaBeside)
	}
	if !o.s.claim(q.plug) {
		return 0, o.refuse(errNoAuxiliary)
	}
	a := &auxiliary{prompt: prompt}
	o.list = append(o.list, a)
	q.plug.aux = append(q.plug.aux, a)
	return len(o.list), nil
}

// refuse notes that a sequence cannot be had: what follows is not the plugin's fault.
func (o *owned) refuse(err error) error {
	if o.q.plug.refused == nil {
		o.q.plug.refused = make(map[string]bool)
	}
	o.q.plug.refused[o.name] = true
	return err
}

// find returns a sequence whose logits of the present step are there, or nil.
func (o *owned) find(seq int) *auxiliary {
	if !o.q.plug.deciding || seq < 1 || seq > len(o.list) || len(o.list[seq-1].row) == 0 {
		return nil
	}
	return o.list[seq-1]
}

// Row implements Sequences.
func (o *owned) Row(seq int) []float32 {
	if a := o.find(seq); a != nil {
		return a.row
	}
	return nil
}

// Stats implements Sequences.
func (o *owned) Stats(seq int) (sampling.Stats, bool) {
	a := o.find(seq)
	if a == nil {
		return sampling.Stats{}, false
	}
	if !a.counted {
		a.stats, a.counted = o.q.plug.scratch.RowStats(a.row), true
	}
	return a.stats, true
}

// claim takes a slot for an auxiliary sequence, which the request has from then on. There
// is one if all requests that are here find slots beside it; so none of them waits for it,
// and a claim can always be kept.
func (s *scheduler) claim(g *plugged) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A batch must have room for the sequences of a request and one row of a prompt.
	if g.claims == abi.MaxAuxiliary || s.places+s.held+1 > s.info.Slots || g.claims+3 > s.info.MaxRows {
		return false
	}
	g.claims++
	s.held++
	return true
}

// auxiliaryRoom is how many tokens the contexts of auxiliary sequences hold after their
// prompts.
func (q *sequence) auxiliaryRoom(context int) int {
	room := context
	for _, a := range q.plug.aux {
		if !a.gone {
			room = min(room, context-len(a.prompt))
		}
	}
	return room
}

// width is how many rows a token of the sequence takes in a batch.
func (q *sequence) width() int {
	n := 1
	if q.plug != nil {
		for _, a := range q.plug.aux {
			if !a.gone {
				n++
			}
		}
	}
	return n
}

// missing is how many rows must be run before the sequence decodes: those of prompts, or
// where tokens were taken back from a slot that could not keep the rest, those since its
// latest mark. The last token of a prompt is one of them, except where it has to be run
// together with those of auxiliary sequences.
func (q *sequence) missing() (rows int) {
	if q.width() == 1 {
		if q.fed < max(len(q.prompt), len(q.tokens)-1) {
			return len(q.tokens) - q.fed
		}
		return 0
	}
	rows = len(q.tokens) - 1 - q.fed
	for _, a := range q.plug.aux {
		if !a.gone {
			rows += a.total(q) - 1 - a.fed
		}
	}
	return rows
}

// appendReading appends at most so many rows that auxiliary sequences miss, and returns
// how many are left for the request itself.
func (q *sequence) appendReading(rows []engine.Row, take int) ([]engine.Row, int) {
	for _, a := range q.plug.aux {
		if a.gone {
			continue
		}
		for n := min(take, a.total(q)-1-a.fed); n > 0; n-- {
			rows = append(rows, engine.Row{Slot: a.slot, Token: a.token(q, a.fed)})
			a.fed++
			take--
		}
	}
	return rows, take
}

// appendAuxiliary appends the rows of auxiliary sequences for the tokens that the request
// itself runs in this step. Only the last of them is one that plugins decide.
func (q *sequence) appendAuxiliary(rows []engine.Row) []engine.Row {
	g := q.plug
	wanted := g.pipe.Needs(len(q.ahead.run)).View != sampling.Best
	for _, a := range g.aux {
		if a.gone {
			continue
		}
		rows = append(rows, engine.Row{Slot: a.slot, Token: a.token(q, a.fed)})
		for _, id := range q.ahead.run {
			rows = append(rows, engine.Row{Slot: a.slot, Token: id})
		}
		a.fed += 1 + len(q.ahead.run)
		if a.wanted = wanted; wanted {
			last := &rows[len(rows)-1]
			last.Want, last.Read = true, ops.Want{Kind: ops.WantRow}
			q.heads++
		}
	}
	return rows
}

// handAuxiliary keeps what the heads of a step say of auxiliary sequences, and returns
// those of the request itself. A sequence without finite logits is given up.
func (s *scheduler) handAuxiliary(q *sequence, heads []engine.Head) []engine.Head {
	own := len(heads)
	for _, a := range q.plug.aux {
		if a.wanted {
			own--
		}
	}
	rest := heads[own:]
	for _, a := range q.plug.aux {
		a.row, a.counted = a.row[:0], false
		if !a.wanted {
			continue
		}
		h := &rest[0]
		rest, a.wanted = rest[1:], false
		if h.Err != nil {
			s.cfg.Logger.Warn("an auxiliary sequence was given up", "request_id", q.c.id, "slot", a.slot, "error", h.Err)
			s.drop(q, a, true)
			continue
		}
		a.row = append(a.row, h.Row...)
	}
	return heads[:own]
}

// acquire takes the slots of a sequence, all of them or none.
func (s *scheduler) acquire(q *sequence) (ok bool, err error) {
	if q.slot, q.cached, ok, err = s.acquireOne(q, q.prompt); !ok || err != nil {
		return ok, err
	}
	if err = s.leavePictures(q); err != nil {
		s.model.Release(q.slot)
		return false, err
	}
	if q.plug == nil {
		return true, nil
	}
	taken := append(make([]int, 0, 1+abi.MaxAuxiliary), q.slot)
	whole := false
	defer func() { // also where the model panics
		for i := range taken {
			if !whole {
				s.model.Release(taken[i])
			}
		}
	}()
	for _, a := range q.plug.aux {
		if a.gone {
			continue
		}
		if a.slot, a.fed, ok, err = s.acquireOne(q, a.prompt); !ok || err != nil {
			return ok, err
		}
		taken = append(taken, a.slot)
	}
	whole = true
	return true, nil
}

// acquireOne takes a slot for a prompt under the adapters of a sequence.
func (s *scheduler) acquireOne(q *sequence, prompt []int32) (slot, cached int, ok bool, err error) {
	slot, cached, ok = s.model.Acquire(prompt, engine.Salt(q.lora))
	if ok && (cached < 0 || cached >= len(prompt)) {
		err = fmt.Errorf("appliance: scheduler: %d of %d prompt tokens are said to be cached", cached, len(prompt))
	}
	if ok && err == nil && len(q.lora) > 0 {
		err = s.model.SetAdapters(slot, q.lora)
	}
	if err != nil {
		s.model.Release(slot)
	}
	return slot, cached, ok, err
}

// releaseSlots gives the slots of a sequence back.
func (s *scheduler) releaseSlots(q *sequence) {
	s.releaseSlot(q.slot)
	if q.plug == nil {
		return
	}
	for _, a := range q.plug.aux {
		if !a.gone {
			s.releaseSlot(a.slot)
			a.gone = true // its claim ends with the request
		}
	}
}

func (s *scheduler) releaseSlot(slot int) {
	if err := guard("release a slot", func() error { s.model.Release(slot); return nil }); err != nil {
		s.cfg.Logger.Error("slot was not released", "slot", slot, "error", err)
	}
}

// drop ends an auxiliary sequence of a request that goes on.
func (s *scheduler) drop(q *sequence, a *auxiliary, hasSlot bool) {
	if hasSlot {
		s.releaseSlot(a.slot)
	}
	a.gone = true
	s.mu.Lock()
	q.plug.claims--
	s.held--
	s.mu.Unlock()
}

// dropLeft ends the auxiliary sequences whose plugins left a request.
func (s *scheduler) dropLeft(q *sequence) {
	for _, a := range q.plug.aux {
		if !a.gone && a.left.Load() {
			s.drop(q, a, q.plug.began)
		}
	}
}

// settleAuxiliary brings the slots of auxiliary sequences to where the text is.
func (s *scheduler) settleAuxiliary(q *sequence) error {
	for _, a := range q.plug.aux {
		keep := a.total(q) - 1
		if a.gone || a.fed <= keep {
			continue
		}
		err := guard("take tokens of an auxiliary sequence back", func() (err error) {
			a.fed, err = s.model.Truncate(a.slot, keep)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
