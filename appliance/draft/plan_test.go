package draft

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func guesses(odds ...float64) (out []Guess) {
	for i, o := range odds {
		out = append(out, Guess{int32(i), o})
	}
	return out
}

// priced is a price in which each of some sizes took so many milliseconds.
func priced(ms map[int]float64) *Price {
	p := &Price{}
	for rows, took := range ms {
		p.Saw(rows, time.Duration(took*float64(time.Millisecond)))
	}
	return p
}

func TestPlan(t *testing.T) {
	sure, even := guesses(0.9, 0.9, 0.9, 0.9, 0.9, 0.9), guesses(0.5, 0.5, 0.5)
	cheap := map[int]float64{1: 10, 64: 16.3}       // 0.1 ms a row
	dear := map[int]float64{1: 10, 64: 10 + 63*9.5} // a row costs what a step does
	stairs := map[int]float64{1: 10, 2: 25, 7: 26}  // a second row is dear, more are not
	for _, c := range []struct {
		name string
		bids [][]Guess
		ms   map[int]float64
		room int
		want []int
	}{
		{"nothing to guess", [][]Guess{nil, nil}, cheap, 64, []int{0, 0}},
		{"cheap rows", [][]Guess{sure, even}, cheap, 64, []int{6, 3}},
		{"dear rows", [][]Guess{sure, even}, dear, 64, []int{0, 0}},
		{"little room goes to the best", [][]Guess{even, sure}, cheap, 4, []int{0, 4}},
		{"no room", [][]Guess{even, sure}, cheap, 0, []int{0, 0}},
		{"less than no room", [][]Guess{even, sure}, cheap, -3, []int{0, 0}},
		{"over a stair", [][]Guess{sure}, stairs, 64, []int{6}},
		{"not for one", [][]Guess{sure[:1]}, stairs, 64, []int{0}},
		{"nothing known", [][]Guess{sure}, nil, 64, []int{6}},
		{"poor odds", [][]Guess{guesses(0.05, 0.9, 0.9)}, nil, 64, []int{0}},
		{"a break in the middle", [][]Guess{guesses(0.9, 0.9, 0.01, 0.9)}, nil, 64, []int{2}},
	} {
		var bids []Bid
		for _, g := range c.bids {
			bids = append(bids, Bid{Guesses: g})
		}
		var p Plan
		p.Choose(bids, len(bids), 0, c.room, priced(c.ms))
		var got []int
		for _, b := range bids {
			got = append(got, b.Take)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPlanAgainstAll compares with every way to take guesses.
func TestPlanAgainstAll(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		price := priced(map[int]float64{1: 10, 3: 10 + 10*rng.Float64(), 9: 20 + 10*rng.Float64()})
		bids := make([]Bid, 2)
		for i := range bids {
			for range rng.IntN(4) {
				bids[i].Guesses = append(bids[i].Guesses, Guess{1, rng.Float64()})
			}
		}
		extra := 0.01 * rng.Float64()
		rate := func(take ...int) float64 {
			tokens, rows := 0.0, 0
			for i, n := range take {
				reach := 1.0
				for _, g := range bids[i].Guesses[:n] {
					reach *= g.Odds
					tokens += reach
				}
				rows += n
			}
			return (2 + tokens) / (price.Of(2+rows) + extra)
		}
		best := 0.0
		for a := range len(bids[0].Guesses) + 1 {
			for b := range len(bids[1].Guesses) + 1 {
				best = max(best, rate(a, b))
			}
		}
		var p Plan
		p.Choose(bids, 2, extra, 64, price)
		got := rate(bids[0].Take, bids[1].Take)
		if got < best-1e-12 && !(bids[0].Take+bids[1].Take == 0 && best <= minGain*rate(0, 0)+1e-12) {
			t.Fatalf("seed %d: %d and %d of %+v give %g, the best is %g", seed, bids[0].Take, bids[1].Take, bids, got, best)
		}
	}
}

func TestPrice(t *testing.T) {
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	var p Price
	if p.Known() {
		t.Error("a new price knows something")
	}
	near("nothing known", p.Of(9)/p.Of(1), 2)
	p.Saw(1, 0) // a clock that stands still
	p.Saw(0, time.Second)
	p.Saw(MaxRows+1, time.Second)
	if p.Known() {
		t.Error("what is no observation counts")
	}
	p.Saw(1, 8*time.Millisecond)
	near("beyond the only one", p.Of(9), 0.016)
	p.Saw(9, 20*time.Millisecond)
	near("between", p.Of(3), 0.011)
	near("beyond the last", p.Of(17), 0.020*3/2)
	near("more than any", p.Of(1000), p.Of(MaxRows))
	p.Saw(9, 60*time.Millisecond)
	near("a running mean", p.Of(9), 0.030)
	for range priceAge {
		p.Saw(1, 8*time.Millisecond)
	}
	near("forgotten", p.Of(9), 0.016)
	near("none", p.Of(0), p.Of(1))
}

func TestOdds(t *testing.T) {
	var o odds
	if got := o.mean(0.3); got != 0.3 {
		t.Errorf("%g before any trial, want what is believed", got)
	}
	for range 200 {
		o.saw(true)
	}
	if got := o.mean(0.1); got < 0.85 {
		t.Errorf("%g after 200 that came", got)
	}
	for range 40 { // what is old counts less
		o.saw(false)
	}
	if got := o.mean(0.5); got > 0.4 {
		t.Errorf("%g after 40 that did not", got)
	}
}
