package ref

import (
	"fmt"

	"ganglion/gpu/ops"
)

// embed reads one table row per row of the batch and scales it.
func (p *Program) embed(o *ops.Embed) error {
	for i := range p.count(o.Out) {
		out := p.row(o.Out, i)
		index := int(p.batch.Tokens[i])
		switch {
		case o.ByPosition:
			index = int(p.batch.Pos[i])
		case index < 0 && o.Out.Width == p.plan.Embed:
			copy(out, p.batch.Embeds[i*p.plan.EmbedWidth():])
			continue
		case index < 0:
			index = 0 // the padding token, where Batch.Embeds has another width
		}
		if index >= o.Table.Rows {
			return fmt.Errorf("row %d: index %d outside table %q of %d rows", i, index, o.Table.Name, o.Table.Rows)
		}
		p.rt.widenRow(o.Table, index, out)
		if o.Scale != 1 {
			for c := range out {
				out[c] *= o.Scale
			}
		}
	}
	return nil
}

// deepstack adds a slice of the embeddings to the rows that have some.
func (p *Program) deepstack(o *ops.Deepstack) {
	for i := range p.count(o.Out) {
		x, y, row := p.row(o.In, i), p.row(o.Out, i), p.batchRow(o.Out, i)
		copy(y, x)
		if p.batch.Tokens[row] >= 0 {
			continue
		}
		for c, v := range p.batch.Embeds[row*p.plan.EmbedWidth()+o.Slice*p.plan.Embed:][:len(y)] {
			y[c] += v
		}
	}
}

// pickRows copies the output rows: out[i] = in[Outs[i]].
func (p *Program) pickRows(o *ops.Rows) {
	for i, r := range p.batch.Outs {
		copy(p.row(o.Out, i), p.row(o.In, int(r)))
	}
}
