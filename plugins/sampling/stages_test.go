package sampling

import (
	"math"
	"slices"
	"testing"
)

// stayIDs applies stages to a row and returns the tokens that stay, in order.
func stayIDs(row []float32, stages ...Stage) []int32 {
	s := new(Scratch)
	d := s.load(inputOf(row, Needs{View: Row}))
	for _, st := range stages {
		st.Apply(d)
	}
	var cs []Candidate
	h := d.histogram()
	for b := range h.mass[:h.last+1] {
		if h.fine[b] != 0 {
			m := slices.Clone(d.members(b))
			slices.SortFunc(m, func(a, b Candidate) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			cs = append(cs, m...)
		}
	}
	var ids []int32
	for _, c := range cs {
		ids = append(ids, c.ID)
	}
	return ids
}

// logs returns logits of given probabilities.
func logs(p ...float64) (row []float32) {
	for _, v := range p {
		row = append(row, float32(math.Log(v)))
	}
	return row
}

func same(t *testing.T, what string, got []int32, want ...int32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestBias(t *testing.T) {
	row := []float32{1, 2, 3}
	d := new(Scratch).load(inputOf(row, Needs{View: Row}))
	biasStage{{ID: 1, Value: 5}, {ID: 2, Value: -1.5}, {ID: 9, Value: 1}}.Apply(d)
	if !slices.Equal(d.logits, []float32{1, 7, 1.5}) {
		t.Errorf("got %v, want [1 7 1.5]", d.logits)
	}
	if !slices.Equal(row, []float32{1, 2, 3}) {
		t.Errorf("the model's row was written: %v", row)
	}
}

func TestSuppress(t *testing.T) {
	same(t, "suppressed", stayIDs(logs(.5, .3, .2), suppressStage{0, 7}), 1, 2)
}

func TestPenalties(t *testing.T) {
	p := penaltyStage{presence: 2, frequency: 2}
	d := new(Scratch).load(inputOf([]float32{10, 10, 10}, Needs{View: Row}))
	p.Apply(d)
	if !slices.Equal(d.logits, []float32{10, 10, 10}) {
		t.Errorf("without generated tokens: %v", d.logits)
	}
	p.accept(1)
	p.accept(1)
	p.accept(2)
	p.Apply(d)
	if !slices.Equal(d.logits, []float32{10, 4, 6}) {
		t.Errorf("got %v, want [10 4 6]: 2 + 2·2 and 2 + 1·2 less", d.logits)
	}
	q := penaltyStage{presence: -1}
	q.accept(0)
	q.Apply(d)
	if d.logits[0] != 11 {
		t.Errorf("a negative penalty gives %g, want 11", d.logits[0])
	}
}

func TestTemperature(t *testing.T) {
	d := new(Scratch).load(inputOf([]float32{0, -2}, Needs{View: Row}))
	temperatureStage(2).Apply(d)
	d.histogram()
	if got, want := d.exact(-2), math.Exp(-1); math.Abs(got-want) > 1e-8 {
		t.Errorf("weight %g at temperature 2, want %g", got, want)
	}
	same(t, "temperature next to 0", stayIDs([]float32{1, 1.001, 1}, temperatureStage(1e-300)), 1)
}

func TestTopK(t *testing.T) {
	row := []float32{1, 5, 3, 5, 3, 0}
	same(t, "1", stayIDs(row, topKStage(1)), 1)
	same(t, "2", stayIDs(row, topKStage(2)), 1, 3)
	same(t, "3, a tie", stayIDs(row, topKStage(3)), 1, 3, 2)
	same(t, "all", stayIDs(row, topKStage(6)), 1, 3, 2, 4, 0, 5)
	same(t, "more than there are", stayIDs(row, topKStage(60)), 1, 3, 2, 4, 0, 5)
	same(t, "all equal", stayIDs(make([]float32, 9), topKStage(4)), 0, 1, 2, 3)
}

func TestTopP(t *testing.T) {
	row := logs(.1, .4, .2, .3)
	same(t, "tiny", stayIDs(row, topPStage(1e-9)), 1)
	same(t, "just the first", stayIDs(row, topPStage(.39)), 1)
	same(t, "two", stayIDs(row, topPStage(.5)), 1, 3)
	same(t, "three", stayIDs(row, topPStage(.85)), 1, 3, 2)
	same(t, "all", stayIDs(row, topPStage(.999)), 1, 3, 2, 0)
	same(t, "all equal", stayIDs(make([]float32, 10), topPStage(.25)), 0, 1, 2)
	same(t, "of what top_k left", stayIDs(row, topKStage(2), topPStage(.5)), 1)
}

func TestMinP(t *testing.T) {
	row := logs(.1, .4, .2, .3)
	same(t, "all", stayIDs(row, minPStage(.2)), 1, 3, 2, 0)
	same(t, "half of the best", stayIDs(row, minPStage(.499)), 1, 3, 2)
	same(t, "the best", stayIDs(row, minPStage(1)), 1)
	same(t, "ties with the best", stayIDs([]float32{2, 7, 7}, minPStage(1)), 1, 2)
	same(t, "after top_p", stayIDs(row, topPStage(.5), minPStage(.01)), 1, 3)
}

func TestLogprob(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		logit, lse float32
		want       float64
	}{
		{1, 3, -2}, {3, 3, 0}, {3.5, 3, 0}, {-inf, 3, leastLogprob}, {inf, inf, leastLogprob},
		{float32(math.NaN()), 3, leastLogprob}, {-20000, 3, leastLogprob},
	} {
		if got := Logprob(c.logit, c.lse); got != c.want {
			t.Errorf("Logprob(%g, %g) = %g, want %g", c.logit, c.lse, got, c.want)
		}
	}
}

func TestAppendTop(t *testing.T) {
	row := []float32{1, 5, 3, 5, 3, 0}
	for k := range 8 {
		var got []int32
		for _, c := range AppendTop(nil, &Input{Row: row}, k) {
			got = append(got, c.ID)
		}
		same(t, "row", got, []int32{1, 3, 2, 4, 0, 5}[:min(k, 6)]...)
	}
	list := &Input{IDs: []int32{4, 2}, Logits: []float32{2, 1}}
	if got := AppendTop([]Candidate{{9, 9}}, list, 1); len(got) != 2 || got[1] != (Candidate{4, 2}) {
		t.Errorf("from a list: %v", got)
	}
}
