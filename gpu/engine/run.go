package engine

import (
	"fmt"

	"ganglion/gpu/ops"
)

// maxOuts bounds the wanted rows of one submission: each has a row of logits, a
// mebibyte for a vocabulary of 262,144.
const maxOuts = 64

// Acquire takes a free slot for a prompt and tells how many of its tokens are in
// place, always fewer than len(prompt). salt separates sequences whose results differ
// for the same tokens, such as those of other adapters: tokens are reused under their
// own salt alone. ok is false when every slot is in use.
func (e *Engine) Acquire(prompt []int32, salt uint64) (slot, cached int, ok bool) {
	slot, cached, ok = e.cache.Acquire(prompt, salt)
	if ok {
		e.clearAdapters(slot)
	}
	return slot, cached, ok
}

// Release gives a slot back; its tokens stay for reuse as long as there is room.
func (e *Engine) Release(slot int) { e.cache.Release(slot) }

// Mark keeps a snapshot of the slot's recurrent state at its present length, for a
// later Truncate. The latest mark of a slot counts. Without recurrent state it does
// nothing, for every length can be gone back to.
func (e *Engine) Mark(slot int) error {
	err := e.cache.Mark(slot)
	if err == nil || e.cache.Len(slot) == 0 || !e.recoverable(err) { // a free slot has no tokens
		return err
	}
	if err := e.move(err, nil); err != nil {
		return err
	}
	return e.cache.Mark(slot)
}

// Truncate takes the slot's tokens from position n on back. kept is how many tokens
// stay; it is less than n when recurrent state had to be restored from an older
// snapshot or a sliding window no longer reaches back: the caller then runs the tokens
// from kept on again. Going back by as many tokens as a batch has rows is always
// possible without recurrent state, and to the latest mark with it.
func (e *Engine) Truncate(slot, n int) (kept int, err error) {
	var used bool
	e.undo, used = e.cache.Sequence(slot, e.undo.Tokens)
	kept, err = e.cache.Truncate(slot, n)
	if err == nil || !used || n < 0 || n > len(e.undo.Tokens) || !e.recoverable(err) {
		return kept, err
	}
	e.undo.Truncate(n)
	return e.truncateElsewhere(&e.undo, err)
}

// StopWith sets what ends the next run early: Run then gives ops.ErrStopped and the slots of
// the batch are reset.
func (e *Engine) StopWith(s *ops.Stop) { e.stop = s }

// Run appends the rows' tokens to their slots and computes them in one batch. It
// returns one head for each row that wants one, in row order, valid until the
// next Run. Rows of one slot must stand together. When the backend fails, the batch runs
// on the one that Config.Recover gives; where there is none, or the backend panics, the
// slots of the batch are reset, for their cells are in doubt. A head in error says that
// the numbers of its row are not finite; its slot takes no more tokens until Truncate
// has taken that row back. Other rows are not touched.
func (e *Engine) Run(rows []Row) ([]Head, error) {
	if e.lost != nil {
		return nil, e.lost
	}
	e.whole = false
	defer e.resetUnlessWhole()
	if err := e.fill(rows); err != nil {
		return nil, err
	}
	e.batch.Stop, e.stop = e.stop, nil
	err := e.runFilled()
	e.batch.Stop = nil
	for err != nil && e.recoverable(err) {
		e.whole = false
		if err = e.move(err, rows); err != nil {
			break
		}
		if err = e.fill(rows); err != nil {
			break
		}
		err = e.runFilled()
	}
	if err != nil {
		return nil, err
	}
	return e.result.Heads, nil
}

// runFilled runs the batch and enters it into the cache.
func (e *Engine) runFilled() error {
	if err := e.submit(); err != nil {
		return fmt.Errorf("engine: run of %d rows: %w", len(e.batch.Tokens), err)
	}
	e.whole = true
	if err := e.commit(); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

// commit enters what has run into the cache, up to the first bad head of a slot.
func (e *Engine) commit() error {
	for i, h := range e.result.Heads {
		if row := e.batch.Outs[i]; h.Err != nil {
			e.cache.Spoil(int(e.batch.Slot[row]), int(e.batch.Pos[row]))
		}
	}
	return e.cache.Commit(e.touched)
}

// submit runs the batch. A file that was truncated in the meantime is an error:
// its size is asked for first, because code outside Go would fault on a page that
// is gone, and faults in Go become errors in Guard.
func (e *Engine) submit() error {
	p, err := e.program(len(e.batch.Tokens), len(e.batch.Outs))
	if err != nil {
		return err
	}
	if err := e.checkFiles(); err != nil {
		return err
	}
	e.current = p
	return e.file.Guard(e.step)
}

// fill turns rows into a batch and enters their tokens into the slots.
func (e *Engine) fill(rows []Row) error {
	b := &e.batch
	b.Tokens, b.Pos, b.Slot, b.Outs, b.Want = b.Tokens[:0], b.Pos[:0], b.Slot[:0], b.Outs[:0], b.Want[:0]
	b.Scales = b.Scales[:0]
	e.touched = e.touched[:0]
	for i, r := range rows {
		if i == 0 || r.Slot != rows[i-1].Slot {
			e.touched = append(e.touched, r.Slot)
		}
		pos, err := e.cache.Append(r.Slot, r.Token)
		if err != nil {
			return fmt.Errorf("engine: row %d: %w", i, err)
		}
		b.Tokens = append(b.Tokens, r.Token)
		b.Pos = append(b.Pos, int32(pos))
		b.Slot = append(b.Slot, int32(r.Slot))
		b.Scales = append(b.Scales, e.slotScales(r.Slot)...)
		if r.Want {
			b.Outs = append(b.Outs, int32(i))
			b.Want = append(b.Want, r.Read)
		}
	}
	if len(b.Outs) > maxOuts {
		return fmt.Errorf("engine: %d wanted rows in one run, at most %d", len(b.Outs), maxOuts)
	}
	if err := e.fillMedia(rows); err != nil {
		return err
	}
	b.Pages = e.cache.Tables()
	return b.Check(e.plan, e.opts)
}

// resetUnlessWhole forgets the slots of a batch that did not run to its end.
func (e *Engine) resetUnlessWhole() {
	if e.whole {
		return
	}
	for _, s := range e.touched {
		e.cache.Reset(s)
	}
}

// program returns the smallest compiled bucket that holds the batch.
func (e *Engine) program(rows, outs int) (ops.Program, error) {
	s := ops.Shape{Rows: bucket(rows, e.opts.MaxRows), Outs: bucket(max(outs, 1), min(maxOuts, e.opts.MaxRows))}
	s.Outs = min(s.Outs, s.Rows)
	if p, ok := e.seat.programs[s]; ok {
		return p, nil
	}
	p, err := e.seat.runtime.Compile(s)
	if err != nil {
		return nil, err
	}
	e.seat.programs[s] = p
	return p, nil
}

// bucket rounds up in steps of eight times: 1, 8, 64, 512, at most limit.
func bucket(n, limit int) int {
	b := 1
	for b < n {
		b *= 8
	}
	return min(b, limit)
}
