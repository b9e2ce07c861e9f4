package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
)

// costly opens for 12 million fuel, and each of its hooks takes 10.
func costly(hooks ...abi.Hook) *pipelinetest.Plugin {
	p := in(abi.SlotBias, hooks[0], func(*pipelinetest.Frame) abi.Action { return 0 })
	for _, h := range hooks {
		p.Hooks[h] = p.Hooks[hooks[0]]
	}
	p.OpenFuel, p.OpenTime = 12_000_000, time.Hour
	return p
}

// TestReportsTellWhatCameOnce: opening, the prompt and the end are no part of what tokens
// cost, and are told.
func TestReportsTellWhatCameOnce(t *testing.T) {
	x, err := begin(t, one(costly(abi.HookPlan, abi.HookPrompt, abi.HookEnd)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Prompt("a", []int32{10}); err != nil {
		t.Fatal(err)
	}
	tokens := len(x.finish(t))
	r := x.Reports()[0]
	if r.OnceFuel != 12_000_020 || r.OnceTime < time.Hour || r.OnceTime > 2*time.Hour || r.Calls != tokens+2 {
		t.Errorf("%+v", r)
	}
	if r.Fuel != int64(10*tokens) || r.Time <= 0 || r.Time > time.Hour {
		t.Errorf("of %d tokens: %+v", tokens, r)
	}
	// The partner: what opens for nothing says so.
	free := costly(abi.HookPlan)
	free.OpenFuel, free.OpenTime = 0, 0
	if x, _ := run(t, one(free)); x.Reports()[0].OnceFuel != 0 {
		t.Errorf("%+v", x.Reports()[0])
	}
}

// TestReportsTellWhatFailedOpeningsTook: whatever comes of opening, it cost what it cost, and
// so does each of two instances.
func TestReportsTellWhatFailedOpeningsTook(t *testing.T) {
	for name, open := range map[string]func() error{
		"refuses": func() error { return errors.New("no") },
		"panics":  func() error { panic("no") },
	} {
		p := costly(abi.HookPlan)
		p.Open = open
		p.OnError = pipeline.Skip
		x, _ := run(t, one(p))
		if r := x.Reports()[0]; r.OnceFuel != 12_000_000 || r.Outcome != pipeline.OutcomeSkipped || r.Error == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	failed := false
	p := costly(abi.HookPlan)
	p.OnError = pipeline.Restart
	p.Hooks[abi.HookPlan] = func(*pipelinetest.Frame) abi.Action {
		if !failed {
			failed = true
			panic(&pipelinetest.Error{Code: "trap"})
		}
		return 0
	}
	x, _ := run(t, one(p))
	if r := x.Reports()[0]; r.OnceFuel != 24_000_000 || r.Outcome != pipeline.OutcomeRestarted {
		t.Errorf("restarted: %+v", r)
	}
}

// TestCancelledWhileOpening: the end of a request is no failure of a plugin that waited to
// open, whatever its policy; and none of those behind it opens.
func TestCancelledWhileOpening(t *testing.T) {
	for _, policy := range []pipeline.Policy{pipeline.Fail, pipeline.Skip, pipeline.Restart} {
		waits, behind := costly(abi.HookPlan), costly(abi.HookPlan)
		waits.OnError = policy
		waits.Open = func() error { return fmt.Errorf("no seat: %w", context.Canceled) }
		x, err := begin(t, []*pipelinetest.Plugin{waits, behind})
		var e *pipeline.Error
		if !errors.Is(err, context.Canceled) || errors.As(err, &e) || behind.Opened() != 0 || len(x.warned) != 0 {
			t.Errorf("%s: %v, %d opened behind it, warned %v", policy, err, behind.Opened(), x.warned)
			continue
		}
		for _, r := range x.Reports() {
			if r.Outcome != pipeline.OutcomeSkipped || r.Reason != pipeline.ReasonUnopened || r.Error != nil {
				t.Errorf("%s: %+v", policy, r)
			}
		}
	}
}

// TestCancelledWhileRestarting: the failure stays the one that there was.
func TestCancelledWhileRestarting(t *testing.T) {
	p := costly(abi.HookPlan)
	p.OnError = pipeline.Restart
	p.Hooks[abi.HookPlan] = func(*pipelinetest.Frame) abi.Action { panic(&pipelinetest.Error{Code: "trap"}) }
	p.Open = func() error {
		if p.Opened() > 0 {
			return context.Canceled
		}
		return nil
	}
	x, err := begin(t, one(p))
	if err != nil {
		t.Fatal(err)
	}
	if e := x.fails(t); e.Code != "trap" || x.Reports()[0].Outcome != pipeline.OutcomeFailed {
		t.Errorf("%v, %+v", e, x.Reports()[0])
	}
}
