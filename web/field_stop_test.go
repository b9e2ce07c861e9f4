package web

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

// Field reports F01 to F09: stop strings and UTF-8, seen from the wire.

func scripted(pieces ...string) setup {
	return setup{script: appliancetest.Script{Pieces: pieces}}
}

// both asks plainly and as a stream and checks that both give the same text.
func both(t *testing.T, b *bench, body string) (api.Completion, []api.Completion) {
	t.Helper()
	plain := b.answer(body)
	chunks := b.streamed(strings.Replace(body, "{", `{"stream":true,`, 1))
	if got, want := text(chunks, 0), plain.Choices[0].Text; got != want {
		t.Errorf("streamed %q, plain %q", got, want)
	}
	last := chunks[len(chunks)-1]
	if got, want := *last.Choices[0].FinishReason, *plain.Choices[0].FinishReason; got != want {
		t.Errorf("streamed finish %q, plain %q", got, want)
	}
	if got, want := *last.Usage, *plain.Usage; got != want {
		t.Errorf("streamed usage %v, plain %v", got, want)
	}
	return plain, chunks
}

func TestStopStrings(t *testing.T) {
	tests := []struct {
		name, body string
		pieces     []string
		text       string
		tokens     int
	}{
		{"F01 spans several tokens", `{"prompt":"one two three four five","stop":["eight nine"],"temperature":0,"max_completion_tokens":64}`,
			[]string{" six", " seven", " eig", "ht", " ni", "ne ten"}, " six seven ", 6},
		{"F02 shares a token", `{"prompt":"p","stop":["\n"]}`, []string{" Mars", "?\n"}, " Mars?", 2},
		{"F03 no prefix is visible", `{"prompt":"p","stop":["<START>"]}`, []string{"log:\n", "<ST", "ART", ">x"}, "log:\n", 4},
		{"F42 leading space", `{"prompt":"The capital of France is"}`, []string{" Paris", " ."}, " Paris .", 2},
		{"F42 after an indent", `{"prompt":"def f():\n   "}`, []string{" return"}, " return", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, scripted(tt.pieces...))
			plain, chunks := both(t, b, tt.body)
			if got := plain.Choices[0]; got.Text != tt.text || *got.FinishReason != "stop" {
				t.Errorf("text %q, finish %q, want %q and stop", got.Text, *got.FinishReason, tt.text)
			}
			if got := plain.Usage.CompletionTokens; got != tt.tokens {
				t.Errorf("%d tokens, want %d", got, tt.tokens)
			}
			for _, c := range chunks {
				if strings.Contains(c.Choices[0].Text, "<") {
					t.Errorf("chunk %q shows a stop", c.Choices[0].Text)
				}
			}
		})
	}
}

func TestF04EmptyStopIsRefusedByName(t *testing.T) {
	b := start(t, scripted("x"))
	wantError(t, b.complete(`{"prompt":"a","stop":[""]}`), 400, "invalid_value", "stop[0]")
	wantError(t, b.complete(`{"prompt":"a","stop":["x",""]}`), 400, "invalid_value", "stop[1]")
	wantError(t, b.complete(`{"prompt":"a","stop":""}`), 400, "invalid_value", "stop")
	if n := len(b.recorder.Begun()); n != 0 || b.model.Runs() != 0 {
		t.Errorf("%d rows and %d batches, want none", n, b.model.Runs())
	}
}

func TestF05StopsDelayOnlyWhatCouldBeAStop(t *testing.T) {
	b := start(t, scripted("Hello", " there", " friend"))
	chunks := b.streamed(`{"prompt":"p","stream":true,"stop":["ZZZZZZZZZZZZZZZZ"]}`)
	for i, want := range []string{"Hello", " there", " friend"} {
		if got := chunks[i].Choices[0].Text; got != want {
			t.Errorf("chunk %d is %q, want %q", i, got, want)
		}
	}
}

func TestF06CharactersReachTheStreamWhole(t *testing.T) {
	b := start(t, scripted("\xF0\x9F", "\xA6\x99", " ok"))
	_, chunks := both(t, b, `{"prompt":"p"}`)
	if got := text(chunks, 0); got != "🦙 ok" {
		t.Errorf("text %q", got)
	}
	for _, c := range chunks {
		if s := c.Choices[0].Text; !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
			t.Errorf("chunk %q", s)
		}
	}
}

func TestF07IllFormedOutput(t *testing.T) {
	for in, want := range map[string]string{
		"a\xF0\x9F":        "a\uFFFD",
		"\xED\xA0\x80":     "\uFFFD\uFFFD\uFFFD",
		"\xF0\x80\x80\x41": "\uFFFD\uFFFD\uFFFDA",
		"\xE2\x80\x41":     "\uFFFDA",
		"\x80":             "\uFFFD",
	} {
		b := start(t, scripted(strings.Split(in, "")...))
		plain, _ := both(t, b, `{"prompt":"p"}`)
		if got := plain.Choices[0].Text; got != want {
			t.Errorf("% x gives %q, want %q", in, got, want)
		}
	}
}

func TestF08BodyThatIsNotUTF8(t *testing.T) {
	b := start(t, scripted("x"))
	r := b.complete("{\"prompt\":\"\xC4\xE3\"}")
	wantError(t, r, 400, "invalid_utf8", "")
	b.answer(`{"prompt":"a"}`)
}

func TestF09ErrorsAreSmallAndDoNotEcho(t *testing.T) {
	b := start(t, scripted("x"))
	long := strings.Repeat("canary-", 150_000)
	wantError(t, b.complete(`{"prompt":"\u0000\u0001","temperature":"`+long+`"}`), 400, "invalid_type", "temperature")
	wantError(t, b.complete(`{"prompt":"a","temperature":1e`+strings.Repeat("9", 1<<20)+`}`), 400, "invalid_value", "temperature")
	wantError(t, b.complete(`{"prompt":"a","logit_bias":{"1`+strings.Repeat("0", 1<<20)+`":1}}`), 400, "invalid_value",
		`logit_bias["1`+strings.Repeat("0", 60)+`..."]`)
	for _, body := range []string{
		`{"prompt":"a","logit_bias":{"canary":1}}`, `{"prompt":"a","stop":"canary","stop":1}`, `{"canary":1,"canary":2}`,
		`{"prompt":"a","images":["canary.png"]}`, `{"prompt":"a","images":["https://canary/a"]}`, `{"prompt":"canary","top_p":"canary"}`,
		`{"prompt":"a","images":"canary!"}`, `canary`, `{"prompt":"a","images":{"data":"x","canary":1,"url":"y"}}`,
	} {
		if r := b.complete(body); r.status != 400 || strings.Contains(r.body, "canary") {
			t.Errorf("%s gives %d %s", body, r.status, r.body)
		}
	}
}
