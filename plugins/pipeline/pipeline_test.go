package pipeline_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// until gives numbers one after another.
func until(from, to int32) (ids []int32) {
	for ; from <= to; from++ {
		ids = append(ids, from)
	}
	return ids
}

func TestActions(t *testing.T) {
	plain := until(11, 22)
	ban := func(id int32) pipelinetest.Code {
		return func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, id, abi.OpBan, 0) }
	}
	masked := in(abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Allow(11, 12, 40, 41) })
	masked.Mask = true
	full := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		for i := range vocab {
			f.PutF(f.L.Full+4*i, -f.F(f.L.Full+4*i)) // the least likely becomes the likeliest
		}
		return abi.Full
	})
	full.Full = true
	second := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		id, l := f.Cand(1)
		f.SetCand(0, id, l)
		f.Put(abi.OffCandN, 1)
		return abi.Cands
	})
	second.Manifest.Truncates = true
	for name, c := range map[string]struct {
		p    *pipelinetest.Plugin
		want []int32
	}{
		"nothing":                {in(abi.SlotBias, abi.HookPlan, func(*pipelinetest.Frame) abi.Action { return 0 }), plain},
		"edits in plan":          {in(abi.SlotBias, abi.HookPlan, ban(15)), append(until(11, 14), until(16, 23)...)},
		"edits in logits":        {in(abi.SlotTruncate, abi.HookLogits, ban(15)), append(until(11, 14), until(16, 23)...)},
		"mask":                   {masked, []int32{11, 12, 40, 41, 11, 12, 40, 41, 11, 12, 40, 41}},
		"candidates":             {second, []int32{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}},
		"full row":               {full, []int32{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}},
		"token":                  {in(abi.SlotChoose, abi.HookChoose, func(f *pipelinetest.Frame) abi.Action { f.Put(abi.OffToken, 33); return abi.Token }), slices.Repeat([]int32{33}, 12)},
		"choose leaves the draw": {in(abi.SlotChoose, abi.HookChoose, func(f *pipelinetest.Frame) abi.Action { return 0 }), plain},
		"forced in plan": {in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == 2 {
				return f.Force(50, 60)
			}
			return 0
		}), append([]int32{11, 12, 50, 60}, until(61, 68)...)},
		"forced in accept": {in(abi.SlotBias, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffToken) == 12 {
				return f.Force(50, 60)
			}
			return 0
		}), append([]int32{11, 12, 50, 60}, until(61, 68)...)},
		"stopped in plan": {in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == 3 {
				return f.Stop(abi.StopContentFilter)
			}
			return 0
		}), until(11, 13)},
		"stopped in accept": {in(abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == 3 {
				return f.Stop(abi.StopStop)
			}
			return 0
		}), until(11, 14)},
		"asleep until step 4": {in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == 0 {
				return f.Sleep(4)
			}
			return f.Edit(0, 16, abi.OpBan, 0) | f.Edit(1, 12, abi.OpBan, 0)
		}), append(until(11, 15), until(17, 23)...)},
	} {
		if _, got := run(t, one(c.p)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestIllegalActions(t *testing.T) {
	nan := float32(math.NaN())
	type code = pipelinetest.Code
	for name, c := range map[string]struct {
		slot abi.Slot
		hook abi.Hook
		code code
		want string
	}{
		"token in plan":          {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return abi.Token }, "action"},
		"unknown bit":            {abi.SlotBias, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { return 1 << 20 }, "action"},
		"mask without a view":    {abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return abi.Mask }, "action"},
		"full without a view":    {abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { return abi.Full }, "action"},
		"cands, not truncating":  {abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { return abi.Cands }, "action"},
		"edit of no token":       {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, vocab, abi.OpBan, 0) }, "action"},
		"edit without operation": {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 1, 9, 0) }, "action"},
		"too many edits": {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			f.Put(abi.OffEditN, 5000)
			return abi.Edits
		}, "action"},
		"edit to NaN": {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 1, abi.OpAdd, nan) }, "action"},
		"edit beyond numbers": {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			return f.Edit(0, 1, abi.OpSet, 3e38) | f.Edit(1, 1, abi.OpAdd, 3e38)
		}, "nan"},
		"temperature NaN":       {abi.SlotTemperature, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { return f.Temperature(nan) }, "action"},
		"temperature below 0":   {abi.SlotTemperature, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Temperature(-1) }, "action"},
		"stop without a reason": {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Stop(0) }, "action"},
		"forced no token":       {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Force(vocab) }, "action"},
		"forced too many":       {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Force(make([]int32, 257)...) }, "quota"},
		"choosing what is not there": {abi.SlotChoose, abi.HookChoose, func(f *pipelinetest.Frame) abi.Action {
			f.Put(abi.OffToken, vocab)
			return abi.Token
		}, "action"},
		"rewind without holdback": {abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action { return f.Rewind(1) }, "action"},
		"text without UTF-8":      {abi.SlotText, abi.HookText, func(f *pipelinetest.Frame) abi.Action { return f.Text("\xff") }, "action"},
		"text too long":           {abi.SlotText, abi.HookText, func(f *pipelinetest.Frame) abi.Action { return f.Text(string(make([]byte, 5000))) }, "quota"},
		"trap":                    {abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { panic(&pipelinetest.Error{Code: "trap"}) }, "trap"},
		"fuel":                    {abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { panic(&pipelinetest.Error{Code: "fuel"}) }, "fuel"},
		"panic of the host":       {abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { panic("index out of range") }, "panic"},
	} {
		// From the fourth step on, so that text before stays.
		late := func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) < 3 {
				return 0
			}
			return c.code(f)
		}
		p := in(c.slot, c.hook, late)
		p.Manifest.Name = "x"
		x, err := begin(t, one(p))
		if err != nil {
			t.Fatal(err)
		}
		e := x.fails(t)
		if e.Code != c.want || e.Plugin != "x" || e.Version != "1.0.0" || e.Step < 3 || e.Step > 4 {
			t.Errorf("%s: %v, want code %s at step 3 or 4", name, e, c.want)
		}
		if p.Closed() != p.Opened() {
			t.Errorf("%s: %d instances opened, %d closed", name, p.Opened(), p.Closed())
		}
		if r := x.Reports()[0]; r.Outcome != pipeline.OutcomeFailed || r.Error != e {
			t.Errorf("%s: report %+v", name, r)
		}
		// The same, where the request is to go on.
		p = in(c.slot, c.hook, late)
		p.OnError = pipeline.Skip
		x, got := run(t, one(p))
		if !slices.Equal(got, until(11, 22)) || len(x.warned) != 1 || x.warned[0].Code != c.want {
			t.Errorf("%s: skipped: %v, %v", name, got, x.warned)
		}
		if r := x.Reports()[0]; r.Outcome != pipeline.OutcomeSkipped || p.Closed() != 1 {
			t.Errorf("%s: skipped: %+v, %d closed", name, r, p.Closed())
		}
	}
}

// TestEmptyAndNaNLeaveNothingBehind: what a plugin may not do is undone before the
// next one and the draw look.
func TestEmptyAndNaNLeaveNothingBehind(t *testing.T) {
	none := in(abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return f.Allow() })
	none.Mask = true
	all := in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) (a abi.Action) {
		for id := range int32(vocab) {
			a = f.Edit(int(id), id, abi.OpBan, 0)
		}
		return a
	})
	gone := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		f.Put(abi.OffCandN, 0)
		return abi.Cands
	})
	gone.Manifest.Truncates = true
	wrong := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		id, _ := f.Cand(0)
		f.SetCand(0, id, float32(math.Inf(1)))
		return abi.Cands
	})
	wrong.Manifest.Truncates = true
	for name, c := range map[string]struct {
		p    *pipelinetest.Plugin
		code string
	}{"mask": {none, "empty"}, "bans": {all, "empty"}, "candidates": {gone, "empty"}, "infinity": {wrong, "nan"}} {
		c.p.OnError = pipeline.Skip
		if x, got := run(t, one(c.p)); !slices.Equal(got, until(11, 22)) || len(x.warned) != 1 || x.warned[0].Code != c.code {
			t.Errorf("%s: %v, %v", name, got, x.warned)
		}
	}
}

func TestOrderOfSlots(t *testing.T) {
	var seen []string
	note := func(slot abi.Slot, name string, h abi.Hook) *pipelinetest.Plugin {
		p := in(slot, h, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == 0 {
				seen = append(seen, name)
			}
			return 0
		})
		p.Manifest.Name = name
		return p
	}
	run(t, []*pipelinetest.Plugin{
		note(abi.SlotChoose, "choose", abi.HookChoose), note(abi.SlotTemperature, "temperature", abi.HookLogits), note(abi.SlotTruncate, "truncate 1", abi.HookLogits),
		note(abi.SlotText, "text", abi.HookLogits), note(abi.SlotBias, "bias", abi.HookLogits), note(abi.SlotTruncate, "truncate 2", abi.HookLogits), note(abi.SlotConstrain, "constrain", abi.HookLogits),
	})
	want := []string{"constrain", "bias", "text", "truncate 1", "truncate 2", "temperature", "choose"}
	if !slices.Equal(seen, want) {
		t.Errorf("order %v, want %v", seen, want)
	}
}

// TestViews: what a frame says is exact, before and after the host's own edits.
func TestViews(t *testing.T) {
	early := in(abi.SlotBias, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		if id, l := f.Cand(0); id == 50 || l != 0 || f.U(abi.OffNFinite) != vocab {
			t.Errorf("bias sees %d with %g, %d finite", id, l, f.U(abi.OffNFinite))
		}
		return 0
	})
	late := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		id, l := f.Cand(0)
		second, _ := f.Cand(1)
		if id != 50 || l != f.F(abi.OffMax) || f.U(abi.OffCandN) != 8 || f.F(abi.OffTemperature) != 0 {
			t.Errorf("truncate sees %d with %g of %g, %d candidates", id, l, f.F(abi.OffMax), f.U(abi.OffCandN))
		}
		if want := int32(f.U(abi.OffLastToken)) + 1; second != want && want != 50 {
			t.Errorf("second is %d, want %d", second, want)
		}
		if m := f.F(abi.OffCandMass); m < 0.99 || m > 1 {
			t.Errorf("mass %g", m)
		}
		if n := f.Tokens(); len(n) != f.U(abi.OffNPrompt)+f.U(abi.OffNGenerated) || n[0] != 10 || f.U(abi.OffPosition) != len(n) {
			t.Errorf("history %v at position %d", n, f.U(abi.OffPosition))
		}
		return 0
	})
	late.Candidates = 8
	late.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	_, got := run(t, []*pipelinetest.Plugin{early, late}, func(_ *pipeline.Options, p *sampling.Params) {
		p.Bias = []sampling.Bias{{ID: 50, Value: 100}}
	})
	if got[0] != 50 || got[11] != 50 {
		t.Errorf("tokens %v", got)
	}
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		h    abi.History
		room int
		want []int32
	}{
		"all":                 {abi.History{Kind: abi.HistoryAll}, 0, until(10, 21)},
		"generated":           {abi.History{Kind: abi.HistoryGenerated}, 0, until(11, 21)},
		"last three":          {abi.History{Kind: abi.HistoryLast, N: 3}, 0, until(19, 21)},
		"as many as fit":      {abi.History{Kind: abi.HistoryAll}, 4, until(18, 21)},
		"fewer than there is": {abi.History{Kind: abi.HistoryLast, N: 50}, 0, until(10, 21)},
	} {
		var got []int32
		p := in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			got = f.Tokens()
			if at := f.U(abi.OffHistoryPos); len(got) > 0 && int(got[0])-10 != at {
				t.Errorf("%s: position %d of %v", name, at, got)
			}
			return 0
		})
		p.Manifest.View.History, p.History = c.h, c.room
		run(t, one(p))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v at the last step, want %v", name, got, c.want)
		}
	}
}

// TestDynamicTemperature: TEMP is of one step, and a greedy text stays greedy.
func TestDynamicTemperature(t *testing.T) {
	p := in(abi.SlotTemperature, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action {
		if f.U(abi.OffStep) == 2 {
			return f.Temperature(1000)
		}
		return 0
	})
	_, got := run(t, one(p), func(_ *pipeline.Options, p *sampling.Params) { p.Temperature = 1e-3 })
	if got[0] != 11 || got[1] != 12 || got[2] == 13 || got[3] != got[2]+1 {
		t.Errorf("tokens %v, want the third one drawn", got)
	}
	if _, got := run(t, one(p)); !slices.Equal(got, until(11, 22)) {
		t.Errorf("tokens %v of a greedy text", got)
	}
}

func TestArgmaxInvariantIsLeftOutOfGreedyRequests(t *testing.T) {
	p := in(abi.SlotTruncate, abi.HookLogits, func(f *pipelinetest.Frame) abi.Action { return 0 })
	p.Manifest.ArgmaxInvariant = true
	x, _ := run(t, one(p))
	if p.Opened() != 0 {
		t.Error("it was opened for a greedy request")
	}
	if r := x.Reports(); len(r) != 1 || r[0].Outcome != pipeline.OutcomeSkipped || r[0].Reason != pipeline.ReasonGreedy || r[0].Error != nil || r[0].Calls != 0 {
		t.Errorf("reports %+v", r)
	}
	if run(t, one(p), func(_ *pipeline.Options, p *sampling.Params) { p.Temperature = 1 }); p.Opened() != 1 {
		t.Error("it was not opened for a drawn one")
	}
}

func TestTwoChoosers(t *testing.T) {
	c := func(f *pipelinetest.Frame) abi.Action { return 0 }
	a, b := in(abi.SlotChoose, abi.HookChoose, c), in(abi.SlotChoose, abi.HookChoose, c)
	if _, err := begin(t, []*pipelinetest.Plugin{a, b}); !errors.Is(err, pipeline.ErrTwoChoosers) || a.Closed() != 1 || b.Closed() != 1 {
		t.Errorf("%v, %d and %d closed", err, a.Closed(), b.Closed())
	}
}

func TestNotInterested(t *testing.T) {
	p := in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { t.Error("called"); return 0 })
	s := p.Spec(vocab)
	s.Open = func(spent pipeline.Spent) (pipeline.Instance, error) { spent(7, 0); return nil, nil }
	x, err := begin(t, nil, func(o *pipeline.Options, _ *sampling.Params) { o.Plugins = []pipeline.Spec{s} })
	if err != nil {
		t.Fatal(err)
	}
	if n := x.chain.Needs(); n.View != sampling.Best {
		t.Errorf("needs %v of the model", n)
	}
	if x.finish(t); x.Reports()[0].Outcome != pipeline.OutcomeIdle || x.Reports()[0].OnceFuel != 7 {
		t.Errorf("report %+v", x.Reports()[0])
	}
}

func TestOpenFails(t *testing.T) {
	p := in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action { return 0 })
	p.Open = func() error { return errors.New("no") }
	var e *pipeline.Error
	if _, err := begin(t, one(p)); !errors.As(err, &e) || e.Code != "open" {
		t.Errorf("error %v", err)
	}
	p.OnError = pipeline.Skip
	if _, got := run(t, one(p)); !slices.Equal(got, until(11, 22)) {
		t.Errorf("skipped: %v", got)
	}
}

// TestRestart: a new instance reads the text again and the step is tried again; a second
// failure is final.
func TestRestart(t *testing.T) {
	made, replayed := 0, []int32(nil)
	p := &pipelinetest.Plugin{OnError: pipeline.Restart, Manifest: abi.Manifest{Name: "r", Slot: abi.SlotBias}}
	fatal := 1 // instances that fail
	p.New = func() map[abi.Hook]pipelinetest.Code {
		made++
		mine := made
		return map[abi.Hook]pipelinetest.Code{
			abi.HookPlan: func(f *pipelinetest.Frame) abi.Action {
				if f.U(abi.OffStep) == 4 && mine <= fatal {
					panic(&pipelinetest.Error{Code: "trap"})
				}
				return f.Edit(0, 15, abi.OpBan, 0)
			},
			abi.HookAccept: func(f *pipelinetest.Frame) abi.Action {
				if f.U(abi.OffFlags)&abi.FlagReplay != 0 {
					replayed = append(replayed, f.Accepted()...)
				}
				return 0
			},
		}
	}
	x, got := run(t, one(p))
	if want := append(until(11, 14), until(16, 23)...); !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
	if !slices.Equal(replayed, until(11, 14)) || x.Reports()[0].Outcome != pipeline.OutcomeRestarted || p.Closed() != 1 {
		t.Errorf("replayed %v, report %+v, %d closed", replayed, x.Reports()[0], p.Closed())
	}
	fatal, made = 2, 0
	x, err := begin(t, one(p))
	if err != nil {
		t.Fatal(err)
	}
	if e := x.fails(t); e.Code != "trap" || made != 2 {
		t.Errorf("%v after %d instances", e, made)
	}
}

func TestChanged(t *testing.T) {
	p := in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
		return f.Edit(0, 15, abi.OpBan, 0) | f.Edit(1, 70, abi.OpAdd, 1)
	})
	x, _ := run(t, one(p))
	if r := x.Reports()[0]; r.Changed != 1 || r.Calls != 12 || r.Fuel != 120 {
		t.Errorf("report %+v, want 1 token changed in 12 calls", r)
	}
}

// TestRestartShowsThePromptAgain: a new instance sees the prompt as the one before it did,
// and what it makes of it is not done twice.
func TestRestartShowsThePromptAgain(t *testing.T) {
	var saw []string
	failed := false
	p := in(abi.SlotBias, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
		if f.U(abi.OffStep) == 1 && !failed {
			failed = true
			panic(&pipelinetest.Error{Code: "trap"})
		}
		return 0
	})
	p.OnError, p.Manifest.View.Text = pipeline.Restart, true
	p.Hooks[abi.HookPrompt] = func(f *pipelinetest.Frame) abi.Action {
		saw = append(saw, fmt.Sprint(f.In(), f.Tokens(), f.U(abi.OffNPrompt), f.U(abi.OffFlags)&abi.FlagReplay))
		return f.Text("rewritten")
	}
	x, err := pipeline.New(pipeline.Options{
		Plugins: pipelinetest.Specs(vocab, p), Vocab: vocab, Max: 12, Now: time.Now,
		Tokenize: func(string) ([]int32, error) { return []int32{10}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	prompt, err := x.Prompt("asked", []int32{1, 2})
	if err != nil || !slices.Equal(prompt, []int32{10}) {
		t.Fatalf("prompt %v, %v", prompt, err)
	}
	x.Begin(prompt)
	if err := x.Plan(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Accept(11); err != nil {
		t.Fatal(err)
	}
	if err := x.Plan(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"asked[1 2] 2 0", fmt.Sprint("asked[1 2] 2 ", abi.FlagReplay)}; !slices.Equal(saw, want) {
		t.Errorf("its prompt hook saw %q, want %q", saw, want)
	}
	if r := x.Reports()[0]; r.Outcome != pipeline.OutcomeRestarted || r.Rewritten != 1 {
		t.Errorf("report %+v", r)
	}
}
