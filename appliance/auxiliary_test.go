package appliance_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

// logitsOf is what the noisy model says behind a text, whatever it said before.
func logitsOf(t testing.TB, ids []int32) []float32 {
	t.Helper()
	m := noise()
	slot, _, ok := m.Acquire(ids, 0)
	if !ok {
		t.Fatal("no slot")
	}
	var rows []engine.Row
	for from := 0; from < len(ids); from += 512 {
		rows = rows[:0]
		for _, id := range ids[from:min(from+512, len(ids))] {
			rows = append(rows, engine.Row{Slot: slot, Token: id})
		}
		last := &rows[len(rows)-1]
		last.Want, last.Read = true, ops.Want{Kind: ops.WantRow}
		heads, err := m.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		if from+512 >= len(ids) {
			return heads[0].Row
		}
	}
	return nil
}

func tokensOf(text string) (out []int32) {
	for _, c := range []byte(text) {
		out = append(out, int32(c))
	}
	return out
}

// guided is a plugin that opens auxiliary sequences, checks at each step that their logits
// are those of the text behind their prompts, and moves away from the first of them.
type guided struct {
	*pipelinetest.Plugin
	prompts  []string
	strength float32
	steps    atomic.Int32 // rows that were checked
	refused  atomic.Int32 // sequences that were not given
	replayed atomic.Int32 // prompts that were shown again
	last     atomic.Int32 // steps with flag last
	fail     func(f *frame)
	begun    func() // once the sequences are open

	open appliance.PluginOpen
	all  *appliancetest.Plugins
}

// mixed is the guidance by hand.
func mixed(main, other []float32, strength float32) []float32 {
	out := make([]float32, len(main))
	for i := range out {
		out[i] = (1+strength)*main[i] - strength*other[i]
	}
	return out
}

func guide(t testing.TB, strength float32, prompts ...string) *guided {
	g := &guided{prompts: prompts, strength: strength}
	g.Plugin = &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "guide", Slot: abi.SlotBias, Capabilities: []string{abi.CapAuxSeq}}, Full: true}
	g.New = func() map[abi.Hook]pipelinetest.Code {
		own := g.open.Sequences
		var numbers []int
		return map[abi.Hook]pipelinetest.Code{
			abi.HookPrompt: func(f *frame) abi.Action {
				if f.U(abi.OffFlags)&abi.FlagReplay != 0 {
					g.replayed.Add(1)
				}
				for _, p := range g.prompts {
					n, err := own.Open(tokensOf(p))
					if err != nil {
						g.refused.Add(1)
						panic(&pipelinetest.Error{Code: "quota"})
					}
					numbers = append(numbers, n)
				}
				if g.begun != nil {
					g.begun()
				}
				return 0
			},
			abi.HookPlan: func(f *frame) abi.Action {
				// An instance that took another's place may plan a step that is being decided.
				if own.Row(1) != nil && g.replayed.Load() == 0 {
					t.Error("there are logits while a step is planned")
				}
				return 0
			},
			abi.HookLogits: func(f *frame) abi.Action {
				if g.fail != nil {
					g.fail(f)
				}
				if f.U(abi.OffFlags)&abi.FlagLast != 0 {
					g.last.Add(1)
				}
				said := f.Tokens()[f.U(abi.OffNPrompt):]
				for i, n := range numbers {
					row := own.Row(n)
					if row == nil {
						panic(&pipelinetest.Error{Code: "gone"})
					}
					if want := logitsOf(t, append(tokensOf(g.prompts[i]), said...)); !slices.Equal(row, want) {
						t.Errorf("step %d: the logits of sequence %d are of another text", f.U(abi.OffStep), n)
					}
					if s, ok := own.Stats(n); !ok || s.Finite != len(row) || s.Max != slices.Max(row) {
						t.Errorf("statistics %+v, %v", s, ok)
					}
					g.steps.Add(1)
				}
				if own.Row(0) != nil || own.Row(len(numbers)+1) != nil {
					t.Error("there are logits of a sequence that is none")
				}
				if g.strength == 0 {
					return 0
				}
				other := own.Row(numbers[0])
				for id := range other {
					at := f.L.Full + 4*id
					f.PutF(at, mixed([]float32{f.F(at)}, []float32{other[id]}, g.strength)[0])
				}
				return abi.Full
			},
		}
	}
	return g
}

func (g *guided) opened(o appliance.PluginOpen) { g.open = o }

// guiding serves a model with a guide.
func guiding(t testing.TB, m *appliancetest.Scripted, cfg appliance.Config, g *guided) *bench {
	t.Helper()
	b, p := with(t, m, cfg)
	g.all = p.Add(g.Plugin, "", g.opened)
	t.Cleanup(func() {
		if g.Opened() != g.Closed() {
			t.Errorf("%d guides opened, %d closed", g.Opened(), g.Closed())
		}
	})
	return b
}

// TestAuxiliaryMixes: a text is that of (1+s)·main − s·other, computed by hand.
func TestAuxiliaryMixes(t *testing.T) {
	const prompt, other, strength, n = "a kind word", "rude", 0.5, 40
	var want []int32
	for range n {
		row := mixed(logitsOf(t, append(tokensOf(prompt), want...)), logitsOf(t, append(tokensOf(other), want...)), strength)
		best := 0
		for id, l := range row {
			if l > row[best] {
				best = id
			}
		}
		if int32(best) == appliancetest.EOS {
			t.Fatal("the text ends early: another prompt is needed")
		}
		want = append(want, int32(best))
	}
	for _, o := range []appliancetest.Options{{}, {Recurrent: true}, {MaxRows: 4}, {Slots: 2}} {
		for _, speculate := range []appliance.Speculation{appliance.SpeculateOff, appliance.SpeculateLookup} {
			g := guide(t, strength, other)
			b := guiding(t, appliancetest.NewHashed(o), appliance.Config{Speculate: speculate}, g)
			for range 2 { // the second time from cached prompts
				got := b.complete(t, asking(prompt, n, "guide"))
				for i, tok := range got.Tokens {
					if tok.ID != want[i] {
						t.Fatalf("%+v: token %d is %d, want %d", o, i, tok.ID, want[i])
					}
				}
				if len(got.Tokens) != n || got.DraftedTokens != 0 || got.Plugins[0].Outcome != "ok" {
					t.Errorf("%+v: %d tokens, %d guesses, %+v", o, len(got.Tokens), got.DraftedTokens, got.Plugins)
				}
			}
			if plain := b.complete(t, asking(prompt, n)); plain.Tokens[5].ID == want[5] && plain.Tokens[6].ID == want[6] {
				t.Error("the text is as without guidance: the test sees nothing")
			}
			if g.steps.Load() != 2*n {
				t.Errorf("%d rows were checked", g.steps.Load())
			}
		}
	}
}

// TestAuxiliaryFollowsTheText: two sequences are in step with a text that goes back and
// has tokens forced into it.
func TestAuxiliaryFollowsTheText(t *testing.T) {
	force := coded("force", abi.SlotBias, abi.HookAccept, func(f *frame) abi.Action {
		if f.U(abi.OffStep) == 20 {
			return f.Force(tokensOf("forced at once, all of it.")...)
		}
		return 0
	})
	for _, o := range []appliancetest.Options{{}, {Recurrent: true}, {MaxRows: 8}} {
		g := guide(t, 0, "x", "another prompt")
		p := &appliancetest.Plugins{}
		b := serve(t, appliancetest.NewHashed(o), appliance.Config{Plugins: p})
		plain := b.complete(t, asking("two", 120)).Text
		bad := plain[10:12]
		code, opened := phrase(bad, 2)
		p.Add(code, "", opened).Add(force, "", nil).Add(g.Plugin, "", g.opened)
		runs := b.model.Runs()
		got := b.complete(t, asking("two", 120, "guide", "phrase", "force"))
		runs = b.model.Runs() - runs
		if strings.Contains(got.Text, bad) || !strings.Contains(got.Text, "forced at once") || len(got.Tokens) != 120 {
			t.Errorf("%+v: %q", o, got.Text)
		}
		if r := got.Plugins; !slices.ContainsFunc(r, func(r appliance.PluginReport) bool { return r.Name == "phrase" && r.Rewinds > 0 }) {
			t.Errorf("nothing was taken back: %+v", r)
		}
		if g.steps.Load() < 2*90 {
			t.Errorf("%d rows were checked", g.steps.Load())
		}
		if o.MaxRows == 0 && !o.Recurrent && runs > 110 {
			t.Errorf("%d steps: forced tokens did not run together", runs)
		}
	}
}

// TestAuxiliaryIsRefused where it cannot be had; the plugin's policy decides then.
func TestAuxiliaryIsRefused(t *testing.T) {
	long := strings.Repeat("long ", 900)
	for _, tt := range []struct {
		name    string
		o       appliancetest.Options
		prompts []string
	}{
		{"no slot", appliancetest.Options{Slots: 1}, []string{"a"}},
		{"one slot", appliancetest.Options{Slots: 2}, []string{"a", "b"}},
		{"more than two", appliancetest.Options{Slots: 9}, []string{"a", "b", "c"}},
		{"no prompt", appliancetest.Options{}, []string{""}},
		{"no room", appliancetest.Options{}, []string{long}},
		{"small batches", appliancetest.Options{MaxRows: 3}, []string{"a", "b"}},
	} {
		g := guide(t, 0, tt.prompts...)
		b := guiding(t, appliancetest.NewHashed(tt.o), appliance.Config{}, g)
		var e *appliance.Error
		// To open one without a prompt is the plugin's own mistake, all else the request's.
		own, code := tt.name == "no prompt", appliance.CodeRefused
		if own {
			code = appliance.CodePlugin
		}
		if _, err := b.try(t, asking("x", 20, "guide")); !errors.As(err, &e) || e.Code != code || e.Plugin.Code != "quota" {
			t.Errorf("%s: %v", tt.name, err)
		}
		r := asking("x", 20, "guide")
		r.Plugins[0].OnError = "skip"
		got := b.complete(t, r)
		if want := b.complete(t, asking("x", 20)); got.Text != want.Text || got.Plugins[0].Code() != "quota" {
			t.Errorf("%s: %q, want %q; %+v", tt.name, got.Text, want.Text, got.Plugins)
		}
		if blamed := len(g.all.Failures()["hash of guide"]); own != (blamed == 2) || blamed == 1 {
			t.Errorf("%s: counted as %d failures", tt.name, blamed)
		}
		if n := g.refused.Load(); n != 2 {
			t.Errorf("%s: refused %d times", tt.name, n)
		}
	}
}

// TestAuxiliaryLimitsTheText: what does not fit behind its prompt is not generated.
func TestAuxiliaryLimitsTheText(t *testing.T) {
	g := guide(t, 0, strings.Repeat("x", 93))
	b := guiding(t, appliancetest.NewHashed(appliancetest.Options{Context: 100}), appliance.Config{}, g)
	got := b.complete(t, asking("y", 50, "guide"))
	if len(got.Tokens) != 7 || got.Finish != appliance.FinishLength || g.last.Load() != 1 {
		t.Errorf("%d tokens, %s, %d last ones", len(got.Tokens), got.Finish, g.last.Load())
	}
}

// TestAuxiliaryWaitsForNobody: a request gets no second sequence where another one would
// have to wait for that slot, and one that comes later waits no longer than for any slot.
func TestAuxiliaryWaitsForNobody(t *testing.T) {
	gate := make(chan struct{})
	g := guide(t, 0, "a")
	b := guiding(t, appliancetest.NewHashed(appliancetest.Options{Slots: 3, Gate: gate}), appliance.Config{QueueMax: 10}, g)
	start := func(names ...string) *appliance.Completion {
		c, err := b.Start(within(t), asking("x", 10, names...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := start()         // one of three slots
	second := start("guide") // and the other two
	third := start("guide")  // nothing is left
	later := []*appliance.Completion{start(), start()}
	close(gate)
	var e *appliance.Error
	if _, err := third.Wait(within(t)); !errors.As(err, &e) || e.Code != appliance.CodeRefused || e.Plugin.Code != "quota" {
		t.Errorf("the third request ended with %v", err)
	}
	for _, c := range append(later, first, second) {
		if _, err := c.Wait(within(t)); err != nil {
			t.Error(err)
		}
	}
	if _, err := start("guide").Wait(within(t)); err != nil {
		t.Errorf("when all is over: %v", err)
	}
}

// TestManyWithAuxiliary: texts with and without a second sequence, side by side, are what
// each is alone.
func TestManyWithAuxiliary(t *testing.T) {
	g := guide(t, 0.5, "other")
	b := guiding(t, appliancetest.NewHashed(appliancetest.Options{Slots: 5, MaxRows: 12}), appliance.Config{QueueMax: 100}, g)
	want := map[string]string{}
	for i := range 6 {
		prompt := fmt.Sprint("prompt ", i)
		want[prompt] = b.complete(t, asking(prompt, 40, "guide")).Text
		want[prompt+"-"] = b.complete(t, asking(prompt+"-", 40)).Text
	}
	given := 0
	for range 3 {
		running := map[string]*appliance.Completion{}
		for prompt := range want {
			names := []string{"guide"}
			if strings.HasSuffix(prompt, "-") {
				names = nil
			}
			c, err := b.Start(within(t), asking(prompt, 40, names...))
			if err != nil {
				t.Fatal(err)
			}
			running[prompt] = c
		}
		for prompt, c := range running {
			r, err := c.Wait(within(t))
			var e *appliance.Error
			switch {
			case errors.As(err, &e) && e.Plugin != nil && e.Plugin.Code == "quota" && !strings.HasSuffix(prompt, "-"):
			case err != nil || r.Text != want[prompt]:
				t.Errorf("%s: %v, or another text than alone", prompt, err)
			case !strings.HasSuffix(prompt, "-"):
				given++
			}
		}
	}
	if given == 0 {
		t.Error("no request got a second sequence: the test sees nothing")
	}
}

// TestLeftOutOfGreedyRequests: a plugin that never changes the likeliest token is named
// in the report, and counts neither as a success nor as a failure of it.
func TestLeftOutOfGreedyRequests(t *testing.T) {
	code := coded("minp", abi.SlotTruncate, abi.HookLogits, func(f *frame) abi.Action { return 0 })
	code.Manifest.ArgmaxInvariant = true
	b, p := with(t, noise(), appliance.Config{}, code, noE())
	got := b.complete(t, asking("x", 5, "minp", "no-e"))
	if s := appliance.PluginSummary(got.Plugins); !strings.HasSuffix(s, "; minp@1.0.0 skipped=greedy") || !strings.HasPrefix(s, "no-e@1.0.0 ok ") {
		t.Errorf("summary %q", s)
	}
	if rec := b.log.Ended()[0]; !reflect.DeepEqual(rec.Plugins, got.Plugins) {
		t.Errorf("record %+v", rec.Plugins)
	}
	if len(p.Failures()["hash of minp"]) != 0 {
		t.Error("it was counted")
	}
	r := asking("x", 5, "minp")
	r.Temperature = ptr(1.0)
	if s := appliance.PluginSummary(b.complete(t, r).Plugins); !strings.HasPrefix(s, "minp@1.0.0 ok ") || len(p.Failures()["hash of minp"]) != 1 {
		t.Errorf("of a request that draws: %q", s)
	}
}

// TestAuxiliaryGoesBackToItsMark: where state cannot go back to every length, an auxiliary
// sequence reads no more again than what was forced.
func TestAuxiliaryGoesBackToItsMark(t *testing.T) {
	total := 0
	o := appliancetest.Options{Recurrent: true, Before: func(_ int, rows []engine.Row) error { total += len(rows); return nil }}
	g := guide(t, 0, strings.Repeat("long ", 200))
	back := false
	force := coded("force", abi.SlotBias, abi.HookAccept, func(f *frame) abi.Action {
		switch step := f.U(abi.OffStep); {
		case step == 5 && !back:
			return f.Force(tokensOf("twenty tokens or so.")...)
		case step == 10 && !back:
			back = true
			return f.Rewind(2)
		}
		return 0
	})
	force.Manifest.View.Holdback = 2
	p := &appliancetest.Plugins{}
	b := serve(t, appliancetest.NewHashed(o), appliance.Config{Plugins: p})
	p.Add(force, "", nil).Add(g.Plugin, "", g.opened)
	got := b.complete(t, asking("x", 30, "guide", "force"))
	if !back || len(got.Tokens) != 30 || g.steps.Load() < 20 {
		t.Errorf("%d tokens, %d rows checked, gone back: %v", len(got.Tokens), g.steps.Load(), back)
	}
	if total > 1000+2*(30+2*20) {
		t.Errorf("%d rows were run: a prompt of 1000 tokens was read again", total)
	}
}
