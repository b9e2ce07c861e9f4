package engine

import (
	"errors"
	"time"

	"ganglion/gpu/ops"
)

// Speed is what Measure measures, in tokens per second.
type Speed struct{ Prompt, Decode float64 }

// Measure runs a short prompt and decodes a few tokens, twice each, for the first round
// compiles; it tells the second round's speed. A slot must be free.
func (e *Engine) Measure(prompt, decode int) (s Speed, err error) {
	prompt = max(min(prompt, e.opts.Context-decode-1, e.opts.MaxRows), 1)
	for round := range 2 {
		slot, _, ok := e.Acquire([]int32{-1, -1}, 0) // a beginning that nothing has
		if !ok {
			return s, errors.New("engine: measure: no slot is free")
		}
		s, err = e.measure(slot, int32(round), prompt, decode)
		e.Release(slot)
		if err != nil {
			return s, err
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
	return s, nil
}
