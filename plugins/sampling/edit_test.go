package sampling

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// state is what a distribution holds, by id.
func state(d *Distribution) map[int32]float32 {
	m := map[int32]float32{}
	for i := range d.Len() {
		if c := d.At(i); c.Logit >= out {
			m[c.ID] = c.Logit
		}
	}
	return m
}

func alike(a, b map[int32]float32) bool {
	if len(a) != len(b) {
		return false
	}
	for id, l := range a {
		if v, ok := b[id]; !ok || v != l {
			return false
		}
	}
	return true
}

func TestEdit(t *testing.T) {
	row := []float32{4, -2, 0, none, 8}
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		edits []Edit
		want  map[int32]float32
		err   error
	}{
		"nothing":                {nil, map[int32]float32{0: 4, 1: -2, 2: 0, 4: 8}, nil},
		"each operation":         {[]Edit{{0, OpAdd, 1}, {1, OpMulSigned, 2}, {4, OpMulSigned, 2}, {2, OpSet, 9}}, map[int32]float32{0: 5, 1: -4, 2: 9, 4: 4}, nil},
		"least and most":         {[]Edit{{0, OpMin, 1}, {1, OpMax, 3}, {2, OpMin, 7}}, map[int32]float32{0: 1, 1: 3, 2: 0, 4: 8}, nil},
		"ban":                    {[]Edit{{4, OpBan, nan}}, map[int32]float32{0: 4, 1: -2, 2: 0}, nil},
		"in order":               {[]Edit{{0, OpSet, 1}, {0, OpAdd, 1}, {0, OpMulSigned, 4}}, map[int32]float32{0: .5, 1: -2, 2: 0, 4: 8}, nil},
		"out stays out":          {[]Edit{{3, OpSet, 5}, {3, OpMax, 5}, {0, OpBan, 0}, {0, OpSet, 9}}, map[int32]float32{1: -2, 2: 0, 4: 8}, nil},
		"minus infinity":         {[]Edit{{0, OpAdd, none}}, nil, ErrOp},
		"not a number":           {[]Edit{{4, OpBan, 0}, {0, OpAdd, nan}}, nil, ErrOp},
		"infinity":               {[]Edit{{0, OpSet, float32(math.Inf(1))}}, nil, ErrOp},
		"division by zero":       {[]Edit{{0, OpMulSigned, 0}}, nil, ErrOp},
		"beyond all numbers":     {[]Edit{{4, OpBan, 0}, {0, OpSet, 3e38}, {0, OpAdd, 3e38}}, nil, ErrNaN},
		"far below":              {[]Edit{{0, OpSet, -3e38}, {0, OpAdd, -3e38}}, map[int32]float32{1: -2, 2: 0, 4: 8}, nil},
		"beyond the vocabulary":  {[]Edit{{0, OpBan, 0}, {5, OpBan, 0}}, nil, ErrID},
		"negative":               {[]Edit{{-1, OpBan, 0}}, nil, ErrID},
		"no such operation":      {[]Edit{{0, 6, 0}}, nil, ErrOp},
		"all out":                {[]Edit{{0, OpBan, 0}, {1, OpBan, 0}, {2, OpBan, 0}, {4, OpBan, 0}}, nil, ErrEmpty},
		"all out, the last last": {[]Edit{{4, OpBan, 0}, {2, OpBan, none}, {1, OpBan, 0}, {0, OpBan, 0}}, nil, ErrEmpty},
	} {
		for _, list := range []bool{false, true} {
			d := loadRow(row)
			if list {
				d = new(Scratch).load(&Input{Best: 4, Max: 8, IDs: []int32{4, 0, 2, 1}, Logits: []float32{8, 4, 0, -2}})
				if name == "beyond the vocabulary" {
					continue // a list does not know where that ends
				}
			}
			before := state(d)
			err := d.Edit(c.edits)
			if !errors.Is(err, c.err) {
				t.Errorf("%s, list %v: error %v, want %v", name, list, err, c.err)
			}
			want := c.want
			if c.err != nil {
				want = before
			}
			if got := state(d); !alike(got, want) {
				t.Errorf("%s, list %v: %v, want %v", name, list, got, want)
			}
			best, ok := d.best()
			if again := d.seek(); !ok || best != again {
				t.Errorf("%s, list %v: best %v, by a scan %v", name, list, best, again)
			}
		}
	}
}

func bits(vocab int, ids ...int) []byte {
	b := make([]byte, (vocab+31)/32*4)
	for _, id := range ids {
		b[id/8] |= 1 << (id % 8)
	}
	return b
}

func TestMask(t *testing.T) {
	row := make([]float32, 70)
	for i := range row {
		row[i] = float32(i)
	}
	row[5] = none
	d := loadRow(row)
	if err := d.Mask(bits(70, 1, 5, 32, 69)); err != nil {
		t.Fatal(err)
	}
	if err := d.Mask(bits(70, 1, 2, 32)); err != nil {
		t.Fatal(err)
	}
	want := map[int32]float32{1: 1, 32: 32}
	if got := state(d); !alike(got, want) {
		t.Errorf("two masks: %v, want %v", got, want)
	}
	if best, ok := d.best(); !ok || best.ID != 32 {
		t.Errorf("best %v", best)
	}
	for name, words := range map[string][]byte{"other tokens": bits(70, 3, 4), "nothing": bits(70), "no words": nil} {
		if err := d.Mask(words); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v", name, err)
		}
		if got := state(d); !alike(got, want) {
			t.Errorf("after %s: %v, want %v", name, got, want)
		}
	}
	if err := loadRow(row).Mask(bits(70, 5)); !errors.Is(err, ErrEmpty) {
		t.Errorf("only a token that is out: %v", err)
	}
}

func TestKeep(t *testing.T) {
	row := []float32{4, -2, 0, none, 8, 1}
	for name, c := range map[string]struct {
		give []Candidate
		want map[int32]float32
		err  error
	}{
		"as they were":         {[]Candidate{{4, 8}, {0, 4}, {5, 1}}, map[int32]float32{4: 8, 0: 4, 5: 1}, nil},
		"fewer, other logits":  {[]Candidate{{0, 7}, {5, 1}}, map[int32]float32{0: 7, 5: 1}, nil},
		"another order":        {[]Candidate{{5, 1}, {4, -3}}, map[int32]float32{4: -3, 5: 1}, nil},
		"minus infinity":       {[]Candidate{{4, none}, {0, 4}}, map[int32]float32{0: 4}, nil},
		"none":                 {nil, nil, ErrEmpty},
		"all minus infinity":   {[]Candidate{{4, none}}, nil, ErrEmpty},
		"one not offered":      {[]Candidate{{4, 8}, {2, 0}}, nil, ErrID},
		"one twice":            {[]Candidate{{4, 8}, {4, 8}}, nil, ErrID},
		"one twice, elsewhere": {[]Candidate{{0, 8}, {4, 8}, {0, 1}}, nil, ErrID},
		"more than offered":    {[]Candidate{{0, 8}, {4, 8}, {5, 1}, {1, 1}}, nil, ErrID},
		"not a number":         {[]Candidate{{4, float32(math.NaN())}}, nil, ErrNaN},
	} {
		d := loadRow(row)
		d.Top(3)
		before := state(d)
		want := c.want
		if c.err != nil {
			want = before
		}
		if err := d.Keep(slices.Clone(c.give)); !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", name, err, c.err)
		}
		if got := state(d); !alike(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if c.err != nil {
			continue
		}
		if best, ok := d.best(); !ok || best != d.seek() {
			t.Errorf("%s: best %v, by a scan %v", name, best, d.seek())
		}
		if top := d.Top(9); !slices.IsSortedFunc(top, compare) || len(top) != len(want) {
			t.Errorf("%s: top %v", name, top)
		}
		// What is left can be edited, and looked at again.
		if err := d.Edit([]Edit{{top0(d), OpAdd, -50}}); err != nil {
			t.Errorf("%s: edit: %v", name, err)
		}
		if best, _ := d.best(); best != d.seek() {
			t.Errorf("%s: after an edit best %v, by a scan %v", name, best, d.seek())
		}
	}
}

func top0(d *Distribution) int32 { return d.Top(1)[0].ID }

func TestRow(t *testing.T) {
	row := []float32{4, -2, 0, none, 8}
	for name, d := range map[string]*Distribution{"row": loadRow(row), "list": loadRow(row)} {
		if name == "list" {
			if err := d.Mask(bits(5, 0, 1, 2, 4)); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 20)
		d.CopyTo(b, 5)
		if err := d.Replace(b); err != nil {
			t.Fatal(err)
		}
		if got, want := state(d), state(loadRow(row)); !alike(got, want) {
			t.Errorf("%s: there and back %v, want %v", name, got, want)
		}
		put := func(values ...float32) {
			other := loadRow(values)
			other.CopyTo(b, 5)
		}
		put(1, 2, none, 9, 3)
		if err := d.Replace(b); err != nil {
			t.Fatal(err)
		}
		want := map[int32]float32{0: 1, 1: 2, 4: 3}
		if got := state(d); !alike(got, want) {
			t.Errorf("%s: %v, want %v: what is out stays out", name, got, want)
		}
		put(1, float32(math.NaN()), 1, 1, 1)
		if err := d.Replace(b); !errors.Is(err, ErrNaN) || !alike(state(d), want) {
			t.Errorf("%s: NaN: %v, %v", name, err, state(d))
		}
		put(none, none, none, 1, none)
		if err := d.Replace(b); !errors.Is(err, ErrEmpty) || !alike(state(d), want) {
			t.Errorf("%s: only a token that is out: %v, %v", name, err, state(d))
		}
	}
}

// TestSettle: what filters let stay is all that is left to look at.
func TestSettle(t *testing.T) {
	row := []float32{4, 4, 0, 8, 1}
	d := loadRow(row)
	topKStage(2).Apply(d)
	d.Settle()
	if got := state(d); !alike(got, map[int32]float32{3: 8, 0: 4}) {
		t.Errorf("after top_k 2: %v", got)
	}
	d = loadRow(row)
	temperatureStage(2).Apply(d)
	topKStage(4).Apply(d)
	d.Settle()
	if got := state(d); !alike(got, map[int32]float32{3: 4, 0: 2, 1: 2, 4: .5}) {
		t.Errorf("after temperature 2 and top_k 4: %v", got)
	}
	d = loadRow(row)
	d.Settle()
	if d.Len() != 5 {
		t.Errorf("without a filter %d are left of 5", d.Len())
	}
}

// scripted are plugins that note what they see.
type scripted struct {
	early, late func(d *Distribution)
	temperature float64
	choice      int32 // −1: the draw
	err         error
	seen        []string
}

func (s *scripted) Needs(int) Needs { return Needs{View: Row} }
func (s *scripted) Early(d *Distribution, t float64) (float64, error) {
	s.seen = append(s.seen, "early")
	if s.early != nil {
		s.early(d)
	}
	return t, s.err
}
func (s *scripted) Late(d *Distribution, t float64) (float64, error) {
	s.seen = append(s.seen, "late")
	if s.late != nil {
		s.late(d)
	}
	if s.temperature >= 0 {
		t = s.temperature
	}
	return t, nil
}
func (s *scripted) Choose(d *Distribution, t float64) (int32, bool, error) {
	d.Settle()
	s.seen = append(s.seen, "choose")
	return s.choice, s.choice >= 0, nil
}
func (s *scripted) Came(int32)              {}
func (s *scripted) CameForced(int32, int32) {}

func TestPluginsHaveTheirPlaces(t *testing.T) {
	row := []float32{9, 1, 2, 5}
	s := &scripted{temperature: -1, choice: -1}
	// The bias of token 1 comes between: early does not see it, late does.
	s.early = func(d *Distribution) {
		if got := state(d); !alike(got, map[int32]float32{0: 9, 1: 1, 2: 2}) {
			t.Errorf("early sees %v", got)
		}
	}
	s.late = func(d *Distribution) {
		if got := state(d); got[1] != 21 {
			t.Errorf("late sees %v", got)
		}
	}
	c, err := New(Params{Vocab: 4, TopP: 1, Suppressed: []int32{3}, Bias: []Bias{{1, 20}}, Plugins: s})
	if err != nil {
		t.Fatal(err)
	}
	in := inputOf(row, c.Needs())
	got, err := c.Choose(in, 0, new(Scratch))
	if err != nil || got.ID != 1 || !slices.Equal(s.seen, []string{"early", "late", "choose"}) {
		t.Errorf("chose %v, %v after %v", got, err, s.seen)
	}
	s.choice = 2
	if got, err = c.Choose(in, 0, new(Scratch)); err != nil || got.ID != 2 || got.Logprob != Logprob(2, in.LogSumExp) {
		t.Errorf("chose %v, %v, want the plugin's choice", got, err)
	}
	s.err = errors.New("broken")
	if _, err = c.Choose(in, 0, new(Scratch)); !errors.Is(err, s.err) {
		t.Errorf("error %v", err)
	}
}

// TestPluginsSetTheTemperature: of one step, greedy or not, whatever the chain's is.
func TestPluginsSetTheTemperature(t *testing.T) {
	row := make([]float32, 50)
	row[7] = .5
	for name, c := range map[string]struct {
		chain, plugin float64
		greedy        bool
	}{"made greedy": {1, 0, true}, "made a draw": {0, 3, false}, "left": {0, -1, true}} {
		s := &scripted{temperature: c.plugin, choice: -1}
		chain, err := New(Params{Vocab: 50, TopP: 1, Temperature: c.chain, Seed: 3, Plugins: s})
		if err != nil {
			t.Fatal(err)
		}
		others := 0
		for at := range 100 {
			in := inputOf(row, chain.Needs())
			got, err := chain.Choose(in, at, new(Scratch))
			if err != nil {
				t.Fatal(err)
			}
			if got.ID != 7 {
				others++
			}
		}
		if c.greedy != (others == 0) {
			t.Errorf("%s: %d of 100 choices are not the best token", name, others)
		}
	}
}

func TestRetract(t *testing.T) {
	p := Params{Vocab: 10, TopP: 1, PresencePenalty: 1, FrequencyPenalty: .5}
	text := []int32{1, 2, 1, 3, 3}
	a, _ := New(p)
	for _, id := range text {
		a.Accept(id)
	}
	for i := len(text) - 1; i >= 2; i-- {
		a.Retract(text[i])
	}
	b, _ := New(p)
	b.Accept(1)
	b.Accept(2)
	if !slices.Equal(a.penalty.ids, b.penalty.ids) || a.penalty.times[1] != 1 || len(a.penalty.times) != 2 {
		t.Errorf("ids %v, times %v, want those of a chain that accepted 1 and 2", a.penalty.ids, a.penalty.times)
	}
}
