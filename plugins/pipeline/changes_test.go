package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// noted makes a text and returns what was done to each of its tokens.
func noted(t *testing.T, on bool, plugins ...*pipelinetest.Plugin) (tokens []int32, changes [][]pipeline.Change) {
	t.Helper()
	x, err := begin(t, plugins, func(o *pipeline.Options, _ *sampling.Params) { o.Changes, o.Max = on, 4 })
	if err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		n := len(x.tokens)
		if over, err = x.step(); err != nil {
			t.Fatal(err)
		}
		if len(x.tokens) > n {
			changes = append(changes, x.Changes())
		} else {
			changes = changes[:len(x.tokens)-x.prompt]
		}
	}
	return x.tokens[x.prompt:], changes
}

func TestChanges(t *testing.T) {
	at := func(step int, c pipelinetest.Code) pipelinetest.Code {
		return func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == step {
				return c(f)
			}
			return 0
		}
	}
	ban := in(abi.SlotBias, abi.HookPlan, at(0, func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 11, abi.OpBan, 0) }))
	choose := in(abi.SlotChoose, abi.HookChoose, at(1, func(f *pipelinetest.Frame) abi.Action {
		f.Put(abi.OffToken, 50)
		return abi.Token
	}))
	force := in(abi.SlotConstrain, abi.HookPlan, at(2, func(f *pipelinetest.Frame) abi.Action { return f.Force(60) }))
	upper := in(abi.SlotText, abi.HookText, at(3, func(f *pipelinetest.Frame) abi.Action { return f.Text("X") }))
	tokens, changes := noted(t, true, ban, choose, force, upper)
	if want := []int32{12, 50, 60, 61}; !slices.Equal(tokens, want) {
		t.Fatalf("tokens %v, want %v", tokens, want)
	}
	for i, want := range []pipeline.Change{
		{Plugin: "p-bias", Kind: pipeline.ChangeMoved, From: 11},
		{Plugin: "p-choose", Kind: pipeline.ChangeChosen, From: 13},
		{Plugin: "p-constrain", Kind: pipeline.ChangeForced, From: 51},
		{Plugin: "p-text", Kind: pipeline.ChangeText, From: pipeline.NoToken},
	} {
		want.Temperature = -1
		if !slices.Equal(changes[i], []pipeline.Change{want}) {
			t.Errorf("token %d: %v, want %v", i, changes[i], want)
		}
	}
	if _, changes = noted(t, false, ban, choose, force, upper); len(slices.Concat(changes...)) != 0 {
		t.Errorf("noted without being asked: %v", changes)
	}
}

// TestChangesOfARewind: what was done to tokens that were taken back is gone with them.
func TestChangesOfARewind(t *testing.T) {
	once := true
	p := in(abi.SlotBias, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
		if f.U(abi.OffStep) == 2 && once {
			once = false
			return f.Rewind(2)
		}
		return 0
	})
	p.Manifest.View.Holdback = 2
	tokens, changes := noted(t, true, p)
	if want := []int32{11, 12, 13, 14}; !slices.Equal(tokens, want) {
		t.Fatalf("tokens %v, want %v", tokens, want)
	}
	for i, c := range changes {
		if want := (pipeline.Change{Plugin: "p-bias", Kind: pipeline.ChangeRewound, From: 12, Temperature: -1}); (i == 1) != (len(c) == 1) || i == 1 && c[0] != want {
			t.Errorf("token %d: %v", i, c)
		}
	}
}

// acting are plugins that change the distribution or the choice, each in its own way.
func acting() map[string]*pipelinetest.Plugin {
	logits := func(slot abi.Slot, c pipelinetest.Code) *pipelinetest.Plugin { return in(slot, abi.HookLogits, c) }
	few := logits(abi.SlotTruncate, func(f *pipelinetest.Frame) abi.Action {
		f.Put(abi.OffCandN, 2)
		return abi.Cands
	})
	few.Manifest.Truncates = true
	all := logits(abi.SlotTruncate, func(f *pipelinetest.Frame) abi.Action { return abi.Cands })
	all.Manifest.Truncates = true
	odd := in(abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
		var ids []int32
		for id := int32(1); id < vocab; id += 2 {
			ids = append(ids, id)
		}
		return f.Allow(ids...)
	})
	odd.Mask = true
	full := logits(abi.SlotTruncate, func(f *pipelinetest.Frame) abi.Action {
		f.PutF(f.L.Full+4*20, 9)
		return abi.Full
	})
	full.Full = true
	return map[string]*pipelinetest.Plugin{
		"cut": few, "cut of nothing": all, "mask": odd, "row": full,
		"temperature": logits(abi.SlotTemperature, func(f *pipelinetest.Frame) abi.Action {
			return f.Temperature(0.3)
		}),
		"the same temperature": logits(abi.SlotTemperature, func(f *pipelinetest.Frame) abi.Action { return abi.Temp }),
		"planned temperature": in(abi.SlotTemperature, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			return f.Temperature(2)
		}),
		"edit":  in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 30, abi.OpAdd, 3) }),
		"force": in(abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Force(40 + int32(f.U(abi.OffStep))%5) }),
		"choose": in(abi.SlotChoose, abi.HookChoose, func(f *pipelinetest.Frame) abi.Action {
			f.Put(abi.OffToken, f.U(f.L.CandIDs))
			return abi.Token
		}),
	}
}

// TestChangedIsWhatWouldHaveComeWithout: a token counts as changed where, with the same past
// and the same draw, another one would have come without the plugin, and it is told which.
func TestChangedIsWhatWouldHaveComeWithout(t *testing.T) {
	for name, p := range acting() {
		for _, set := range []sampling.Params{
			{Temperature: 1, TopP: 1}, {Temperature: 0.8, TopP: 0.9, PresencePenalty: 1}, {Temperature: 1.4, TopP: 1, TopK: 30}, {TopP: 1},
		} {
			changed, kept := againstPlain(t, name, p, set)
			never := strings.HasPrefix(name, "the same") || strings.HasSuffix(name, "of nothing") ||
				set.Temperature == 0 && p.Manifest.Slot != abi.SlotBias && (name == "cut" || name == "choose" || strings.Contains(name, "temperature"))
			if (changed == 0) != never {
				t.Errorf("%s, %+v: %d of %d tokens changed", name, set, changed, changed+kept)
			}
		}
	}
}

// againstPlain makes a text with a plugin, and at each step asks a chain without it.
func againstPlain(t *testing.T, name string, plugin *pipelinetest.Plugin, set sampling.Params) (changed, kept int) {
	t.Helper()
	params := sampling.Params{Vocab: vocab, Seed: 7}
	x, err := begin(t, one(plugin), func(o *pipeline.Options, p *sampling.Params) {
		p.Temperature, p.TopP, p.TopK, p.PresencePenalty = set.Temperature, set.TopP, set.TopK, set.PresencePenalty
		o.Temperature, o.Max, o.Changes = set.Temperature, 200, true
		params = *p
	})
	if err != nil {
		t.Fatal(err)
	}
	x.row = flat
	params.Plugins = nil
	plain, err := sampling.New(params)
	if err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		before := slices.Clone(x.tokens)
		row := flat(before)
		without, err := plain.Choose(&sampling.Input{Row: row, Best: best(row), Max: row[best(row)]}, len(before), new(sampling.Scratch))
		if err != nil {
			t.Fatal(err)
		}
		if over, err = x.step(); err != nil {
			t.Fatal(err)
		}
		token := x.tokens[len(before)]
		plain.Accept(token)
		list := x.Changes()
		told := slices.ContainsFunc(list, func(c pipeline.Change) bool {
			return c.Kind != pipeline.ChangeActed && c.From != token
		})
		if told != (token != without.ID) || told && list[0].From != without.ID {
			t.Fatalf("%s, %+v: token %d came, without the plugin %d; told %+v", name, set, token, without.ID, list)
		}
		if told {
			changed++
		} else {
			kept++
		}
	}
	if got := x.Reports()[0].Changed; got != changed {
		t.Fatalf("%s, %+v: the report says %d tokens changed, %d are", name, set, got, changed)
	}
	return changed, kept
}

// flat is a row of a model that is not sure.
func flat(tokens []int32) []float32 {
	row := make([]float32, vocab)
	for i := range row {
		row[i] = -float32((i*37+int(tokens[len(tokens)-1])*11+len(tokens)*7)%vocab) / 8
	}
	return row
}

func best(row []float32) (id int32) {
	for i, l := range row {
		if l > row[id] {
			id = int32(i)
		}
	}
	return id
}

// TestEachPluginIsComparedWithTheOnesBefore: what one did is not counted again for those
// behind it, and what each did is told.
func TestEachPluginIsComparedWithTheOnesBefore(t *testing.T) {
	list := acting()
	x, err := begin(t, []*pipelinetest.Plugin{list["mask"], list["cut"], list["temperature"]}, func(o *pipeline.Options, p *sampling.Params) {
		p.Temperature, o.Temperature, o.Max, o.Changes = 1, 1, 100, true
	})
	if err != nil {
		t.Fatal(err)
	}
	x.row = flat
	for over := false; !over; {
		n := len(x.tokens)
		if over, err = x.step(); err != nil {
			t.Fatal(err)
		}
		c := x.Changes()
		if len(c) != 3 || c[0].Left != 50 || c[1].Left != 2 || c[2].Left != 0 || c[0].Temperature >= 0 || c[1].Temperature >= 0 || float32(c[2].Temperature) != 0.3 {
			t.Fatalf("token %d: %+v", n, c)
		}
		for i := range c {
			to := x.tokens[n]
			if i+1 < len(c) {
				to = c[i+1].From
			}
			if (c[i].Kind == pipeline.ChangeMoved) != (c[i].From != to) {
				t.Fatalf("token %d: %+v, then %d", n, c[i], to)
			}
		}
	}
	for _, r := range x.Reports() {
		if r.Changed == 0 || r.Changed == 100 {
			t.Errorf("%s changed %d of 100 tokens", r.Name, r.Changed)
		}
	}
}

// TestFailedActionsChangeNothing: a plugin whose answer is refused is not told to have
// changed a token.
func TestFailedActionsChangeNothing(t *testing.T) {
	p := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		f.PutF(abi.OffTemperature, 0.1)
		f.Put(abi.OffCandN, 0)
		return abi.Temp | abi.Cands
	})
	p.Manifest.Truncates, p.OnError = true, pipeline.Skip
	x, _ := run(t, one(p), func(o *pipeline.Options, p *sampling.Params) { p.Temperature, o.Temperature, o.Changes = 1, 1, true })
	if r := x.Reports()[0]; r.Changed != 0 || r.Outcome != pipeline.OutcomeSkipped || x.Changes() != nil {
		t.Errorf("report %+v", r)
	}
}
