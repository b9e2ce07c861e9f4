package appliance_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

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
	if want := fmt.Sprintf(" fuel=10 changed=%d", r.Changed); !strings.HasPrefix(r.Summary(), "no-e@1.0.0 ok ") || !strings.HasSuffix(r.Summary(), want) {
		t.Errorf("summary %q, want %q in it", r.Summary(), want)
	}
	if rec := b.log.Ended()[1]; !reflect.DeepEqual(rec.Plugins, got.Plugins) {
		t.Errorf("record %+v", rec.Plugins)
	}
	if f := p.Failures()["hash of no-e"]; !slices.Equal(f, []bool{false}) {
		t.Errorf("ended %v", f)
	}
	if again := b.complete(t, asking("one", 200, "no-e")); again.Text != got.Text {
		t.Error("the same request gave another text")
	}
}

// TestPluginChangesOfTokens: a request that asks for it learns which plugin changed which
// token, and from what.
func TestPluginChangesOfTokens(t *testing.T) {
	b, _ := with(t, noise(), appliance.Config{}, noE())
	r := asking("one", 200, "no-e")
	r.PluginChanges = true
	got := b.complete(t, r)
	changed := 0
	for i, tok := range got.Tokens {
		for _, c := range tok.Changes {
			if c.Kind == "acted" { // the letter was not what would have come
				continue
			}
			changed++
			if c.Plugin != "no-e" || c.Kind != "moved" || c.From == nil || c.From.Text != "e" {
				t.Errorf("token %d: %+v from %+v", i, c, c.From)
			}
		}
	}
	if want := got.Plugins[0].Changed; changed != want || changed == 0 {
		t.Errorf("%d tokens changed, the report says %d", changed, want)
	}
	for i, tok := range b.complete(t, asking("one", 200, "no-e")).Tokens {
		if tok.Changes != nil {
			t.Errorf("token %d: changes that nobody asked for: %+v", i, tok.Changes)
		}
	}
}

// TestCutsAndTemperaturesCount: a plugin that leaves the likeliest token alone changes those
// that are drawn, and says so.
func TestCutsAndTemperaturesCount(t *testing.T) {
	cut := coded("cut", abi.SlotTruncate, abi.HookLogits, func(f *frame) abi.Action {
		f.Put(abi.OffCandN, 1)
		return abi.Cands
	})
	cut.Manifest.Truncates = true
	cold := coded("cold", abi.SlotTemperature, abi.HookLogits, func(f *frame) abi.Action { return f.Temperature(0.05) })
	b, _ := with(t, noise(), appliance.Config{}, cut, cold)
	drawn := func(names ...string) answer {
		r := asking("one", 100, names...)
		one, seed := 1.0, int64(5)
		r.Temperature, r.Seed, r.PluginChanges = &one, &seed, true
		return b.complete(t, r)
	}
	plain := drawn()
	for _, name := range []string{"cut", "cold"} {
		got := drawn(name)
		first := 0
		for got.Tokens[first].ID == plain.Tokens[first].ID {
			first++
		}
		c := got.Tokens[first].Changes
		if got.Plugins[0].Changed == 0 || len(c) != 1 || c[0].Kind != "moved" || c[0].From == nil || c[0].From.ID != plain.Tokens[first].ID ||
			(c[0].Left == 1) != (name == "cut") || (c[0].Temperature != nil) != (name == "cold") {
			t.Errorf("%s: token %d: %+v, %d tokens changed", name, first, c, got.Plugins[0].Changed)
		}
		for i := range first {
			if c := got.Tokens[i].Changes; len(c) != 1 || c[0].Kind != "acted" {
				t.Errorf("%s: token %d is the same: %+v", name, i, c)
			}
		}
	}
}

// TestStagesOfTokens: a request that asks for it learns what built-in stages did to each token,
// beside plugins or without, in the order in which they ran; the text stays what it is.
func TestStagesOfTokens(t *testing.T) {
	cut := coded("cut", abi.SlotTruncate, abi.HookLogits, func(f *frame) abi.Action {
		f.Put(abi.OffCandN, 100)
		return abi.Cands
	})
	cut.Manifest.Truncates = true
	b, _ := with(t, noise(), appliance.Config{}, cut, noE())
	ask := func(stages bool, names ...string) answer {
		r := asking("one", 60, names...)
		hot, seed, p, presence := 1.3, int64(5), 0.9, 1.0
		r.Temperature, r.Seed, r.TopP, r.PresencePenalty, r.StageChanges = &hot, &seed, &p, &presence, stages
		return b.complete(t, r)
	}
	for name, c := range map[string]struct {
		plugins []string
		want    []string
	}{
		"alone":          {nil, []string{"penalties", "temperature", "top_p"}},
		"beside plugins": {[]string{"cut", "no-e"}, []string{"no-e", "penalties", "cut", "temperature", "top_p"}},
	} {
		plain, got := ask(false, c.plugins...), ask(true, c.plugins...)
		if plain.Text != got.Text {
			t.Errorf("%s: %q, asked for stages %q", name, plain.Text, got.Text)
		}
		moved := map[string]int{}
		for i, tok := range got.Tokens {
			var list []string
			for _, c := range tok.Changes {
				last := c.Stage == "temperature" || c.Stage == "top_p" // what comes with them is the token
				if c.Plugin != "" && c.Stage != "" || c.From == nil || last && (c.Kind == "moved") != (c.From.ID != tok.ID) {
					t.Errorf("%s: token %d: %+v", name, i, c)
				}
				list = append(list, c.Plugin+c.Stage)
				if c.Kind == "moved" {
					moved[c.Plugin+c.Stage]++
				}
			}
			if !slices.Equal(list, c.want) {
				t.Fatalf("%s: token %d: %v, want %v", name, i, list, c.want)
			}
			if plain.Tokens[i].Changes != nil {
				t.Errorf("%s: token %d: told without being asked", name, i)
			}
		}
		if moved["temperature"] == 0 || moved["top_p"] == 0 {
			t.Errorf("%s: %v", name, moved)
		}
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
	if _, err := b.try(t, asking("x", 20, "no-e")); !errors.As(err, &e) || e.Code != appliance.CodeRefused || e.Plugin.Code != "open" {
		t.Errorf("error %v", err)
	}
}
