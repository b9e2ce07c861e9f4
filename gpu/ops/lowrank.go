package ops

import (
	"errors"
	"fmt"
	"math"
)

// LowRank adds an adapter's low-rank update (LoRA) to what an operation over the
// adapted weight has written: for every row with s = scale·Factor other than 0,
// Out += s·(B·(A·in)), where scale is the row's Batch.Scales of the adapter. The other
// rows keep their bits.
//
// Over a stack of experts IDs names the matrices that were used, and In, Out are those
// of the ExpertMatMul. ByToken belongs to an Embed: A is then a table and its row of
// the token stands for A·in; rows without a token are left alone.
type LowRank struct {
	Adapter int     // column of Batch.Scales
	Factor  float32 // what the file says of its strength: alpha / rank
	ByToken bool
	A       *Weight // [experts, rank, in], or [vocab, rank] by token
	B       *Weight // [experts, out, rank]
	IDs     View    // [TopK] I32; width 0 for a plain matrix
	In      View    // not used by token
	Out     View    // [out], or [TopK·out]: read and written
}

// Name is "lowrank".
func (o *LowRank) Name() string { return "lowrank" }

// Reads lists the input, the ids of experts and the output, which is added to.
func (o *LowRank) Reads() []View {
	views := []View{o.Out}
	if !o.ByToken {
		views = append(views, o.In)
	}
	if o.IDs.Width > 0 {
		views = append(views, o.IDs)
	}
	return views
}

// Writes lists the output.
func (o *LowRank) Writes() []View { return []View{o.Out} }

func (o *LowRank) weights() (needed, optional []*Weight) { return list(o.A, o.B), nil }

// Rank is the width of the update's middle.
func (o *LowRank) Rank() int { return o.B.Cols }

// TopK is the number of matrices that each row uses.
func (o *LowRank) TopK() int { return max(o.IDs.Width, 1) }

func (o *LowRank) check(p *Plan) error {
	if o.Adapter < 0 || o.Adapter >= p.Adapters {
		return fmt.Errorf("adapter %d of %d", o.Adapter, p.Adapters)
	}
	if f := float64(o.Factor); math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("factor %v is not finite", o.Factor)
	}
	if o.ByToken {
		return o.checkByToken(p)
	}
	k := o.TopK()
	if o.In.Width != o.A.Cols && o.In.Width != o.A.Cols*k {
		return fmt.Errorf("input is %d wide, want %d or that for each of %d experts", o.In.Width, o.A.Cols, k)
	}
	errs := []error{
		width("B", o.B.Cols, o.A.Rows), width("output", o.Out.Width, o.B.Rows*k), sameRows(p, o.In, o.Out),
		elems(p, F32, o.In, o.Out), apart(o.Out, o.In),
	}
	if o.IDs.Width > 0 {
		if o.A.Experts != o.B.Experts {
			errs = append(errs, fmt.Errorf("factor A has %d experts, B %d", o.A.Experts, o.B.Experts))
		}
		errs = append(errs, sameRows(p, o.IDs, o.Out), elems(p, I32, o.IDs))
	}
	return errors.Join(errs...)
}

func (o *LowRank) checkByToken(p *Plan) error {
	if o.IDs.Width > 0 || o.A.Rows < p.TokenIDs() {
		return fmt.Errorf("table %q has %d rows for a vocabulary of %d, %d experts", o.A.Name, o.A.Rows, p.TokenIDs(), o.IDs.Width)
	}
	return errors.Join(width("B", o.B.Cols, o.A.Cols), width("output", o.Out.Width, o.B.Rows), elems(p, F32, o.Out), perRow(p, o.Out))
}

// LowRankWidth is the widest A·in of a row in floats, which a backend keeps between the
// two products; 0 without LowRank operations.
func (p *Plan) LowRankWidth() int {
	n := 0
	for _, op := range p.Ops {
		if o, ok := op.(*LowRank); ok {
			n = max(n, o.Rank()*o.TopK())
		}
	}
	return n
}

// checkScales reports scales that do not fit the plan's adapters and rows.
func (b *Batch) checkScales(p *Plan) error {
	if b.Scales == nil {
		return nil
	}
	if len(b.Scales) != len(b.Tokens)*p.Adapters {
		return fmt.Errorf("ops: batch: %d scales for %d rows and %d adapters", len(b.Scales), len(b.Tokens), p.Adapters)
	}
	for i, s := range b.Scales {
		if f := float64(s); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("ops: batch: row %d: scale of adapter %d is %v", i/p.Adapters, i%p.Adapters, s)
		}
	}
	return nil
}
