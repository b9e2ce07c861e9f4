package engine

import (
	"fmt"
	"slices"

	"ganglion/gpu/ops"
)

// Rebuild sets what gives a row again when its sequence has to run again elsewhere: that of
// a token at a position of a busy slot. It is called inside Run and Truncate. Without it,
// or where there are no pictures and no sound, a row is its token.
func (e *Engine) Rebuild(row func(slot, pos int, token int32) Row) { e.rebuild = row }

// media are the buffers of what rows of pictures and sound have besides their tokens.
type media struct {
	embeds []float32  // [rows, Plan.EmbedWidth]
	rotary []int32    // [rows, Axes]
	spans  []ops.Span // [rows, Plan.Spans]
}

// fillMedia gives the batch what rows have besides their tokens, and nothing where none
// has.
func (e *Engine) fillMedia(rows []Row) error {
	b, m := &e.batch, &e.media
	b.Embeds, b.Rotary, b.Spans = nil, nil, nil
	width := e.plan.EmbedWidth()
	var embeds, rotary, spans bool
	for i, r := range rows {
		if (r.Token < 0) != (r.Embed != nil) || r.Embed != nil && len(r.Embed) != width {
			return fmt.Errorf("engine: row %d: token %d with a row of %d, the model takes rows of %d below token 0", i, r.Token, len(r.Embed), width)
		}
		embeds, rotary, spans = embeds || r.Embed != nil, rotary || r.Turned, spans || r.Until > 0
	}
	if embeds {
		m.embeds = slices.Grow(m.embeds[:0], len(rows)*width)[:len(rows)*width]
		b.Embeds = m.embeds
		for i, r := range rows {
			if r.Embed != nil {
				copy(b.Embeds[i*width:], r.Embed)
				b.Tokens[i] = -1
			}
		}
	}
	if rotary {
		m.rotary = m.rotary[:0]
		for i, r := range rows {
			if !r.Turned {
				r.Rotary = [ops.Axes]int32{b.Pos[i], b.Pos[i], b.Pos[i]}
			}
			m.rotary = append(m.rotary, r.Rotary[:]...)
		}
		b.Rotary = m.rotary
	}
	if spans && e.plan.Spans > 0 {
		m.spans = m.spans[:0]
		for _, r := range rows {
			for range e.plan.Spans {
				m.spans = append(m.spans, ops.Span{Until: int32(r.Until)})
			}
		}
		b.Spans = m.spans
	}
	return nil
}

// again appends the rows of a sequence from position n to end, or less where the end is
// inside of a picture that is seen as a whole.
func (e *Engine) again(rows []Row, slot, n int, tokens []int32) []Row {
	for i, id := range tokens {
		r := Row{Slot: slot, Token: id}
		if e.rebuild != nil {
			r = e.rebuild(slot, n+i, id)
		}
		rows = append(rows, r)
	}
	end := n + len(tokens)
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.Until > end }); i > 0 {
		rows = rows[:i]
	}
	return rows
}
