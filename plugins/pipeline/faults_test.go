package pipeline_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// TestAFailureLeavesNothingOfAnAnswer: an answer is done whole or not at all, so a request
// that goes on without the plugin is as if it had none.
func TestAFailureLeavesNothingOfAnAnswer(t *testing.T) {
	trap := func(*pipelinetest.Frame) abi.Action { panic(&pipelinetest.Error{Code: "trap"}) }
	ban := func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 14, abi.OpBan, 0) }
	drawn := func(_ *pipeline.Options, p *sampling.Params) { p.Temperature = 1e-3 }
	for name, hooks := range map[string]map[abi.Hook]pipelinetest.Code{
		"edits, then an empty mask":  {abi.HookPlan: func(f *pipelinetest.Frame) abi.Action { return ban(f) | f.Allow() }},
		"edits, then a trap":         {abi.HookPlan: ban, abi.HookLogits: trap},
		"a mask, then a trap":        {abi.HookPlan: func(f *pipelinetest.Frame) abi.Action { return f.Allow(40, 41) }, abi.HookLogits: trap},
		"a temperature, then a trap": {abi.HookPlan: func(f *pipelinetest.Frame) abi.Action { return f.Temperature(1000) }, abi.HookLogits: trap},
		"a row, then no candidates": {abi.HookLogits: func(f *pipelinetest.Frame) abi.Action {
			for i := range vocab {
				f.PutF(f.L.Full+4*i, float32(i))
			}
			f.Put(abi.OffCandN, 0)
			return abi.Full | abi.Cands
		}},
		"candidates, then an edit of nothing": {abi.HookLogits: func(f *pipelinetest.Frame) abi.Action {
			id, l := f.Cand(3)
			f.SetCand(0, id, l)
			f.Put(abi.OffCandN, 1)
			return abi.Cands | f.Edit(0, vocab, abi.OpBan, 0)
		}},
	} {
		for i, setting := range []setting{func(*pipeline.Options, *sampling.Params) {}, drawn} {
			p := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "x", Slot: abi.SlotTruncate, Truncates: true}, OnError: pipeline.Skip, Mask: true, Full: true, Hooks: hooks}
			x, got := run(t, one(p), setting)
			if !slices.Equal(got, until(11, 22)) || len(x.warned) != 1 {
				t.Errorf("%s (%d): %v after %v", name, i, got, x.warned)
			}
		}
	}
}

// TestARestartKeepsTheConstraint: the new instance plans the step at which the old one
// failed.
func TestARestartKeepsTheConstraint(t *testing.T) {
	made := 0
	p := &pipelinetest.Plugin{OnError: pipeline.Restart, Manifest: abi.Manifest{Name: "r", Slot: abi.SlotConstrain}, Mask: true}
	p.New = func() map[abi.Hook]pipelinetest.Code {
		made++
		mine := made
		return map[abi.Hook]pipelinetest.Code{
			abi.HookPlan: func(f *pipelinetest.Frame) abi.Action { return f.Allow(40, 41) },
			abi.HookLogits: func(f *pipelinetest.Frame) abi.Action {
				if mine == 1 && f.U(abi.OffStep) == 2 { // 42 is likeliest
					panic(&pipelinetest.Error{Code: "trap"})
				}
				return 0
			},
		}
	}
	x, got := run(t, one(p))
	for _, id := range got {
		if id != 40 && id != 41 {
			t.Errorf("tokens %v, want 40 and 41 alone", got)
			break
		}
	}
	if made != 2 || x.Reports()[0].Outcome != pipeline.OutcomeRestarted {
		t.Errorf("%d instances, %+v", made, x.Reports()[0])
	}
}

// TestReplayIsAsTheFirstTime: a plugin that reads the text again is told the same.
func TestReplayIsAsTheFirstTime(t *testing.T) {
	var first, again []string
	made := 0
	p := &pipelinetest.Plugin{OnError: pipeline.Restart, Manifest: abi.Manifest{Name: "r", Slot: abi.SlotBias}}
	p.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	p.New = func() map[abi.Hook]pipelinetest.Code {
		made++
		mine, told := made, &first
		if made > 1 {
			told = &again
		}
		return map[abi.Hook]pipelinetest.Code{
			abi.HookPlan: func(f *pipelinetest.Frame) abi.Action {
				if mine == 1 && f.U(abi.OffStep) == 5 {
					panic(&pipelinetest.Error{Code: "trap"})
				}
				return 0
			},
			abi.HookAccept: func(f *pipelinetest.Frame) abi.Action {
				*told = append(*told, fmt.Sprint(f.Tokens(), f.Accepted(), f.U(abi.OffStep), f.U(abi.OffPosition), f.U(abi.OffLastToken), f.U(abi.OffNGenerated), f.U(abi.OffRandom)))
				return 0
			},
		}
	}
	_, got := run(t, one(p))
	if made != 2 || len(first) != 5 || len(again) < 5 || !slices.Equal(first, again[:5]) {
		t.Errorf("first\n%s\nagain\n%s", strings.Join(first, "\n"), strings.Join(again, "\n"))
	}
	if !slices.Equal(got, until(11, 22)) {
		t.Errorf("tokens %v", got)
	}
}

// TestHistoryAfterOtherPrompts: buffers that held a prompt that is gone are filled anew.
func TestHistoryAfterOtherPrompts(t *testing.T) {
	var atPrompt, atText []int32
	look := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "look", Slot: abi.SlotBias}}
	look.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	look.Hooks = map[abi.Hook]pipelinetest.Code{
		abi.HookPrompt: func(f *pipelinetest.Frame) abi.Action { atPrompt = f.Tokens(); return 0 },
		abi.HookPlan:   func(f *pipelinetest.Frame) abi.Action { atText = f.Tokens(); return 0 },
	}
	rewrite := in(abi.SlotTruncate, abi.HookPrompt, func(f *pipelinetest.Frame) abi.Action { return f.Force(7, 8, 9, 10) })
	x, err := begin(t, []*pipelinetest.Plugin{look, rewrite})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := x.Prompt("", []int32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	x.Begin(ids)
	if err := x.Plan(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(atPrompt, []int32{1, 2, 3}) || !slices.Equal(atText, []int32{7, 8, 9, 10}) {
		t.Errorf("history %v at the prompt, %v behind it", atPrompt, atText)
	}
}

// TestHistoryAfterARewind: one that asks in accept and never plans sees what came in the
// place of what it took back.
func TestHistoryAfterARewind(t *testing.T) {
	asked := false
	var seen []int32
	p := in(abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
		seen = f.Tokens()
		if f.U(abi.OffToken) == 14 && !asked {
			asked = true
			return f.Rewind(1) | f.Force(50)
		}
		return 0
	})
	p.Manifest.View.Holdback = 2
	p.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	_, got := run(t, one(p))
	if want := append([]int32{10}, got...); !slices.Equal(seen, want) || got[3] != 50 {
		t.Errorf("history %v, want %v", seen, want)
	}
}

// TestPromptsThatCannotBeRead: a tokenizer's fault is told as it is, and a plugin that
// forces tokens gives those behind it their text.
func TestPromptsThatCannotBeRead(t *testing.T) {
	no := errors.New("no beginning")
	see := ""
	force := in(abi.SlotConstrain, abi.HookPrompt, func(f *pipelinetest.Frame) abi.Action { return f.Force(7, 8) })
	text := in(abi.SlotBias, abi.HookPrompt, func(f *pipelinetest.Frame) abi.Action { see = f.In(); return f.Text("") })
	text.Manifest.View.Text = true
	x, err := begin(t, []*pipelinetest.Plugin{force, text}, func(o *pipeline.Options, _ *sampling.Params) {
		o.Tokenize = func(string) ([]int32, error) { return nil, no }
		o.Detokenize = func(ids []int32) string { return fmt.Sprint(ids) }
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Prompt("asked", []int32{1})
	if !errors.Is(err, no) || !strings.Contains(err.Error(), text.Manifest.Name) {
		t.Errorf("error %v", err)
	}
	if see != "[7 8]" {
		t.Errorf("the plugin behind saw %q", see)
	}
}

// TestTextsOfSeveralPlugins: a chain of plugins grows a text no more than one does.
func TestTextsOfSeveralPlugins(t *testing.T) {
	var chain []*pipelinetest.Plugin
	for i := range 4 {
		p := in(abi.SlotText, abi.HookText, func(f *pipelinetest.Frame) abi.Action { return f.Text(strings.Repeat(f.In(), 3)) })
		p.Manifest.Name = fmt.Sprint("times-3-", i)
		chain = append(chain, p)
	}
	x, err := begin(t, chain)
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := x.Text([]byte("0123456789"), false); err != nil || len(out) != 810 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	var e *pipeline.Error
	if out, _, err := x.Text([]byte(strings.Repeat("0123456789", 200)), false); !errors.As(err, &e) || e.Code != "quota" {
		t.Errorf("%d bytes, %v; want the error quota", len(out), err)
	}
}

// TestBacktrackAtTheEnd: nothing can be taken back there, and nothing is counted.
func TestBacktrackAtTheEnd(t *testing.T) {
	p := in(abi.SlotText, abi.HookText, func(f *pipelinetest.Frame) abi.Action {
		if f.U(abi.OffFlags)&abi.FlagLast != 0 {
			return f.Rewind(1)
		}
		return 0
	})
	p.Manifest.View.Holdback = 2
	x, got := run(t, one(p))
	if !slices.Equal(got, until(11, 22)) || x.Reports()[0].Rewinds != 0 {
		t.Errorf("%v, %+v", got, x.Reports()[0])
	}
}

// TestRequiredPluginsAreNotLeftOut of greedy requests, nor those that do more than to
// change logits.
func TestRequiredPluginsAreNotLeftOut(t *testing.T) {
	nothing := func(*pipelinetest.Frame) abi.Action { return 0 }
	for name, c := range map[string]struct {
		hooks    []abi.Hook
		required bool
		single   bool
		out      bool
	}{
		"logits":              {hooks: []abi.Hook{abi.HookLogits}, out: true},
		"top_k 1":             {hooks: []abi.Hook{abi.HookLogits}, single: true, out: true},
		"required":            {hooks: []abi.Hook{abi.HookLogits}, required: true},
		"sees the text":       {hooks: []abi.Hook{abi.HookLogits, abi.HookAccept}},
		"rewrites the text":   {hooks: []abi.Hook{abi.HookLogits, abi.HookText}},
		"stores at the end":   {hooks: []abi.Hook{abi.HookLogits, abi.HookEnd}},
		"looks at the prompt": {hooks: []abi.Hook{abi.HookPrompt}},
	} {
		p := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "x", Slot: abi.SlotTruncate, ArgmaxInvariant: true}, Hooks: map[abi.Hook]pipelinetest.Code{}}
		for _, h := range c.hooks {
			p.Hooks[h] = nothing
		}
		s := p.Spec(vocab)
		s.Required = c.required
		_, err := begin(t, nil, func(o *pipeline.Options, sp *sampling.Params) {
			o.Plugins, o.Single = []pipeline.Spec{s}, c.single
			if c.single {
				sp.Temperature, sp.TopK = 1, 1
			}
		})
		if err != nil || (p.Opened() == 0) != c.out {
			t.Errorf("%s: opened %d times, %v", name, p.Opened(), err)
		}
	}
}

// TestFailuresAtOpenAreReported: who fails as it opens is in the reports, whatever becomes
// of the request, and who was not opened for it did neither well nor badly.
func TestFailuresAtOpenAreReported(t *testing.T) {
	nothing := func(*pipelinetest.Frame) abi.Action { return 0 }
	for policy, want := range map[pipeline.Policy][]string{
		pipeline.Fail:    {"ok", "failed trap", "skipped unopened"},
		pipeline.Restart: {"ok", "failed trap", "skipped unopened"}, // it would do the same again
		pipeline.Skip:    {"ok", "skipped trap", "ok"},
	} {
		first, bad, last := in(abi.SlotConstrain, abi.HookPlan, nothing), in(abi.SlotBias, abi.HookPlan, nothing), in(abi.SlotText, abi.HookText, nothing)
		opened := 0
		bad.OnError, bad.Open = policy, func() error { opened++; return &pipelinetest.Error{Code: "trap"} }
		o := pipeline.Options{Plugins: pipelinetest.Specs(vocab, first, bad, last), Vocab: vocab, Max: 12, Now: time.Now}
		p, err := pipeline.New(o)
		var e *pipeline.Error
		if failed := errors.As(err, &e) && e.Code == "trap" && e.Step == -1; failed != (policy != pipeline.Skip) || opened != 1 {
			t.Errorf("%s: %v after %d tries to open it", policy, err, opened)
		}
		var got []string
		for _, r := range p.Reports() {
			s := string(r.Outcome)
			if r.Error != nil {
				s += " " + r.Error.Code
			}
			if r.Reason != "" {
				s += " " + r.Reason
			}
			got = append(got, s)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: reports %q, want %q", policy, got, want)
		}
		p.Close()
		if first.Opened() != 1 || first.Closed() != 1 || last.Opened() != last.Closed() {
			t.Errorf("%s: %d of 1 and %d of %d instances were closed", policy, first.Closed(), last.Closed(), last.Opened())
		}
	}
}

// TestNoRestartAtThePrompt: no token is being decided there, so a new instance would do
// what the one before it did.
func TestNoRestartAtThePrompt(t *testing.T) {
	p := in(abi.SlotBias, abi.HookPrompt, func(*pipelinetest.Frame) abi.Action { panic(&pipelinetest.Error{Code: "trap"}) })
	p.OnError = pipeline.Restart
	x, err := begin(t, one(p))
	if err != nil {
		t.Fatal(err)
	}
	var e *pipeline.Error
	if _, err := x.Prompt("", []int32{1}); !errors.As(err, &e) || e.Step != -1 || p.Opened() != 1 {
		t.Errorf("%v after %d instances", err, p.Opened())
	}
	if r := x.Reports()[0]; r.Outcome != pipeline.OutcomeFailed || r.Error != e {
		t.Errorf("report %+v", r)
	}
}
