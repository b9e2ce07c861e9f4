package pipeline_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/sampling"
)

// TestText: hooks see each other's text, in their order, and the end.
func TestText(t *testing.T) {
	ended := 0
	double := in(abi.SlotText, abi.HookText, func(f *pipelinetest.Frame) abi.Action { return f.Text(f.In() + f.In()) })
	keep := in(abi.SlotText, abi.HookText, nil) // holds everything until the end
	held := ""
	keep.Hooks[abi.HookText] = func(f *pipelinetest.Frame) abi.Action {
		held += f.In()
		if f.U(abi.OffFlags)&abi.FlagLast == 0 {
			return f.Text("")
		}
		ended++
		return f.Text("<" + held + ">")
	}
	x, _ := run(t, []*pipelinetest.Plugin{double, keep}, func(o *pipeline.Options, _ *sampling.Params) { o.Max = 4 })
	if want := "<\x0b\x0b\x0c\x0c\x0d\x0d\x0e\x0e>"; x.said != want || ended != 1 {
		t.Errorf("said %q after %d ends, want %q", x.said, ended, want)
	}
	if r := x.Reports()[0]; r.Rewritten != 4 {
		t.Errorf("report %+v", r)
	}
}

func TestTextComesInPieces(t *testing.T) {
	var sizes []int
	p := in(abi.SlotText, abi.HookText, func(f *pipelinetest.Frame) abi.Action { sizes = append(sizes, len(f.In())); return 0 })
	x, err := begin(t, one(p))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("äö", 3000)
	out, _, err := x.Text([]byte(long), true)
	if err != nil || string(out) != long || !slices.Equal(sizes, []int{4096, 4096, 3808}) {
		t.Errorf("%d bytes of %d, %v, pieces %v", len(out), len(long), err, sizes)
	}
}

func TestPrompt(t *testing.T) {
	tokenize := func(o *pipeline.Options, _ *sampling.Params) {
		o.Tokenize = func(s string) (ids []int32, err error) {
			for _, b := range []byte(s) {
				ids = append(ids, int32(b%vocab))
			}
			return ids, nil
		}
	}
	see := ""
	a := in(abi.SlotBias, abi.HookPrompt, func(f *pipelinetest.Frame) abi.Action {
		return f.Text(strings.ReplaceAll(f.In(), "secret", "XX"))
	})
	a.Manifest.View.Text = true
	b := in(abi.SlotBias, abi.HookPrompt, func(f *pipelinetest.Frame) abi.Action { see = f.In(); return f.Force(7, 8, 9) })
	b.Manifest.View.Text = true
	x, err := begin(t, []*pipelinetest.Plugin{a, b}, tokenize)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := x.Prompt("a secret", []int32{1})
	if err != nil || !slices.Equal(ids, []int32{7, 8, 9}) || see != "a XX" {
		t.Errorf("%v, %v; the second sees %q", ids, err, see)
	}
	no := in(abi.SlotBias, abi.HookPrompt, func(f *pipelinetest.Frame) abi.Action { return f.Stop(abi.StopContentFilter) })
	if x, err = begin(t, one(no), tokenize); err != nil {
		t.Fatal(err)
	}
	if _, err = x.Prompt("x", []int32{1}); !errors.Is(err, pipeline.ErrRefused) {
		t.Errorf("refused with %v", err)
	}
}

// TestRandom: the words depend on the seed, the plugin's name, the step and the hook, and
// on nothing else.
func TestRandom(t *testing.T) {
	words := func(name string, seed uint64, others ...*pipelinetest.Plugin) []int {
		var got []int
		p := in(abi.SlotBias, abi.HookPlan, nil)
		p.Manifest.Name = name
		p.Hooks[abi.HookPlan] = func(f *pipelinetest.Frame) abi.Action {
			for i := range abi.RandomWords {
				got = append(got, f.U(abi.OffRandom+4*i))
			}
			return 0
		}
		run(t, append(others, p), func(o *pipeline.Options, _ *sampling.Params) { o.Seed = seed })
		return got
	}
	a := words("a", 1)
	if other := words("a", 1, in(abi.SlotBias, abi.HookPlan, func(*pipelinetest.Frame) abi.Action { return 0 })); !slices.Equal(a, other) {
		t.Error("another plugin changes the words")
	}
	if slices.Equal(a, words("b", 1)) || slices.Equal(a, words("a", 2)) {
		t.Error("the name or the seed changes nothing")
	}
	slices.Sort(a)
	if len(slices.Compact(a)) != 12*abi.RandomWords {
		t.Error("words repeat")
	}
}
