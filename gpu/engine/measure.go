package engine

import (
	"errors"
	"time"

	"ganglion/gpu/ops"
)

// Speed is what Measure measures, in tokens per second: of a prompt, of decoding, and of
// what a sequence has in KV caches and states that leaves the device and comes back; Carry
// is 0 where that is not possible.
type Speed struct{ Prompt, Decode, Carry float64 }

// Measure runs a short prompt, decodes a few tokens and carries a page of the sequence,
// three times each: the first round compiles, and of the others the better counts, for what is
// measured is kept, and the machine may have been busy for a moment. A slot must be free.
func (e *Engine) Measure(prompt, decode int) (s Speed, err error) {
	prompt = max(min(prompt, e.opts.Context-decode-1, e.opts.MaxRows), 1)
	for round := range 3 {
		slot, _, ok := e.Acquire([]int32{-1, -1}, 0) // a beginning that nothing has
		if !ok {
			return s, errors.New("engine: measure: no slot is free")
		}
		one, err := e.measure(slot, int32(round), prompt, decode)
		e.Release(slot)
		if err != nil {
			return Speed{}, err
		}
		if round > 0 {
			s = Speed{max(s.Prompt, one.Prompt), max(s.Decode, one.Decode), max(s.Carry, one.Carry)}
		}
	}
	return s, nil
}

func (e *Engine) measure(slot int, round int32, prompt, decode int) (s Speed, err error) {
	rows := make([]Row, prompt)
	for i := range rows {
		rows[i] = Row{Slot: slot, Token: (round*7919 + int32(i)*977 + 13) % int32(e.plan.Vocab)}
	}
	last := &rows[prompt-1]
	last.Want, last.Read = true, ops.Want{Kind: ops.WantBest}
	from := time.Now()
	heads, err := e.Run(rows)
	if err != nil {
		return s, err
	}
	s.Prompt = float64(prompt) / time.Since(from).Seconds()
	from = time.Now()
	one := []Row{{Slot: slot, Want: true, Read: last.Read}}
	for range decode {
		one[0].Token = heads[0].Best
		if heads, err = e.Run(one); err != nil {
			return s, err
		}
	}
	s.Decode = float64(decode) / time.Since(from).Seconds()
	s.Carry, err = e.measureCarry(slot, prompt)
	return s, err
}

// measureCarry reads a page of each group and the slot's state, and writes them again.
func (e *Engine) measureCarry(slot, prompt int) (speed float64, err error) {
	c, ok := e.seat.runtime.(ops.Carrier)
	if !ok {
		return 0, nil
	}
	paging := ops.NewPaging(e.plan, e.opts)
	from := time.Now()
	for g := range paging.Groups {
		page := int(paging.Table(e.cache.Tables(), g, slot)[prompt/ops.PageSize])
		if page < 0 {
			continue
		}
		data, err := c.ReadPage(g, page, nil)
		if errors.Is(err, ops.ErrUnsupported) {
			return 0, nil
		}
		if err == nil {
			err = c.WritePage(g, page, data)
		}
		if err != nil {
			return 0, err
		}
	}
	took := time.Since(from).Seconds()
	from = time.Now()
	if len(e.plan.States) > 0 { // once for a whole prompt
		state, err := e.seat.runtime.SaveState(slot, nil)
		if err == nil {
			err = e.seat.runtime.LoadState(slot, state)
		}
		if err != nil {
			return 0, err
		}
		took += time.Since(from).Seconds() * ops.PageSize / float64(max(prompt, ops.PageSize))
	}
	return ops.PageSize / max(took, 1e-9), nil
}
