package appliance_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

// rewriter is a plugin whose prompt hook is given, and what it saw.
type rewriter struct {
	*pipelinetest.Plugin
	mu     sync.Mutex
	text   string
	tokens []int32
}

func newRewriter(name string, hook func(f *frame, text string) abi.Action) *rewriter {
	w := &rewriter{}
	w.Plugin = coded(name, abi.SlotText, abi.HookPrompt, func(f *frame) abi.Action {
		w.mu.Lock()
		w.text, w.tokens = f.In(), f.Tokens()
		w.mu.Unlock()
		return hook(f, f.In())
	})
	w.Manifest.View.Text = true
	w.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	return w
}

// seeing is a service over a model that sees, with plugins.
func seeing(t testing.TB, e appliancetest.EncoderOptions, cfg appliance.Config, list ...*rewriter) (*bench, *appliancetest.Encoder) {
	t.Helper()
	p := &appliancetest.Plugins{}
	for _, w := range list {
		p.Add(w.Plugin, "", nil)
	}
	cfg.Plugins = p
	t.Cleanup(func() {
		if n := p.Held(); n != 0 {
			t.Errorf("%d plugins were not given back", n)
		}
	})
	return looking(t, appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: true}}, e, cfg)
}

// plugged names plugins for a request with media.
func plugged(r *appliance.Request, names ...string) *appliance.Request {
	r.Plugins = asking("", 1, names...).Plugins
	return r
}

// TestPluginsRewritePromptsWithMedia: a prompt hook sees the text with its markers and the
// tokens with zeros for rows; what it makes of the text is completed as if it had been asked.
func TestPluginsRewritePromptsWithMedia(t *testing.T) {
	small, large, sound := picture(0, pngOf(20, 9, 1)), picture(1, pngOf(40, 20, 2)), sounding(0, wavOf(4000, 1))
	for _, e := range []appliancetest.EncoderOptions{{}, {Whole: true, Grid: true}} {
		for _, c := range []struct {
			name, prompt, old, new string
			media                  []appliance.Media
		}{
			{"a marker", "look <__media__> a secret", "a secret", "and tell me more of it", []appliance.Media{small}},
			{"before it", "my name is Bob: <__image__> who?", "Bob", "[name]", []appliance.Media{small}},
			{"no marker", "look at a secret", "a secret", "xxx", []appliance.Media{small}},
			{"the model's marker", "<image> secret", "secret", "xxx", []appliance.Media{small}},
			{"two, and a sound", "<__image__>secret<__audio__>and <__image__>", "secret", "xx ", []appliance.Media{small, large, sound}},
			{"another order", "<__image__> and <__audio__>", "<__image__> and <__audio__>", "<__audio__> then <__image__>", []appliance.Media{small, sound}},
			{"nothing", "look <__media__>", "secret", "xxx", []appliance.Media{small}},
		} {
			w := newRewriter("rewriter", func(f *frame, text string) abi.Action { return f.Text(strings.ReplaceAll(text, c.old, c.new)) })
			b, enc := seeing(t, e, appliance.Config{}, w)
			got := b.complete(t, plugged(showing(c.prompt, 20, c.media...), "rewriter"))
			if n := enc.Encoded(); n != len(c.media) {
				t.Errorf("%s: %d items were encoded, want %d", c.name, n, len(c.media))
			}
			want := b.complete(t, showing(strings.ReplaceAll(c.prompt, c.old, c.new), 20, c.media...))
			if got.Text != want.Text || got.Usage.PromptTokens != want.Usage.PromptTokens {
				t.Errorf("%s, %+v: %q with %d prompt tokens, want %q with %d", c.name, e, got.Text, got.Usage.PromptTokens, want.Text, want.Usage.PromptTokens)
			}
			before := b.complete(t, showing(c.prompt, 20, c.media...))
			if (got.Text == before.Text) != (c.name == "nothing") {
				t.Errorf("%s: the text as it came gives %q too: the test sees nothing", c.name, before.Text)
			}
			if rows := strings.Count(string(asText(w.tokens)), "\x00"); w.text != c.prompt || len(w.tokens) != before.Usage.PromptTokens || rows < 3 {
				t.Errorf("%s: it saw %q and %v, of %d tokens", c.name, w.text, w.tokens, before.Usage.PromptTokens)
			}
		}
	}
}

// asText makes bytes of tokens.
func asText(ids []int32) (b []byte) {
	for _, id := range ids {
		b = append(b, byte(id))
	}
	return b
}

// TestRewritesThatLoseMedia are refused, with what is wrong, whatever the policy: the request
// is never completed without what a plugin wanted, or with a picture elsewhere.
func TestRewritesThatLoseMedia(t *testing.T) {
	const prompt = "look <__media__> here"
	for name, c := range map[string]struct {
		hook func(f *frame, text string) abi.Action
		says string
	}{
		"no marker left": {func(f *frame, text string) abi.Action { return f.Text("look here") }, "0 markers"},
		"two of them":    {func(f *frame, text string) abi.Action { return f.Text(text + text) }, "2 markers"},
		"tokens":         {func(f *frame, text string) abi.Action { return f.Force(f.Tokens()...) }, "as tokens"},
		"it refuses":     {func(f *frame, text string) abi.Action { return f.Stop(abi.StopContentFilter) }, "refused by a plugin: rewriter@1.0.0"},
	} {
		for _, onError := range []string{"fail", "skip", "restart"} {
			w := newRewriter("rewriter", c.hook)
			b, _ := seeing(t, appliancetest.EncoderOptions{}, appliance.Config{QueueMax: 1}, w)
			for range 3 { // every place is given back
				r := plugged(showing(prompt, 20, picture(0, pngOf(20, 9, 1))), "rewriter")
				r.Plugins[0].OnError = onError
				_, err := b.try(t, r)
				var e *appliance.Error
				if !errors.As(err, &e) || e.Code != appliance.CodeRefused || e.Param != "prompt" || !strings.Contains(e.Message, c.says) {
					t.Errorf("%s, %s: %v, want it to say %q", name, onError, err, c.says)
				}
			}
			if r := b.log.Ended()[0]; r.Outcome != appliance.OutcomeError || len(r.Plugins) != 1 || len(r.Media) != 1 {
				t.Errorf("%s: recorded %+v", name, r)
			}
			b.complete(t, showing(prompt, 20, picture(0, pngOf(20, 9, 1))))
		}
	}
}

// TestRewritesOfMediaInTurn: each plugin sees what the one before it made, and tokens that one
// gives are not saved by a text that another makes of them.
func TestRewritesOfMediaInTurn(t *testing.T) {
	first := newRewriter("first", func(f *frame, text string) abi.Action { return f.Text(strings.ReplaceAll(text, "one", "two words")) })
	second := newRewriter("second", func(f *frame, text string) abi.Action { return f.Text(strings.ReplaceAll(text, "words", "w")) })
	tokens := newRewriter("tokens", func(f *frame, text string) abi.Action { return f.Force(f.Tokens()...) })
	b, _ := seeing(t, appliancetest.EncoderOptions{}, appliance.Config{}, first, second, tokens)
	ask := func(prompt string, names ...string) *appliance.Request {
		return plugged(showing(prompt, 20, picture(0, pngOf(20, 9, 1))), names...)
	}
	got, want := b.complete(t, ask("one <__media__> here", "first", "second")), b.complete(t, ask("two w <__media__> here"))
	if got.Text != want.Text || second.text != "two words <__media__> here" || len(second.tokens) != want.Usage.PromptTokens+4 {
		t.Errorf("%q, want %q; the second one saw %q and %d tokens", got.Text, want.Text, second.text, len(second.tokens))
	}
	var e *appliance.Error
	if _, err := b.try(t, ask("one here", "tokens", "second")); !errors.As(err, &e) || e.Code != appliance.CodeRefused {
		t.Errorf("tokens, then a text: %v", err)
	}
	// What is too long with its media is too long.
	long := newRewriter("long", func(f *frame, text string) abi.Action { return f.Text(text + strings.Repeat("x", 5000)) })
	b, _ = seeing(t, appliancetest.EncoderOptions{}, appliance.Config{}, long)
	if _, err := b.try(t, ask("<__media__>", "long")); !errors.As(err, &e) || e.Code != appliance.CodeContextLength {
		t.Errorf("a prompt of 5,000 tokens: %v", err)
	}
}
