package pipeline_test

import (
	"slices"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// forcing forces tokens once, at a step.
func forcing(slot abi.Slot, step int, ids ...int32) *pipelinetest.Plugin {
	p := in(slot, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
		if f.U(abi.OffStep) == step {
			return f.Force(ids...)
		}
		return 0
	})
	p.Manifest.Name = "forcing"
	return p
}

// TestForcedTokensKeepConstraints: what a plugin forces comes as far as those that
// constrain let it.
func TestForcedTokensKeepConstraints(t *testing.T) {
	planned := 0
	lock := func(act pipelinetest.Code) *pipelinetest.Plugin {
		p := in(abi.SlotConstrain, abi.HookPlan, func(f *pipelinetest.Frame) abi.Action {
			planned++
			return act(f)
		})
		p.Mask = true
		return p
	}
	banned := func(f *pipelinetest.Frame) abi.Action { return f.Edit(0, 60, abi.OpBan, 0) }
	masked := func(f *pipelinetest.Frame) abi.Action { return f.Allow(append(until(11, 30), until(50, 59)...)...) }
	for name, c := range map[string]struct {
		plugins []*pipelinetest.Plugin
		want    []int32
	}{
		"nobody constrains": {one(forcing(abi.SlotBias, 2, 50, 60, 70)), append([]int32{11, 12, 50, 60, 70}, until(71, 77)...)},
		"a ban":             {[]*pipelinetest.Plugin{forcing(abi.SlotBias, 2, 50, 60, 70), lock(banned)}, append([]int32{11, 12, 50}, until(51, 59)...)},
		"a mask":            {[]*pipelinetest.Plugin{forcing(abi.SlotBias, 2, 50, 60, 70), lock(masked)}, append([]int32{11, 12, 50}, until(51, 59)...)},
		"at once":           {[]*pipelinetest.Plugin{forcing(abi.SlotBias, 2, 60, 70), lock(masked)}, until(11, 22)},
		"both constrain":    {[]*pipelinetest.Plugin{forcing(abi.SlotConstrain, 2, 60, 70), lock(masked)}, until(11, 22)},
		"behind it":         {[]*pipelinetest.Plugin{lock(masked), forcing(abi.SlotConstrain, 2, 60, 70)}, until(11, 22)},
		"a bias that bans":  {[]*pipelinetest.Plugin{forcing(abi.SlotConstrain, 2, 50, 60), in(abi.SlotBias, abi.HookPlan, banned)}, append([]int32{11, 12, 50, 60}, until(61, 68)...)},
	} {
		planned = 0
		x, got := run(t, c.plugins)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if planned > 12 {
			t.Errorf("%s: planned %d times in 12 steps", name, planned)
		}
		for _, r := range x.Reports() {
			if came := len(c.want) - len(slices.DeleteFunc(slices.Clone(c.want), func(id int32) bool { return id == 60 || id == 70 })); r.Name == "forcing" && r.Changed < came {
				t.Errorf("%s: report %+v", name, r)
			}
		}
	}
}

func TestSuppressedTokensAreNotForced(t *testing.T) {
	suppressed := func(o *pipeline.Options, _ *sampling.Params) { o.Suppressed = []int32{60} }
	x, err := begin(t, one(forcing(abi.SlotBias, 2, 50, 60)), suppressed)
	if err != nil {
		t.Fatal(err)
	}
	if e := x.fails(t); e.Code != "action" {
		t.Errorf("forced with %v", e)
	}
	if _, got := run(t, one(forcing(abi.SlotBias, 2, 50, 61)), suppressed); got[3] != 61 {
		t.Errorf("tokens %v", got)
	}
}

// TestForceBesideBacktrack: "take this back and put that there" and "take this back and
// stop" are one answer each.
func TestForceBesideBacktrack(t *testing.T) {
	act := func(and func(f *pipelinetest.Frame) abi.Action) *pipelinetest.Plugin {
		done := false
		p := in(abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffToken) != 14 || done {
				return 0
			}
			done = true
			return f.Rewind(2) | and(f)
		})
		p.Manifest.View.Holdback = 4
		return p
	}
	x, got := run(t, one(act(func(f *pipelinetest.Frame) abi.Action { return f.Force(50, 60) })))
	if want := append([]int32{11, 12, 50, 60}, until(61, 68)...); !slices.Equal(got, want) {
		t.Errorf("forced: %v, want %v", got, want)
	}
	if r := x.Reports()[0]; r.Rewinds != 1 || r.Changed != 4 {
		t.Errorf("forced: report %+v", r)
	}
	x, got = run(t, one(act(func(f *pipelinetest.Frame) abi.Action { return f.Stop(abi.StopContentFilter) })))
	if want := until(11, 12); !slices.Equal(got, want) || x.stop != abi.StopContentFilter {
		t.Errorf("stopped: %v for %d, want %v", got, x.stop, want)
	}
	// Another one's forced tokens are of the text that is gone.
	_, got = run(t, []*pipelinetest.Plugin{forcing(abi.SlotBias, 4, 70, 71, 72), act(func(*pipelinetest.Frame) abi.Action { return 0 })})
	if want := append(until(11, 14), 70, 71, 72, 73, 74, 75, 76, 77); !slices.Equal(got, want) {
		t.Errorf("others: %v, want %v", got, want)
	}
}
