package appliance_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

func TestF01StopSpansTokens(t *testing.T) {
	b := pieces(t, " six", " seven", " eig", "ht", " ni", "ne ten", " eleven")
	r := greedy("one two three four five", 64)
	r.Stop = []string{"eight nine"}
	a := b.complete(t, r)
	if a.Text != " six seven " || a.Finish != appliance.FinishStop {
		t.Errorf("got %q, %s, want %q, stop", a.Text, a.Finish, " six seven ")
	}
	if a.Usage.CompletionTokens != 6 {
		t.Errorf("%d tokens, want 6: generation ends at the token that completes the match", a.Usage.CompletionTokens)
	}
}

func TestF02TextBesideAStopIsKept(t *testing.T) {
	b := pieces(t, " Mars", "?\n", "more")
	for _, stream := range []bool{false, true} {
		r := greedy("planet", 64)
		r.Stop, r.Stream = []string{"\n"}, stream
		if a := b.complete(t, r); a.Text != " Mars?" || a.Finish != appliance.FinishStop {
			t.Errorf("stream %v: got %q, %s, want %q, stop", stream, a.Text, a.Finish, " Mars?")
		}
	}
}

func TestF03NoPartOfAStopIsSent(t *testing.T) {
	b := pieces(t, "log:\n", "<ST", "ART", ">x")
	r := greedy("x", 64)
	r.Stop = []string{"<START>"}
	a := b.complete(t, r)
	if a.Text != "log:\n" {
		t.Errorf("got %q, want %q", a.Text, "log:\n")
	}
	for _, text := range a.texts() {
		if strings.Contains(text, "<") {
			t.Errorf("chunk %q shows a part of the stop", text)
		}
	}
}

func TestF04EmptyStopIsRefusedByName(t *testing.T) {
	b := pieces(t, "x")
	for _, c := range []struct {
		stop  []string
		param string
	}{
		{[]string{""}, "stop[0]"},
		{[]string{"x", ""}, "stop[1]"},
		{slices.Repeat([]string{"a"}, 1025), "stop"},
		{[]string{strings.Repeat("a", 64<<10+1)}, "stop"},
		{[]string{"ok", "\xff"}, "stop[1]"},
	} {
		r := greedy("a", 4)
		r.Stop = c.stop
		b.refuse(t, r, appliance.CodeInvalid, c.param)
	}
	if n := b.model.Runs(); n != 0 {
		t.Errorf("%d batches were run", n)
	}
	r := greedy("a", 4)
	r.Stop = append(slices.Repeat([]string{"zz"}, 1023), strings.Repeat("y", 62<<10))
	b.complete(t, r)
}

func TestF05OnlyARealPrefixIsHeld(t *testing.T) {
	b := pieces(t, "Hello", " there", " friend")
	r := greedy("x", 64)
	r.Stop = []string{"ZZZZZZZZZZZZZZZZ"}
	a := b.complete(t, r)
	if got, want := a.texts(), []string{"Hello", " there", " friend", ""}; !slices.Equal(got, want) {
		t.Errorf("chunks %q, want %q", got, want)
	}
	for i, c := range a.chunks[:3] {
		if len(c.Tokens) != 1 {
			t.Errorf("chunk %d has %d tokens, want its own", i, len(c.Tokens))
		}
	}

	t.Run("sent when the token is ready", func(t *testing.T) {
		gate := make(chan struct{})
		m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"Hello", " thZ", "ere"}}, appliancetest.Options{Gate: gate})
		b := serve(t, m, appliance.Config{})
		r := greedy("x", 64)
		r.Stop = []string{"ZZ"}
		ctx := within(t)
		c, err := b.Start(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Hello", " th", "Zere"} {
			gate <- struct{}{}
			chunk, err := c.Next(ctx)
			if err != nil || chunk.Text != want {
				t.Fatalf("got %q, %v, want %q", chunk.Text, err, want)
			}
		}
		close(gate)
		if _, err := c.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestF06CharactersStayWhole(t *testing.T) {
	b := pieces(t, "\xF0\x9F", "\xA6\x99", "\x20\x6F\x6B")
	a := b.complete(t, greedy("x", 64))
	if a.Text != "🦙 ok" {
		t.Errorf("got %q, want %q", a.Text, "🦙 ok")
	}
	for _, text := range a.texts() {
		if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
			t.Errorf("chunk %q is not whole", text)
		}
	}
}

func TestF07IllFormedOutput(t *testing.T) {
	const bad = "\uFFFD"
	for _, c := range []struct {
		name   string
		pieces []string
		limit  int64
		want   string
	}{
		{"cut by the limit", []string{"a", "\xF0", "\x9F", "never"}, 3, "a" + bad},
		{"cut by the end", []string{"a", "\xF0\x9F"}, 9, "a" + bad},
		{"surrogate", []string{"\xED\xA0\x80"}, 9, bad + bad + bad},
		{"surrogate, split", []string{"\xED", "\xA0", "\x80"}, 9, bad + bad + bad},
		{"overlong", []string{"\xF0\x80\x80A"}, 9, bad + bad + bad + "A"},
		{"truncated", []string{"\xE2\x80A"}, 9, bad + "A"},
		{"truncated, split", []string{"\xE2", "\x80", "A"}, 9, bad + "A"},
		{"continuation", []string{"\x80"}, 9, bad},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := pieces(t, c.pieces...).complete(t, greedy("x", c.limit)); a.Text != c.want {
				t.Errorf("got %q, want %q", a.Text, c.want)
			}
		})
	}
}

// TestStopInFlushedText holds that a stop string is found in what the end releases.
func TestStopInFlushedText(t *testing.T) {
	b := pieces(t, "ab", "\xE2\x80")
	r := greedy("x", 64)
	r.Stop = []string{"b\uFFFD"}
	if a := b.complete(t, r); a.Text != "a" || a.Finish != appliance.FinishStop {
		t.Errorf("got %q, %s, want %q, stop", a.Text, a.Finish, "a")
	}
}

func TestF42LeadingSpaceIsKept(t *testing.T) {
	for _, c := range []struct{ prompt, want string }{
		{"The capital of France is", " Paris ."},
		{"def f():\n   ", " return"},
	} {
		m := appliancetest.NewScripted(appliancetest.Script{For: func(string) string { return c.want }}, appliancetest.Options{})
		if a := serve(t, m, appliance.Config{}).complete(t, greedy(c.prompt, 64)); a.Text != c.want {
			t.Errorf("got %q, want %q", a.Text, c.want)
		}
	}
}

func TestF50ControlTokensAreNotRendered(t *testing.T) {
	ids := []int32{'o', 'k', appliancetest.Pad, appliancetest.Think, appliancetest.EOS, 'x'}
	m := appliancetest.NewScripted(appliancetest.Script{IDs: ids}, appliancetest.Options{})
	a := serve(t, m, appliance.Config{}).complete(t, greedy("x", 64))
	if a.Text != "ok[THINK]" || a.Finish != appliance.FinishStop {
		t.Errorf("got %q, %s, want %q, stop", a.Text, a.Finish, "ok[THINK]")
	}
	if a.Usage.CompletionTokens != 4 {
		t.Errorf("%d tokens, want 4: the end token does not count", a.Usage.CompletionTokens)
	}
}
