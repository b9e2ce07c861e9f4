package sampling

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"ganglion/plugins/rowstats"
)

// oracle is the chain in the plainest float64: it sorts, and keeps probabilities.
type oracle struct {
	ids  []int32
	prob []float64 // by rank, zero where filtered
	edge float64   // how near the closest decision was to going the other way
}

func newOracle(p *Params, row []float32, times map[int32]int) *oracle {
	type cand struct {
		id int32
		l  float32
	}
	edited := append([]float32(nil), row...)
	for _, id := range p.Suppressed {
		edited[id] = float32(math.Inf(-1))
	}
	for _, b := range p.Bias {
		edited[b.ID] += b.Value
	}
	for id, n := range times {
		edited[id] -= float32(p.PresencePenalty + p.FrequencyPenalty*float64(n))
	}
	var cs []cand
	for id, l := range edited {
		if !math.IsInf(float64(l), -1) && l == l {
			cs = append(cs, cand{int32(id), l})
		}
	}
	sort.Slice(cs, func(i, j int) bool {
		return cs[i].l > cs[j].l || (cs[i].l == cs[j].l && cs[i].id < cs[j].id)
	})
	o := &oracle{edge: math.Inf(1)}
	if p.Temperature == 0 || p.TopP == 0 {
		cs = cs[:1]
	}
	if p.TopK > 0 && p.TopK < len(cs) {
		cs = cs[:p.TopK]
	}
	t := max(p.Temperature, minTemperature)
	var w []float64
	sum := 0.0
	for _, c := range cs {
		o.ids = append(o.ids, c.id)
		w = append(w, math.Exp((float64(c.l)-float64(cs[0].l))/t))
		sum += w[len(w)-1]
	}
	n := len(w)
	if p.TopP > 0 && p.TopP < 1 {
		acc := 0.0
		for i := range w {
			acc += w[i]
			o.edge = min(o.edge, math.Abs(acc/sum-p.TopP))
			if acc >= p.TopP*sum {
				n = i + 1
				break
			}
		}
	}
	if p.MinP > 0 {
		for i := range w {
			o.edge = min(o.edge, math.Abs(w[i]/p.MinP-1))
			if w[i] < p.MinP {
				n = min(n, i)
				break
			}
		}
	}
	sum = 0
	for _, v := range w[:n] {
		sum += v
	}
	for i := range w {
		if i < n {
			o.prob = append(o.prob, w[i]/sum)
		} else {
			o.prob = append(o.prob, 0)
		}
	}
	return o
}

// inputOf makes the input that a model gives for a row and a need.
func inputOf(row []float32, n Needs) *Input {
	in := &Input{Max: float32(math.Inf(-1))}
	sum := 0.0
	for id, l := range row {
		if l > in.Max {
			in.Best, in.Max = int32(id), l
		}
	}
	for _, l := range row {
		if l == l {
			sum += math.Exp(float64(l) - float64(in.Max))
		}
	}
	in.LogSumExp = float32(math.Log(sum) + float64(in.Max))
	switch n.View {
	case Row:
		in.Row = row
	case Top:
		for _, c := range AppendTop(nil, &Input{Row: row}, n.K) {
			in.IDs, in.Logits = append(in.IDs, c.ID), append(in.Logits, c.Logit)
		}
		if n.Stats {
			in.Stats = rowstats.Of(row)
		}
	}
	return in
}

// kept returns the distribution that a chain draws from, as probabilities by id.
func kept(t interface{ Fatalf(string, ...any) }, c *Chain, in *Input) map[int32]float64 {
	s := new(Scratch)
	d := s.load(in)
	for _, e := range c.edits {
		e.Apply(d)
	}
	for _, f := range c.filters {
		f.Apply(d)
	}
	h := d.histogram()
	out := map[int32]float64{}
	total := h.total()
	for b := range h.mass[:h.last+1] {
		if h.mass[b] == 0 {
			continue
		}
		sum := 0.0
		m := d.members(b)
		for _, c := range m {
			sum += d.exact(c.Logit)
		}
		for _, c := range m {
			out[c.ID] = d.exact(c.Logit) / sum * h.mass[b] / total
		}
	}
	return out
}

// genRow draws rows of the kinds that are hard: flat, peaked, with ties, with
// −Inf, far from zero.
func genRow(t *rapid.T) []float32 {
	n := rapid.IntRange(1, 400).Draw(t, "vocab")
	spread := rapid.SampledFrom([]float64{0, 1e-3, 1, 3, 30, 500}).Draw(t, "spread")
	shift := rapid.SampledFrom([]float64{0, 0, 12.5, -300, 1e4}).Draw(t, "shift")
	step := rapid.SampledFrom([]float64{0, 0.25, 2}).Draw(t, "grid")
	holes := rapid.IntRange(0, 3).Draw(t, "holes")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	row := make([]float32, n)
	for i := range row {
		v := r.NormFloat64() * spread
		if step > 0 {
			v = math.Round(v/step) * step
		}
		row[i] = float32(v + shift)
		if holes > 1 && i > 0 && r.IntN(holes) == 0 {
			row[i] = float32(math.Inf(-1))
		}
	}
	return row
}

func genParams(t *rapid.T, vocab int) Params {
	f := func(name string, vs ...float64) float64 { return rapid.SampledFrom(vs).Draw(t, name) }
	p := Params{
		Vocab:            vocab,
		Temperature:      f("temperature", 0, 1e-9, 0.3, 0.7, 1, 1, 1.5, 20),
		TopK:             int(f("top_k", 0, 0, 1, 2, 7, 40, 399)),
		TopP:             f("top_p", 0, 0.01, 0.5, 0.9, 0.999, 1, 1),
		MinP:             f("min_p", 0, 0, 0.01, 0.2, 1),
		PresencePenalty:  f("presence", 0, 0, 2, -2),
		FrequencyPenalty: f("frequency", 0, 0, 1, -0.5),
		Seed:             int64(rapid.Uint64().Draw(t, "seed")),
	}
	for range rapid.IntRange(0, 3).Draw(t, "biases") {
		p.Bias = append(p.Bias, Bias{int32(rapid.IntRange(0, vocab-1).Draw(t, "id")), float32(f("bias", -100, -1, 3))})
	}
	if vocab > 1 && rapid.Bool().Draw(t, "suppress") {
		p.Suppressed = []int32{int32(rapid.IntRange(1, vocab-1).Draw(t, "suppressed"))}
	}
	return p
}

// TestChainAgainstOracle compares the distribution that is drawn from with the
// plain one, candidate by candidate.
func TestChainAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := genRow(t)
		p := genParams(t, len(row))
		c, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		times := map[int32]int{}
		if !c.penalty.off() {
			for range rapid.IntRange(0, 5).Draw(t, "generated") {
				id := int32(rapid.IntRange(0, len(row)-1).Draw(t, "token"))
				c.Accept(id)
				times[id]++
			}
		}
		want := newOracle(&p, row, times)
		in := inputOf(row, c.Needs())
		got, err := c.Choose(in, 5, new(Scratch))
		if len(want.ids) == 0 {
			if err == nil {
				t.Fatalf("chose %d, want an error: every token is banned", got.ID)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.greedy() {
			if got.ID != want.ids[0] {
				t.Fatalf("greedy chose %d, want %d", got.ID, want.ids[0])
			}
			return
		}
		if want.edge < 1e-4 {
			return // a cut-off that rounding may decide either way
		}
		dist := kept(t, c, in)
		for i, id := range want.ids {
			g, w := dist[id], want.prob[i]
			if math.Abs(g-w) > 2e-5*w+1e-12 {
				t.Fatalf("token %d, rank %d: probability %g, want %g", id, i, g, w)
			}
			delete(dist, id)
		}
		if len(dist) != 0 {
			t.Fatalf("%d tokens stay that should not", len(dist))
		}
	})
}

// TestViewsAgree holds that the best K is enough where the chain says so: the same
// token comes out of the whole row.
func TestViewsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := genRow(t)
		p := genParams(t, len(row))
		c, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 5).Draw(t, "generated") {
			c.Accept(int32(rapid.IntRange(0, len(row)-1).Draw(t, "token")))
		}
		pos := rapid.IntRange(0, 1<<20).Draw(t, "position")
		few, err1 := c.Choose(inputOf(row, c.Needs()), pos, new(Scratch))
		all, err2 := c.Choose(inputOf(row, Needs{View: Row}), pos, new(Scratch))
		if few != all || (err1 == nil) != (err2 == nil) {
			t.Fatalf("view %+v gives %+v (%v), the row %+v (%v)", c.Needs(), few, err1, all, err2)
		}
	})
}

func draws(t testing.TB, p Params, row []float32, n int) []int {
	t.Helper()
	p.Vocab = len(row)
	count := make([]int, len(row))
	s := new(Scratch)
	var in *Input
	for seed := range n {
		p.Seed = int64(seed)
		c, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		if in == nil {
			in = inputOf(row, c.Needs())
		}
		g, err := c.Choose(in, 3, s)
		if err != nil {
			t.Fatal(err)
		}
		count[g.ID]++
	}
	return count
}

// TestDrawChiSquare compares 8,000 draws over seeds with the oracle's
// distribution. The bound is the 0.9999 quantile of chi-square by Wilson and
// Hilferty's approximation; the seeds are fixed, so the test cannot flicker.
func TestDrawChiSquare(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	row := make([]float32, 60)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 1.5)
	}
	for name, p := range map[string]Params{
		"plain":          {Temperature: 1, TopP: 1},
		"temperature":    {Temperature: 0.6, TopP: 1},
		"top_k":          {Temperature: 1, TopP: 1, TopK: 10},
		"top_p":          {Temperature: 1, TopP: 0.8},
		"min_p":          {Temperature: 1, TopP: 1, MinP: 0.1},
		"all with edits": {Temperature: 1.3, TopP: 0.95, TopK: 30, MinP: 0.02, Bias: []Bias{{4, 2}, {9, -3}}},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 8000
			count := draws(t, p, row, n)
			o := newOracle(&p, row, nil)
			chi, cells := 0.0, 0
			rest, restWant := 0.0, 0.0
			for i, id := range o.ids {
				want := o.prob[i] * n
				if want < 5 { // pooled, as the test's theory asks
					rest, restWant = rest+float64(count[id]), restWant+want
					continue
				}
				chi += (float64(count[id]) - want) * (float64(count[id]) - want) / want
				cells++
			}
			if restWant > 0 {
				chi += (rest - restWant) * (rest - restWant) / restWant
				cells++
			} else if rest > 0 {
				t.Fatalf("%v draws of tokens that were filtered out", rest)
			}
			k := float64(cells - 1)
			bound := k * math.Pow(1-2/(9*k)+3.719*math.Sqrt(2/(9*k)), 3)
			if chi > bound {
				t.Errorf("chi-square %.1f over %d cells, want at most %.1f", chi, cells, bound)
			}
		})
	}
	t.Run("the test can fail", func(t *testing.T) {
		count := draws(t, Params{Temperature: 1.3, TopP: 1}, row, 8000)
		o := newOracle(&Params{Temperature: 1, TopP: 1}, row, nil)
		chi := 0.0
		for i, id := range o.ids {
			want := o.prob[i] * 8000
			chi += (float64(count[id]) - want) * (float64(count[id]) - want) / want
		}
		if chi < 120 {
			t.Errorf("chi-square %.1f for a wrong temperature, want more than 120", chi)
		}
	})
}
