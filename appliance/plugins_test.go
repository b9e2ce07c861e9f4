package appliance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

type frame = pipelinetest.Frame

// coded makes a plugin of one hook.
func coded(name string, slot abi.Slot, h abi.Hook, c pipelinetest.Code) *pipelinetest.Plugin {
	return &pipelinetest.Plugin{Manifest: abi.Manifest{Name: name, Slot: slot}, Hooks: map[abi.Hook]pipelinetest.Code{h: c}}
}

// with returns a service over a model with plugins, which are all given back at the end.
func with(t testing.TB, m *appliancetest.Scripted, cfg appliance.Config, list ...*pipelinetest.Plugin) (*bench, *appliancetest.Plugins) {
	t.Helper()
	p := &appliancetest.Plugins{}
	for _, c := range list {
		p.Add(c, "", nil)
	}
	cfg.Plugins = p
	t.Cleanup(func() {
		if n := p.Held(); n != 0 {
			t.Errorf("%d plugins were not given back", n)
		}
		for _, c := range list {
			if c.Opened() != c.Closed() {
				t.Errorf("%s: %d instances opened, %d closed", c.Manifest.Name, c.Opened(), c.Closed())
			}
		}
	})
	return serve(t, m, cfg), p
}

// asking is a greedy request for plugins.
func asking(prompt string, limit int64, names ...string) *appliance.Request {
	r := greedy(prompt, limit)
	r.Plugins = []appliance.PluginChoice{}
	for i, n := range names {
		r.Plugins = append(r.Plugins, appliance.PluginChoice{Name: n, At: fmt.Sprintf("/plugins/%d", i)})
	}
	return r
}

func noise() *appliancetest.Scripted { return appliancetest.NewHashed(appliancetest.Options{}) }

// noE bans the letter e.
func noE() *pipelinetest.Plugin {
	return coded("no-e", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { return f.Edit(0, 'e', abi.OpBan, 0) })
}

func TestPluginChangesTheText(t *testing.T) {
	b, p := with(t, noise(), appliance.Config{}, noE())
	plain := b.complete(t, asking("one", 200))
	got := b.complete(t, asking("one", 200, "no-e"))
	if !strings.Contains(plain.Text, "e") || strings.Contains(got.Text, "e") {
		t.Errorf("without %q, with %q", plain.Text, got.Text)
	}
	if len(got.Plugins) != 1 || len(plain.Plugins) != 0 {
		t.Fatalf("reports %+v", got.Plugins)
	}
	r := got.Plugins[0]
	if r.Name != "no-e" || r.Version != "1.0.0" || r.Hash != "hash of no-e" || r.Outcome != "ok" || r.Calls != 200 || r.FuelPer != 10 || r.Changed == 0 {
		t.Errorf("report %+v", r)
	}
	if rec := b.log.Ended()[1]; !slices.Equal(rec.Plugins, got.Plugins) {
		t.Errorf("record %+v", rec.Plugins)
	}
	if f := p.Failures()["hash of no-e"]; !slices.Equal(f, []bool{false}) {
		t.Errorf("ended %v", f)
	}
	if again := b.complete(t, asking("one", 200, "no-e")); again.Text != got.Text {
		t.Error("the same request gave another text")
	}
}

// phrase takes a phrase back as soon as it stands at the end of the text, and bans the
// token it began with at that place.
func phrase(bad string, hold int) (*pipelinetest.Plugin, func(appliance.PluginOpen)) {
	var tail func(int) []byte
	p := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "phrase", Slot: abi.SlotText}}
	p.Manifest.View.Holdback = hold
	p.New = func() map[abi.Hook]pipelinetest.Code {
		text := tail
		bans := map[int]int32{}
		return map[abi.Hook]pipelinetest.Code{
			abi.HookPlan: func(f *frame) abi.Action {
				if id, ok := bans[f.U(abi.OffStep)]; ok {
					return f.Edit(0, id, abi.OpBan, 0)
				}
				return 0
			},
			abi.HookAccept: func(f *frame) abi.Action {
				if b := text(len(bad)); !strings.HasSuffix(string(b), bad) {
					return 0
				}
				bans[f.U(abi.OffStep)-len(bad)+1] = int32(bad[0])
				return f.Rewind(len(bad))
			},
		}
	}
	return p, func(o appliance.PluginOpen) { tail = o.Text }
}

// TestRewindsNeverShow: a phrase that is taken back is in no chunk, and what comes
// instead is what the model says there.
func TestRewindsNeverShow(t *testing.T) {
	for _, o := range []appliancetest.Options{{}, {Recurrent: true}} {
		plain := ""
		for _, speculate := range []appliance.Speculation{appliance.SpeculateOff, appliance.SpeculateLookup} {
			p := &appliancetest.Plugins{}
			b := serve(t, appliancetest.NewHashed(o), appliance.Config{Plugins: p, Speculate: speculate})
			text := b.complete(t, asking("two", 300)).Text
			bad := text[100:102]
			code, opened := phrase(bad, 2)
			p.Add(code, "", opened)
			got := b.complete(t, asking("two", 300, "phrase"))
			if !strings.Contains(text, bad) || strings.Contains(got.Text, bad) || got.Text[:100] != text[:100] || len(got.Tokens) != 300 {
				t.Errorf("%+v: %q taken back of %q gives %q", o, bad, text, got.Text)
			}
			if r := got.Plugins[0]; r.Rewinds == 0 || r.Changed < 2*r.Rewinds {
				t.Errorf("report %+v", r)
			}
			if plain != "" && got.Text != plain {
				t.Error("guessing changed the text")
			}
			plain = got.Text
			// Every chunk but the last leaves at least two tokens behind.
			for i, c := range got.chunks[:len(got.chunks)-1] {
				if len(c.Tokens) > 1 && i > 0 {
					t.Errorf("chunk %d has %d tokens", i, len(c.Tokens))
				}
			}
		}
	}
}

func TestRedaction(t *testing.T) {
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"call ", "55", "5-1", "2 or", " 7"}}, appliancetest.Options{})
	held := ""
	p := coded("pii", abi.SlotText, abi.HookText, func(f *frame) abi.Action {
		held += f.In()
		if f.U(abi.OffFlags)&abi.FlagLast == 0 {
			at := strings.LastIndexFunc(held, func(r rune) bool { return r == ' ' }) + 1
			out := held[:at]
			held = held[at:]
			return f.Text(strings.ReplaceAll(out, "555-12", "[number]"))
		}
		return f.Text(held)
	})
	b, _ := with(t, m, appliance.Config{}, p)
	got := b.complete(t, asking("x", 50, "pii"))
	if want := "call [number] or 7"; got.Text != want || got.Finish != appliance.FinishStop {
		t.Errorf("text %q, want %q", got.Text, want)
	}
	for _, c := range got.texts() {
		if strings.Contains(c, "5") {
			t.Errorf("a chunk has %q", c)
		}
	}
}

// TestStopStringsOfWhatIsShown: stop strings are looked for in the text that hooks made.
func TestStopStringsOfWhatIsShown(t *testing.T) {
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a", "b", "c", "d"}}, appliancetest.Options{})
	p := coded("upper", abi.SlotText, abi.HookText, func(f *frame) abi.Action { return f.Text(strings.ToUpper(f.In())) })
	b, _ := with(t, m, appliance.Config{}, p)
	r := asking("x", 50, "upper")
	r.Stop = []string{"b", "C"}
	if got := b.complete(t, r); got.Text != "AB" || got.Finish != appliance.FinishStop {
		t.Errorf("text %q, %s", got.Text, got.Finish)
	}
}

// TestForcedTokensRunTogether: tokens that are known run in one batch.
func TestForcedTokensRunTogether(t *testing.T) {
	force := []byte("forty tokens that need no choice at all.")
	ids := make([]int32, len(force))
	for i, c := range force {
		ids[i] = int32(c)
	}
	p := coded("force", abi.SlotBias, abi.HookAccept, func(f *frame) abi.Action {
		if f.U(abi.OffStep) == 2 {
			return f.Force(ids...)
		}
		return 0
	})
	for _, o := range []appliancetest.Options{{}, {Recurrent: true}, {MaxRows: 8}} {
		b, _ := with(t, appliancetest.NewHashed(o), appliance.Config{Speculate: appliance.SpeculateOff}, p)
		got := b.complete(t, asking("three", 60, "force"))
		if len(got.Text) != 60 || got.Text[3:3+len(force)] != string(force) {
			t.Errorf("%+v: text %q", o, got.Text)
		}
		if most := 25; o.MaxRows == 0 && b.model.Runs() > most {
			t.Errorf("%+v: %d steps, want at most %d", o, b.model.Runs(), most)
		}
		if got.DraftedTokens != 0 {
			t.Errorf("%d tokens were guessed", got.DraftedTokens)
		}
		// What follows is what the model says after that text.
		again := b.complete(t, asking("three"+got.Text[:50], 10))
		if again.Text != got.Text[50:] {
			t.Errorf("%+v: after the forced text %q, want %q", o, got.Text[50:], again.Text)
		}
	}
}

func TestPluginStops(t *testing.T) {
	for reason, want := range map[abi.StopReason]appliance.FinishReason{
		abi.StopStop: appliance.FinishStop, abi.StopLength: appliance.FinishLength, abi.StopContentFilter: appliance.FinishFilter,
	} {
		p := coded("stop", abi.SlotBias, abi.HookAccept, func(f *frame) abi.Action {
			if f.U(abi.OffStep) == 4 {
				return f.Stop(reason)
			}
			return 0
		})
		b, _ := with(t, noise(), appliance.Config{}, p)
		if got := b.complete(t, asking("x", 50, "stop")); len(got.Tokens) != 5 || got.Finish != want {
			t.Errorf("%d tokens, %s, want 5 and %s", len(got.Tokens), got.Finish, want)
		}
		if o := b.log.Ended()[0].Outcome; string(o) != string(want) {
			t.Errorf("recorded as %s", o)
		}
	}
}

func TestPluginSeesAndRewritesThePrompt(t *testing.T) {
	p := coded("prompt", abi.SlotBias, abi.HookPrompt, func(f *frame) abi.Action {
		if strings.Contains(f.In(), "no") {
			return f.Stop(abi.StopContentFilter)
		}
		return f.Text(strings.ReplaceAll(f.In(), "secret", "xxx"))
	})
	p.Manifest.View.Text = true
	b, _ := with(t, noise(), appliance.Config{}, p)
	got := b.complete(t, asking("a secret", 20, "prompt"))
	if want := b.complete(t, asking("a xxx", 20)); got.Text != want.Text || got.Usage.PromptTokens != 5 {
		t.Errorf("text %q, want %q; %d prompt tokens", got.Text, want.Text, got.Usage.PromptTokens)
	}
	var e *appliance.Error
	if _, err := b.try(t, asking("no", 20, "prompt")); !errors.As(err, &e) || e.Code != appliance.CodeRefused {
		t.Errorf("refused with %v", err)
	}
}

func TestPluginFailure(t *testing.T) {
	failing := func() *pipelinetest.Plugin {
		return coded("bad", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
			if f.U(abi.OffStep) == 3 {
				panic(&pipelinetest.Error{Code: "fuel"})
			}
			return 0
		})
	}
	b, p := with(t, noise(), appliance.Config{}, failing())
	a, err := b.try(t, asking("x", 20, "bad"))
	var e *appliance.Error
	if !errors.As(err, &e) || e.Code != appliance.CodePlugin || e.Plugin == nil || e.Plugin.Code != "fuel" || e.Plugin.Plugin != "bad" || e.Plugin.Step != 3 {
		t.Fatalf("error %+v", err)
	}
	if len(a.chunks) != 3 {
		t.Errorf("%d chunks came before", len(a.chunks))
	}
	rec := b.log.Ended()[0]
	if rec.Outcome != appliance.OutcomeError || rec.ErrorCode != appliance.CodePlugin || len(rec.Plugins) != 1 || rec.Plugins[0].Outcome != "failed" {
		t.Errorf("record %+v", rec)
	}
	if f := p.Failures()["hash of bad"]; !slices.Equal(f, []bool{true}) {
		t.Errorf("ended %v", f)
	}
	// Where the request is to go on, it does as if the plugin had not been there.
	r := asking("x", 20, "bad")
	r.Plugins[0].OnError = "skip"
	got := b.complete(t, r)
	if want := b.complete(t, asking("x", 20)); got.Text != want.Text || got.Plugins[0].Outcome != "skipped" || len(got.Warnings) != 1 {
		t.Errorf("text %q, want %q; %+v, warnings %q", got.Text, want.Text, got.Plugins, got.Warnings)
	}
	if s := appliance.PluginSummary(got.Plugins); !strings.HasPrefix(s, "bad@1.0.0 skipped=fuel ") {
		t.Errorf("summary %q", s)
	}
}

func TestPluginThatDoesNotOpen(t *testing.T) {
	bad := noE()
	bad.Open = func() error { return errors.New("not today") }
	b, _ := with(t, noise(), appliance.Config{}, bad)
	var e *appliance.Error
	if _, err := b.try(t, asking("x", 20, "no-e")); !errors.As(err, &e) || e.Code != appliance.CodePlugin || e.Plugin.Code != "open" {
		t.Errorf("error %v", err)
	}
}

// TestSlowPluginDelaysItsOwnSequenceAlone: while a guest runs for long, other texts go on.
func TestSlowPluginDelaysItsOwnSequenceAlone(t *testing.T) {
	block, inside := make(chan struct{}), make(chan struct{})
	for _, hook := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookAccept, abi.HookText} {
		block, inside = make(chan struct{}), make(chan struct{})
		p := coded("slow", abi.SlotText, hook, func(f *frame) abi.Action {
			if f.U(abi.OffStep) == 5 {
				close(inside)
				<-block
			}
			return 0
		})
		b, _ := with(t, noise(), appliance.Config{}, p)
		slow, err := b.Start(within(t), asking("slow", 20, "slow"))
		if err != nil {
			t.Fatal(err)
		}
		<-inside
		want := b.complete(t, asking("fast", 100)) // would not return if it had to wait
		close(block)
		if _, err := slow.Wait(within(t)); err != nil {
			t.Errorf("%s: %v", hook, err)
		}
		if got := b.complete(t, asking("fast", 100)); got.Text != want.Text {
			t.Errorf("%s: the other text changed", hook)
		}
		if got, alone := slow.Result().Text, b.complete(t, asking("slow", 20)).Text; got != alone {
			t.Errorf("%s: the slow text is %q, want %q", hook, got, alone)
		}
	}
}

// TestSlowPluginCostsOthersNoMoreThanTheWait measures the same: with a guest of 40 ms a
// token beside it, another stream's tokens come within 5 ms.
func TestSlowPluginCostsOthersNoMoreThanTheWait(t *testing.T) {
	nap := func() *pipelinetest.Plugin {
		return coded("slow", abi.SlotBias, abi.HookLogits, func(f *frame) abi.Action { time.Sleep(40 * time.Millisecond); return 0 })
	}
	b, _ := with(t, endlessModel(), appliance.Config{}, nap())
	slow, err := b.Start(within(t), asking("slow", 1000, "slow"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	const tokens = 400
	from := time.Now()
	b.complete(t, asking("fast", tokens))
	took := time.Since(from)
	if per := took / tokens; per > 5*time.Millisecond {
		t.Errorf("%v a token beside a slow plugin", per)
	}
	// The partner: a wait that never ends makes the other stream as slow as the guest.
	b, _ = with(t, endlessModel(), appliance.Config{PluginWait: time.Hour}, nap())
	other, err := b.Start(within(t), asking("slow", 1000, "slow"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	from = time.Now()
	b.complete(t, asking("fast", 10))
	if per := time.Since(from) / 10; per < 20*time.Millisecond {
		t.Errorf("%v a token with an endless wait: the test sees nothing", per)
	}
}

func endlessModel() *appliancetest.Scripted {
	return appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a", "b"}, Endless: true}, appliancetest.Options{})
}

// TestCancelWithPlugins: a request that is cancelled ends, whatever its guests do.
func TestCancelWithPlugins(t *testing.T) {
	var ends atomic.Int32
	p := coded("p", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { time.Sleep(time.Millisecond); return 0 })
	p.Hooks[abi.HookEnd] = func(f *frame) abi.Action { ends.Add(1); return 0 }
	b, _ := with(t, endlessModel(), appliance.Config{}, p)
	var all []*appliance.Completion
	for i := range 12 { // more than there are slots
		c, err := b.Start(within(t), asking("x", 1000, "p"))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 && i < 4 {
			if _, err := c.Next(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, c)
	}
	for _, c := range all {
		c.Close()
	}
	for _, c := range all {
		var e *appliance.Error
		if _, err := c.Wait(within(t)); !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
			t.Errorf("ended with %v", err)
		}
	}
	if n := ends.Load(); n < 2 {
		t.Errorf("%d texts that had begun were ended", n)
	}
}

// TestManyWithPlugins: texts with and without plugins, side by side, are what each is
// alone.
func TestManyWithPlugins(t *testing.T) {
	b, _ := with(t, noise(), appliance.Config{QueueMax: 100}, noE())
	want := map[string]string{}
	for i := range 8 {
		prompt := fmt.Sprint("prompt ", i)
		want[prompt] = b.complete(t, asking(prompt, 60, "no-e")).Text
		want[prompt+"-"] = b.complete(t, asking(prompt+"-", 60)).Text
	}
	running := map[string]*appliance.Completion{}
	for prompt := range want {
		names := []string{"no-e"}
		if strings.HasSuffix(prompt, "-") {
			names = nil
		}
		c, err := b.Start(within(t), asking(prompt, 60, names...))
		if err != nil {
			t.Fatal(err)
		}
		running[prompt] = c
	}
	for prompt, c := range running {
		r, err := c.Wait(within(t))
		if err != nil || r.Text != want[prompt] {
			t.Errorf("%s: %v, or another text than alone", prompt, err)
		}
	}
}

// TestPluginsAndGuesses: guessing ahead changes nothing of a text that plugins make.
func TestPluginsAndGuesses(t *testing.T) {
	random := coded("random", abi.SlotTruncate, abi.HookLogits, func(f *frame) abi.Action {
		f.Put(abi.OffCandN, 1+f.U(abi.OffRandom)%3)
		return abi.Cands
	})
	random.Manifest.Truncates = true
	count := 0
	stateful := coded("stateful", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
		return f.Edit(0, int32('a'+count%26), abi.OpAdd, 9)
	})
	stateful.Hooks[abi.HookAccept] = func(f *frame) abi.Action { count++; return 0 }
	texts := map[string]bool{}
	for _, speculate := range []appliance.Speculation{appliance.SpeculateOff, appliance.SpeculateLookup, appliance.SpeculateLookup} {
		count = 0
		b, _ := with(t, noise(), appliance.Config{Speculate: speculate}, random, stateful)
		r := asking("abcabcabcabcabc", 200, "random", "stateful")
		r.Temperature, r.Seed = ptr(1.0), ptr(int64(5))
		texts[b.complete(t, r).Text] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d different texts", len(texts))
	}
}

func TestRefusingDrafts(t *testing.T) {
	p := coded("run", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { return 0 })
	p.Manifest.Draft = abi.DraftRefuse
	b, _ := with(t, endlessModel(), appliance.Config{Speculate: appliance.SpeculateLookup}, p)
	if got := b.complete(t, asking("ababab", 100, "run")); got.DraftedTokens != 0 || len(got.Warnings) != 1 {
		t.Errorf("%d guesses, warnings %q", got.DraftedTokens, got.Warnings)
	}
	if got := b.complete(t, asking("ababab", 100)); got.DraftedTokens == 0 {
		t.Error("without the plugin nothing is guessed either: the test sees nothing")
	}
}
