package ops

import (
	"errors"
	"fmt"
)

// Gather puts pieces of other rows together: In and Out are cut into units of Unit
// columns, and every unit of Out is the sum of Terms units of In, or their mean, from
// whichever rows a list of the batch names. With one term the bits are copied. It is what
// the towers of pictures and sound do between rows: pooling, merging neighbours, pixel
// shuffle, the windows of a convolution, another order.
type Gather struct {
	List    int // index into Plan.Lists and Batch.Lists
	Unit    int // columns that are taken together
	Terms   int // units that are added for one of Out, at least 1
	Mean    bool
	In, Out View // In is per row
}

// List describes one list of a batch's Lists: for every row of a row set Per numbers of
// units of the rows of a buffer, which are counted through all rows, Units in each; −1
// stands for a unit of zeros.
type List struct {
	Name  string
	Rows  RowSet
	Per   int
	Units int
}

// Name is the operation's kernel name.
func (o *Gather) Name() string { return "gather" }

// Reads lists the input.
func (o *Gather) Reads() []View { return []View{o.In} }

// Writes lists the output.
func (o *Gather) Writes() []View { return []View{o.Out} }

func (o *Gather) weights() (needed, optional []*Weight) { return nil, nil }

func (o *Gather) check(p *Plan) error {
	if o.List < 0 || o.List >= len(p.Lists) {
		return fmt.Errorf("list %d does not exist", o.List)
	}
	l := p.Lists[o.List]
	if o.Unit <= 0 || o.Terms <= 0 || o.Out.Width%o.Unit != 0 || o.In.Width%o.Unit != 0 {
		return fmt.Errorf("%d units of %d columns of %d for %d", o.Terms, o.Unit, o.In.Width, o.Out.Width)
	}
	if units, per := o.In.Width/o.Unit, o.Out.Width/o.Unit*o.Terms; units != l.Units || per != l.Per {
		return fmt.Errorf("%d of %d units of a row, list %q is of %d of %d", per, units, l.Name, l.Per, l.Units)
	}
	if p.Buffers[o.Out.Buf].Rows != l.Rows {
		return fmt.Errorf("list %q is for another row set than buffer %q", l.Name, p.Buffers[o.Out.Buf].Name)
	}
	return errors.Join(perRow(p, o.In), elems(p, F32, o.In, o.Out), apart(o.Out, o.In))
}

// check reports a list that no operation can use.
func (l List) check() error {
	if l.Rows > PerOut || l.Per <= 0 || l.Units <= 0 || l.Per > maxListed || l.Units > maxListed {
		return fmt.Errorf("%d of %d units for rows of set %d", l.Per, l.Units, l.Rows)
	}
	return nil
}

// maxListed bounds the numbers of a list, so that products of them fit a word.
const maxListed = 1 << 20

// checkLists reports lists that name units which the batch does not have.
func (b *Batch) checkLists(p *Plan) error {
	if len(b.Lists) != len(p.Lists) {
		return fmt.Errorf("ops: batch: %d lists, the plan has %d", len(b.Lists), len(p.Lists))
	}
	for i, l := range p.Lists {
		n := len(b.Tokens)
		if l.Rows == PerOut {
			n = len(b.Outs)
		}
		if len(b.Lists[i]) != n*l.Per {
			return fmt.Errorf("ops: batch: list %q has %d entries, want %d for each of %d rows", l.Name, len(b.Lists[i]), l.Per, n)
		}
		for at, unit := range b.Lists[i] {
			if unit < -1 || int(unit) >= len(b.Tokens)*l.Units {
				return fmt.Errorf("ops: batch: list %q: entry %d is %d of %d units", l.Name, at, unit, len(b.Tokens)*l.Units)
			}
		}
	}
	return nil
}
