package sampling

import (
	"math/rand/v2"
	"testing"
)

// heard are the effects of a step.
type heard []Effect

func (h *heard) Watch(_ *Distribution, _ float64, e Effect) { *h = append(*h, e) }

// TestWatch: of each built-in stage that is on it is told which token comes with it, and which
// would come if it were off; watching changes no choice.
func TestWatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	off := map[string]func(*Params){
		StageBias: func(p *Params) { p.Bias = nil }, StagePenalties: func(p *Params) { p.PresencePenalty = 0 },
		StageTemperature: func(p *Params) { p.Temperature = 1 },
		StageTopK:        func(p *Params) { p.TopK = 0 }, StageTopP: func(p *Params) { p.TopP = 1 }, StageMinP: func(p *Params) { p.MinP = 0 },
	}
	var s Scratch
	moved, told := map[string]int{}, map[string]int{}
	for range 1500 {
		p := someParams(rng, 400)
		row, position := someRow(rng, 400), rng.IntN(1000)
		choose := func(p Params) (int32, *Chain) {
			t.Helper()
			c := mustChain(t, p)
			c.Accept(2)
			choice, err := c.Choose(inputOf(row, c.Needs()), position, &s)
			if err != nil {
				t.Fatal(err)
			}
			return choice.ID, c
		}
		want, _ := choose(p)
		var list heard
		watched := p
		watched.Watcher = &list
		if got, _ := choose(watched); got != want {
			t.Fatalf("%+v: watched, token %d in the place of %d", p, got, want)
		}
		var stages []string
		for _, e := range list {
			without := p
			off[e.Stage](&without)
			from, _ := choose(without)
			if e.To != want || e.From != from {
				t.Fatalf("%+v: %+v, want from %d to %d", p, e, from, want)
			}
			if cut := e.Stage == StageTopK || e.Stage == StageTopP || e.Stage == StageMinP; (e.Left > 0) != cut || e.Stage == StageTopK && e.Left > p.TopK || (e.Setting > 0) != (e.Stage == StageTemperature) {
				t.Fatalf("%+v: %+v", p, e)
			}
			if e.From != e.To {
				moved[e.Stage]++
			}
			told[e.Stage]++
			stages = append(stages, e.Stage)
		}
		n := 0
		for _, on := range []bool{p.Bias != nil, p.PresencePenalty != 0} {
			if on {
				n++
			}
		}
		greedy := p.Temperature == 0 || p.CutsToOne()
		for _, on := range []bool{p.Temperature != 1, p.TopK > 0, p.TopP < 1, p.MinP > 0} {
			if on && !greedy {
				n++
			}
		}
		if len(stages) != n {
			t.Fatalf("%+v: told of %v", p, stages)
		}
	}
	for name := range off {
		if moved[name] == 0 || moved[name] == told[name] {
			t.Errorf("%s changed %d of %d tokens", name, moved[name], told[name])
		}
	}
}
