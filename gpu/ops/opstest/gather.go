package opstest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// gatherShape is one use of ops.Gather: rows of a picture's patches become rows of
// tokens, or rows of the same set in another order.
type gatherShape struct {
	name        string
	unit, units int // columns of a unit, units of an input row
	out, terms  int // units of an output row, terms of each
	mean        bool
	perOut      bool
	rows, outs  int
}

func gatherChecks() []check {
	var checks []check
	for _, s := range []gatherShape{
		{name: "pool", unit: 40, units: 1, out: 1, terms: 4, mean: true, perOut: true, rows: 36, outs: 9},
		{name: "pool-9", unit: 67, units: 1, out: 1, terms: 9, mean: true, perOut: true, rows: 90, outs: 10},
		{name: "sum", unit: 5, units: 3, out: 2, terms: 3, rows: 20},
		{name: "merge", unit: 64, units: 1, out: 4, terms: 1, perOut: true, rows: 48, outs: 12},
		{name: "order", unit: 33, units: 1, out: 1, terms: 1, rows: 30},
		{name: "neighbour", unit: 8, units: 2, out: 1, terms: 1, rows: 75},
		{name: "window", unit: 4, units: 16, out: 72, terms: 1, rows: 19},
		{name: "one", unit: 1, units: 5, out: 3, terms: 1, rows: 1},
		{name: "wide", unit: 1536, units: 1, out: 4, terms: 1, perOut: true, rows: 8, outs: 2},
	} {
		checks = append(checks, check{name: "gather/" + s.name, run: s.check})
	}
	return checks
}

// plan gathers from the middle of a row into the middle of another one, whose other
// columns hold copies of the input's first.
func (s gatherShape) plan(guard int) *ops.Plan {
	rows := ops.PerRow
	if s.perOut {
		rows = ops.PerOut
	}
	return Plan("gather/"+s.name, 2*guard+s.unit*s.units, func(b *ops.Builder, row ops.View) ops.View {
		list := b.List(ops.List{Name: "list", Rows: rows, Per: s.out * s.terms, Units: s.units})
		b.PerOut(s.perOut)
		out := b.Buffer("out", 2*guard+s.unit*s.out)
		for _, at := range []int{0, guard + s.unit*s.out} {
			switch {
			case guard == 0:
			case s.perOut:
				b.Add(&ops.Rows{In: row.Cols(0, guard), Out: out.Cols(at, guard)})
			default:
				b.Add(&ops.Scale{Factor: 1, In: row.Cols(0, guard), Out: out.Cols(at, guard)})
			}
		}
		b.Add(&ops.Gather{List: list, Unit: s.unit, Terms: s.terms, Mean: s.mean,
			In: row.Cols(guard, s.unit*s.units), Out: out.Cols(guard, s.unit*s.out)})
		return out
	})
}

// batch draws rows, and units from all of them, some of them none.
func (s gatherShape) batch(r *rand.Rand, guard int) *ops.Batch {
	var b ops.Batch
	for pos := range s.rows {
		appendRow(&b, -1, pos, 0)
		b.Embeds = append(b.Embeds, vector(r, 2*guard+s.unit*s.units, nil)...)
	}
	n := s.rows
	if s.perOut {
		n = s.outs
		b.Outs, b.Want = b.Outs[:n], b.Want[:n]
	}
	list := make([]int32, n*s.out*s.terms)
	for i := range list {
		list[i] = int32(r.IntN(s.rows*s.units+2)) - 1
		if int(list[i]) == s.rows*s.units { // the first and the last unit are among them
			list[i]--
		}
	}
	list[len(list)-1] = 0
	b.Lists = [][]int32{list}
	return &b
}

// check compares with the definition, and exact mode with ref.
func (s gatherShape) check(b ops.Backend) error {
	var errs []error
	for _, guard := range []int{0, 3} {
		batch := s.batch(random(fmt.Sprint(s.name, guard)), guard)
		for i, mode := range modes(b) {
			o := ops.Options{Slots: 1, Context: s.rows, MaxRows: s.rows + 3, Threads: 1 + i%2, Numerics: mode}
			got, err := once(b, s.plan(guard), o, batch)
			if err != nil {
				return fmt.Errorf("%v: %w", mode, err)
			}
			errs = append(errs, s.compare(got, batch, guard, mode))
			want, err := once(ref.New(), s.plan(guard), o, batch)
			if err != nil {
				return fmt.Errorf("ref: %w", err)
			}
			if mode == ops.Exact {
				errs = append(errs, sameBits(outputs{got}, outputs{want}))
			}
		}
	}
	return errors.Join(errs...)
}

func (s gatherShape) compare(got [][]float32, batch *ops.Batch, guard int, mode ops.Numerics) error {
	width := 2*guard + s.unit*s.units
	tol := elementwiseTolerance()
	tol.exact *= float64(s.terms)
	var worst mismatch
	for r, row := range got {
		for c, y := range row {
			col := c - guard
			if col < 0 || col >= s.unit*s.out {
				if col > 0 {
					col -= s.unit * s.out
				} else {
					col += guard
				}
				if want := batch.Embeds[r*width+col]; math.Float32bits(y) != math.Float32bits(want) {
					return fmt.Errorf("row %d: column %d beside the output is %v, want %v", r, c, y, want)
				}
				continue
			}
			at := (r*s.out + col/s.unit) * s.terms
			var want, mag float64
			for _, u := range batch.Lists[0][at : at+s.terms] {
				if u >= 0 {
					x := float64(batch.Embeds[int(u)/s.units*width+guard+int(u)%s.units*s.unit+col%s.unit])
					want, mag = want+x, mag+math.Abs(x)
				}
			}
			if s.mean {
				want, mag = want/float64(s.terms), mag/float64(s.terms)
			}
			worst.add(0, r, c, float64(y), want, tol.of(mode)*mag)
		}
	}
	return worst.err()
}
