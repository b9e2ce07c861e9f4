package appliance_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

// TestRequiredPluginsCannotBeShakenOff: neither by making them fail nor by a request that
// would not need them, but where the operator says so.
func TestRequiredPluginsCannotBeShakenOff(t *testing.T) {
	guard := coded("guard", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { panic(&pipelinetest.Error{Code: "trap"}) })
	guard.Manifest.OnError = abi.OnErrorSkip
	for _, c := range []struct {
		required, named bool
		onError         string
		fails           bool
	}{
		{required: true, fails: true},
		{required: true, onError: "skip"},
		{required: true, onError: "restart", fails: true},
		{required: true, named: true, fails: true},
		{named: true},
	} {
		cfg := appliance.Config{}
		if c.required {
			cfg.RequiredPlugins = []appliance.PluginChoice{{Name: "guard", OnError: c.onError, At: "required"}}
		}
		b, _ := with(t, noise(), cfg, guard)
		r := asking("one", 20)
		if c.named {
			r = asking("one", 20, "guard")
			r.Plugins[0].OnError = "skip"
		}
		running, err := b.Start(within(t), r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = running.Wait(within(t))
		var e *appliance.Error
		if failed := errors.As(err, &e) && e.Plugin != nil; failed != c.fails {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestRequiredPluginsRunInGreedyRequests, whatever they promise.
func TestRequiredPluginsRunInGreedyRequests(t *testing.T) {
	calls := 0
	guard := coded("guard", abi.SlotTruncate, abi.HookLogits, func(f *frame) abi.Action { calls++; return 0 })
	guard.Manifest.ArgmaxInvariant = true
	b, _ := with(t, noise(), appliance.Config{RequiredPlugins: []appliance.PluginChoice{{Name: "guard", At: "required"}}}, guard)
	if got := b.complete(t, asking("one", 20)); calls != 20 {
		t.Errorf("%d calls, %+v", calls, got.Plugins)
	}
}

// TestPromptsOfTokensAreSeen: a plugin that looks at texts sees a prompt that came as
// tokens, and what it makes of the text counts.
func TestPromptsOfTokensAreSeen(t *testing.T) {
	var mu sync.Mutex
	saw := ""
	p := coded("blocker", abi.SlotText, abi.HookPrompt, func(f *frame) abi.Action {
		mu.Lock()
		defer mu.Unlock()
		if saw = f.In(); strings.Contains(saw, "secret") {
			return f.Stop(abi.StopContentFilter)
		}
		return f.Text(strings.ReplaceAll(saw, "two", "one"))
	})
	p.Manifest.View.Text = true
	b, _ := with(t, noise(), appliance.Config{}, p)
	want := b.complete(t, asking("one", 50)).Text
	tokens := func(text string) *appliance.Request {
		r := asking("", 50, "blocker")
		r.PromptTokens = tokensOf(text)
		return r
	}
	if got := b.complete(t, tokens("two")).Text; got != want || saw != "two" {
		t.Errorf("%q, want %q; it saw %q", got, want, saw)
	}
	c, err := b.Start(within(t), tokens("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	var e *appliance.Error
	if _, err = c.Wait(within(t)); !errors.As(err, &e) || e.Code != appliance.CodeRefused {
		t.Errorf("it saw %q and the request ended with %v", saw, err)
	}
}

// TestShadowsHaveNoEffects: nothing that a shadow says reaches the answer's header or a
// plugin's own place in the record, and it knows no more of the text than the plugin would.
func TestShadowsHaveNoEffects(t *testing.T) {
	p := &appliancetest.Plugins{}
	p.Add(noE(), "", func(o appliance.PluginOpen) { o.Meta("who", []byte(`"plugin"`)) })
	var open appliance.PluginOpen
	var early, late []string
	watch := coded("watch", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
		early = append(early, string(open.Text(1<<20)))
		return 0
	})
	watch.Hooks[abi.HookAccept] = func(f *frame) abi.Action {
		late = append(late, string(open.Text(1<<20)))
		return 0
	}
	p.Add(watch, "", func(o appliance.PluginOpen) {
		open = o
		o.Meta("who", []byte(`"shadow"`))
	})
	b := serve(t, noise(), appliance.Config{Plugins: p, ShadowPlugins: []appliance.PluginChoice{{Name: "watch", At: "shadow"}}})
	got := b.complete(t, asking("one", 30, "no-e"))
	if s := appliance.PluginSummary(got.Plugins); strings.Contains(s, "watch") || !strings.HasPrefix(s, "no-e@") {
		t.Errorf("summary %q", s)
	}
	if own := appliance.OwnReports(got.Plugins); len(own) != 1 || own[0].Name != "no-e" {
		t.Errorf("own reports %+v", own)
	}
	if len(got.Plugins) != 2 || !got.Plugins[0].Shadow || got.Plugins[1].Shadow || !open.Shadow {
		t.Errorf("reports %+v", got.Plugins)
	}
	meta := b.log.Ended()[0].PluginMeta
	if meta["no-e.who"] != `"plugin"` || meta["shadow:watch.who"] != `"shadow"` || len(meta) != 2 {
		t.Errorf("meta %v", meta)
	}
	if len(early) != 30 || len(late) != 30 {
		t.Fatalf("%d plans, %d tokens", len(early), len(late))
	}
	for i := range early {
		if early[i] != got.Text[:i] || late[i] != got.Text[:i+1] {
			t.Fatalf("at step %d it saw %q, then %q of %q", i, early[i], late[i], got.Text)
		}
	}
}

// TestLastStepBehindALongerPrompt: the flag of the last step follows the room that a
// rewritten prompt leaves.
func TestLastStepBehindALongerPrompt(t *testing.T) {
	last := []int(nil)
	p := coded("longer", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
		if f.U(abi.OffFlags)&abi.FlagLast != 0 {
			last = append(last, f.U(abi.OffStep))
		}
		return 0
	})
	p.Hooks[abi.HookPrompt] = func(f *frame) abi.Action { return f.Force(tokensOf(strings.Repeat("x", 90))...) }
	b, _ := with(t, appliancetest.NewHashed(appliancetest.Options{Context: 100}), appliance.Config{}, p)
	got := b.complete(t, asking("one", 50, "longer"))
	if n := len(got.Tokens); len(last) != 1 || last[0] != n-1 || n >= 50 {
		t.Errorf("last steps %v of %d tokens", last, n)
	}
}

// TestForcedTokensOfConstrainedTexts: what a plugin forces comes no further than those
// that constrain let it, also where several tokens are run at once.
func TestForcedTokensOfConstrainedTexts(t *testing.T) {
	force := coded("force", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
		if f.U(abi.OffStep)%10 == 3 {
			return f.Force(tokensOf("aaaea")...)
		}
		return 0
	})
	lock := coded("lock", abi.SlotConstrain, abi.HookPlan, func(f *frame) abi.Action { return f.Edit(0, 'e', abi.OpBan, 0) })
	b, _ := with(t, noise(), appliance.Config{}, force, lock)
	if got := b.complete(t, asking("one", 60, "force")); !strings.Contains(got.Text, "aaaea") {
		t.Errorf("without a constraint %q", got.Text)
	}
	if got := b.complete(t, asking("one", 60, "force", "lock")); strings.Contains(got.Text, "e") || !strings.Contains(got.Text, "aaa") {
		t.Errorf("with one %q", got.Text)
	}
}

// TestFailuresAtOpenCount: a plugin that fails as it opens has its row in the record and
// its failure is told to whom counts them, as at any step; what the request brings about
// with its configuration keeps the code that says so.
func TestFailuresAtOpenCount(t *testing.T) {
	for _, c := range []struct {
		code, onError string
		want          appliance.Code // empty: the request goes on
		outcome       string
	}{
		{"trap", "fail", appliance.CodePlugin, "failed"},
		{"fuel", "restart", appliance.CodePlugin, "failed"},
		{"open", "fail", appliance.CodeRefused, "failed"},
		{"trap", "skip", "", "skipped"},
	} {
		bad := noE()
		bad.Open = func() error { return &pipelinetest.Error{Code: c.code} }
		idle := coded("idle", abi.SlotText, abi.HookPlan, func(f *frame) abi.Action { return 0 })
		b, p := with(t, noise(), appliance.Config{}, bad, idle)
		r := asking("one", 20, "idle", "no-e")
		r.Plugins[1].OnError = c.onError
		a, err := b.try(t, r)
		var e *appliance.Error
		if failed := errors.As(err, &e); failed != (c.want != "") || failed && (e.Code != c.want || e.Plugin == nil || e.Plugin.Code != c.code) {
			t.Errorf("%+v: %v", c, err)
		}
		row := b.log.Ended()[0].Plugins
		if len(row) != 2 || row[0].Name != "no-e" || row[0].Outcome != c.outcome || row[0].Code() != c.code || row[0].Hash == "" {
			t.Errorf("%+v: recorded %+v", c, row)
		}
		if f := p.Failures(); !slices.Equal(f["hash of no-e"], []bool{true}) {
			t.Errorf("%+v: told %v", c, f)
		}
		// Who was not opened for it is not told to have worked.
		if f, told := p.Failures()["hash of idle"]; told != (c.want == "") {
			t.Errorf("%+v: told of the other one: %v", c, f)
		}
		if c.want == "" && (a.Text != b.complete(t, asking("one", 20)).Text || len(a.Warnings) != 1) {
			t.Errorf("%+v: text %q, warnings %q", c, a.Text, a.Warnings)
		}
	}
}

// TestShadowsThatDoNotOpen are in the record with the reason, and the request is none the
// worse for it.
func TestShadowsThatDoNotOpen(t *testing.T) {
	bad := noE()
	bad.Open = func() error { return &pipelinetest.Error{Code: "fuel"} }
	b, p := with(t, noise(), appliance.Config{ShadowPlugins: []appliance.PluginChoice{{Name: "no-e", At: "shadow"}}}, bad)
	got := b.complete(t, asking("one", 20))
	if len(got.Plugins) != 1 || !got.Plugins[0].Shadow || got.Plugins[0].Outcome != "shadow ended" || got.Plugins[0].Hash != "hash of no-e" || !strings.Contains(got.Plugins[0].Error, "fuel") {
		t.Errorf("reports %+v", got.Plugins)
	}
	if f := p.Failures(); len(f) != 0 {
		t.Errorf("told %v of what only watches", f)
	}
}

// TestPanicAtOpen: what panics as a plugin opens is the plugin's failure, told and counted
// as any other, and by its policy the request goes on without it.
func TestPanicAtOpen(t *testing.T) {
	bad := noE()
	b, p := with(t, noise(), appliance.Config{}, bad)
	want := b.complete(t, asking("x", 20, "no-e"))
	bad.Open = func() error { panic("out of its mind") }
	var e *appliance.Error
	if _, err := b.try(t, asking("x", 20, "no-e")); !errors.As(err, &e) || e.Code != appliance.CodePlugin || e.Plugin == nil || e.Plugin.Code != "panic" || e.Plugin.Step != -1 {
		t.Errorf("error %v", err)
	}
	rec := b.log.Ended()[1]
	if rec.Outcome != appliance.OutcomeError || len(rec.Plugins) != 1 || rec.Plugins[0].Outcome != "failed" || rec.Plugins[0].Error != "panic: out of its mind" {
		t.Errorf("record %+v", rec)
	}
	r := asking("x", 20, "no-e")
	r.Plugins[0].OnError = "skip"
	got := b.complete(t, r)
	if plain := b.complete(t, asking("x", 20)); got.Text != plain.Text || got.Text == want.Text || got.Plugins[0].Outcome != "skipped" || got.Plugins[0].Code() != "panic" || len(got.Warnings) != 1 {
		t.Errorf("text %q, want %q; %+v, warnings %q", got.Text, plain.Text, got.Plugins, got.Warnings)
	}
	if f := p.Failures()["hash of no-e"]; !slices.Equal(f, []bool{false, true, true}) {
		t.Errorf("ended %v", f)
	}
}
