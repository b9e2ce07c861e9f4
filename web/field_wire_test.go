package web

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

// Field reports F23 to F43 and F61: what an answer holds, and broken requests.

func numbers(t *testing.T, c api.Choice) []float64 {
	t.Helper()
	list, ok := c.Logprobs.([]any)
	if !ok {
		t.Fatalf("logprobs are %T", c.Logprobs)
	}
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = v.(float64)
	}
	return out
}

func TestF23LogprobsGiveOneNumberPerToken(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"a", "b"}, Endless: true}})
	plain, chunks := both(t, b, `{"prompt":"p","logprobs":true,"max_completion_tokens":5}`)
	want := numbers(t, plain.Choices[0])
	var got []float64
	for _, c := range chunks {
		got = append(got, numbers(t, c.Choices[0])...)
	}
	if len(want) != 5 || !slices.Equal(got, want) {
		t.Errorf("plain %v, streamed %v, want 5 equal numbers", want, got)
	}
	for _, field := range []string{`,"logprobs":false`, `,"logprobs":null`, ``} {
		if c := b.answer(`{"prompt":"p","max_completion_tokens":2` + field + `}`); c.Choices[0].Logprobs != nil {
			t.Errorf("%q gives %v", field, c.Choices[0].Logprobs)
		}
	}
}

func TestF24LogprobsAreNeverPositive(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	for i := range 20 {
		c := b.answer(fmt.Sprintf(`{"prompt":"p%d","logprobs":true,"max_completion_tokens":64,"seed":%d}`, i, i))
		for _, n := range numbers(t, c.Choices[0]) {
			if n > 0 || math.IsInf(n, 0) {
				t.Errorf("prompt %d: %v", i, n)
			}
		}
	}
}

func TestF25LogprobsAreFinite(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	b.answer(`{"prompt":"p","logprobs":true,"top_k":1,"temperature":1,"max_completion_tokens":8}`)
	b.answer(`{"prompt":"p","logprobs":true,"logit_bias":{"65":-100,"66":-100},"max_completion_tokens":8}`)
	for in, want := range map[float64]float64{
		math.NaN(): lowestLogprob, math.Inf(-1): lowestLogprob, math.Inf(1): 0, 1e-9: 0, -2.5: -2.5, -1e300: lowestLogprob,
	} {
		if got := finite(in); got != want {
			t.Errorf("finite(%v) = %v, want %v", in, got, want)
		}
	}
}

func TestF26UsageCountsTheWholePrompt(t *testing.T) {
	b := start(t, scripted("x"))
	const body = `{"prompt":"a prompt that stays in its slot"}`
	first, second := b.answer(body).Usage, b.answer(body).Usage
	if *first != *second || first.PromptTokens != 31 || first.TotalTokens != first.PromptTokens+first.CompletionTokens {
		t.Errorf("usage %+v, then %+v", *first, *second)
	}
	if rows := b.recorder.Ended(); rows[1].CachedTokens == 0 {
		t.Error("the second prompt was not cached: this test shows nothing")
	}
}

func TestF27TheStreamEndsWithUsage(t *testing.T) {
	b := start(t, scripted("a", "b", "c"))
	for _, body := range []string{
		`{"prompt":"p","stream":true}`,
		`{"prompt":"p","stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":["p","q"],"stream":true}`,
	} {
		chunks := b.streamed(body)
		for i, c := range chunks {
			if (c.Usage != nil) != (i == len(chunks)-1) {
				t.Errorf("%s: chunk %d of %d has usage %v", body, i+1, len(chunks), c.Usage)
			}
		}
	}
	chunks := b.streamed(`{"prompt":"p","stream":true,"stream_options":{"include_usage":true}}`)
	if last := chunks[len(chunks)-1]; last.Choices == nil || len(last.Choices) != 0 {
		t.Errorf("the usage chunk has choices %v", last.Choices)
	}
}

func TestF28FinishReasonTellsLimitFromEnd(t *testing.T) {
	b := start(t, scripted("a", "b", "c", "d"))
	plain, _ := both(t, b, `{"prompt":"p","max_completion_tokens":3}`)
	if got := *plain.Choices[0].FinishReason; got != "length" {
		t.Errorf("finish %q, want length", got)
	}
	b = start(t, scripted("a", "b"))
	plain, _ = both(t, b, `{"prompt":"p","max_completion_tokens":3}`)
	if got := *plain.Choices[0].FinishReason; got != "stop" {
		t.Errorf("finish %q, want stop", got)
	}
}

func TestF29FinishReasonIsInEveryChunk(t *testing.T) {
	b := start(t, scripted("a", "b", "c", "d", "e"))
	r := b.complete(`{"prompt":"p","stream":true}`)
	set := 0
	for _, data := range events200(t, r) {
		var raw struct {
			Choices []map[string]json.RawMessage `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &raw); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"text", "index", "logprobs", "finish_reason"} {
			if _, ok := raw.Choices[0][key]; !ok {
				t.Errorf("no %s in %s", key, data)
			}
		}
		switch got := string(raw.Choices[0]["finish_reason"]); got {
		case "null":
		case `"stop"`:
			set++
		default:
			t.Errorf("finish_reason %s", got)
		}
	}
	if set != 1 {
		t.Errorf("%d chunks have a finish reason", set)
	}
}

func TestF30SmallLimitsAreExact(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}, Endless: true}})
	for n := range 4 {
		plain, _ := both(t, b, fmt.Sprintf(`{"prompt":"p","max_completion_tokens":%d}`, n))
		if got := plain.Choices[0]; got.Text != strings.Repeat("x", n) || *got.FinishReason != "length" || plain.Usage.CompletionTokens != n {
			t.Errorf("limit %d: %q, %s, %d tokens", n, got.Text, *got.FinishReason, plain.Usage.CompletionTokens)
		}
	}
}

func TestF31TheLimitIsClampedToTheRoom(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}, Endless: true}, options: appliancetest.Options{Context: 256}})
	prompt := strings.Repeat("p", 100)
	for _, n := range []string{"157", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1e400", "1e99999999999999999999"} {
		// The validators cannot read the last two.
		c := parse[api.Completion](t, b.unchecked(`{"prompt":"`+prompt+`","max_completion_tokens":`+n+`}`).body)
		if got := c.Usage.CompletionTokens; got != 156 || *c.Choices[0].FinishReason != "length" {
			t.Errorf("%s: %d tokens, %s", n, got, *c.Choices[0].FinishReason)
		}
	}
	wantError(t, b.complete(`{"prompt":"p","max_completion_tokens":-1e30}`), 400, "invalid_value", "max_completion_tokens")
	wantError(t, b.complete(`{"prompt":"p","max_completion_tokens":-1}`), 400, "invalid_value", "max_completion_tokens")
	wantError(t, b.complete(`{"prompt":"p","max_tokens":-1}`), 400, "invalid_value", "max_tokens")
}

func TestF32EveryRequestEnds(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}, Endless: true}})
	c := b.answer(`{"prompt":"p"}`)
	if got := c.Usage.CompletionTokens; got != appliance.DefaultMaxTokens || *c.Choices[0].FinishReason != "length" {
		t.Errorf("%d tokens, %s", got, *c.Choices[0].FinishReason)
	}
}

func TestF33F34LongPromptsAreRefused(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}, Endless: true}, options: appliancetest.Options{Context: 256}})
	if c := b.answer(`{"prompt":"` + strings.Repeat("p", 255) + `"}`); c.Usage.CompletionTokens != 1 {
		t.Errorf("%d tokens of room, want 1", c.Usage.CompletionTokens)
	}
	for _, n := range []int{256, 257, 10_000} {
		for _, stream := range []string{"", `,"stream":true`} {
			r := b.complete(`{"prompt":"` + strings.Repeat("p", n) + `"` + stream + `}`)
			wantError(t, r, 400, "context_length_exceeded", "prompt")
			if !strings.Contains(r.body, fmt.Sprint(n)) || !strings.Contains(r.body, "256") {
				t.Errorf("both numbers are not in %s", r.body)
			}
		}
	}
}

func TestF35EveryStreamEndsWithItsEndMark(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}, Endless: true}})
	work := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range work {
				n := 1 + i%50
				r := b.unchecked(fmt.Sprintf(`{"prompt":"p%d","stream":true,"max_completion_tokens":%d}`, i, n))
				if got := strings.Count(strings.Join(events200(t, r), ""), `"text":"x"`); got != n {
					t.Errorf("request %d: %d tokens, want %d", i, got, n)
				}
			}
		})
	}
	for i := range 1000 {
		work <- i
	}
	close(work)
	wg.Wait()
}

func TestF36BadRequestsFailBeforeTheStream(t *testing.T) {
	b := start(t, scripted("x"))
	wantError(t, b.complete(`{"prompt":"a","stream":true,"temperature":-1}`), 400, "invalid_value", "temperature")
}

func TestF37NullMeansAbsent(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	fields := []string{"images", "audios", "videos", "max_completion_tokens", "temperature", "top_p", "top_k", "stream", "stop",
		"presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n", "min_p", "top_logprobs", "stream_options", "speculate", "lora"}
	want := b.answer(`{"prompt":"p","seed":5}`).Choices[0]
	all := ""
	for _, f := range fields {
		all += `,"` + f + `":null`
		if got := b.answer(`{"prompt":"p","seed":5,"` + f + `":null}`).Choices[0]; got.Text != want.Text || got.Logprobs != nil {
			t.Errorf("%s: %q, want %q", f, got.Text, want.Text)
		}
	}
	if got := b.answer(`{"prompt":"p","seed":5` + all + `}`).Choices[0]; got.Text != want.Text {
		t.Errorf("all: %q, want %q", got.Text, want.Text)
	}
	b.answer(`{"prompt":"p","seed":null}`)
}

func TestF38WholeValuedNumbersAreIntegers(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	want := b.answer(`{"prompt":"p","max_completion_tokens":8,"seed":5,"top_k":40}`)
	for _, body := range []string{
		`{"prompt":"p","max_completion_tokens":8.0,"seed":5.0,"top_k":40.0}`,
		`{"prompt":"p","max_completion_tokens":8e0,"seed":0.5e1,"top_k":4e+1}`,
		`{"prompt":"p","max_completion_tokens":800E-2,"seed":50e-1,"top_k":0.40e2}`,
	} {
		if got := b.answer(body); got.Choices[0].Text != want.Choices[0].Text || got.Usage.CompletionTokens > 8 {
			t.Errorf("%s: %q, want %q", body, got.Choices[0].Text, want.Choices[0].Text)
		}
	}
	for _, field := range []string{"max_completion_tokens", "seed", "top_k", "max_tokens", "n"} {
		wantError(t, b.complete(`{"prompt":"p","`+field+`":8.5}`), 400, "invalid_type", field)
		wantError(t, b.complete(`{"prompt":"p","`+field+`":"8"}`), 400, "invalid_type", field)
	}
	// No digit is lost: the seed of the row is the seed that was sent.
	b.answer(`{"prompt":"p","seed":9007199254740993.0}`)
	rows := b.recorder.Ended()
	if got := rows[len(rows)-1].Seed; got != 9007199254740993 {
		t.Errorf("seed %d", got)
	}
	wantError(t, b.complete(`{"prompt":"p","seed":9223372036854775808}`), 400, "invalid_value", "seed")
}

func TestF39BrokenJSONIsOnlyA400(t *testing.T) {
	b := start(t, scripted("x"))
	bodies := []string{`{:`, ``, `[]`, `null`, `"x"`, `{"prompt":{}}`, `{"prompt":[1]}`, strings.Repeat("[", 100_000), `{"prompt":"a"}{}`,
		`{"prompt":[1,2,3]}`, `{"prompt":[]}`, `{"prompt":true}`, `{"prompt":["a",1]}`, `{"prompt":"a",}`, `{'prompt':'a'}`, `{"prompt":"a\x"}`,
		`{"prompt":"\ud800"}`, "\ufeff" + `{"prompt":"a"}`, `{"prompt":"a","prompt":"b"}`, `{"prompt":"a","\u0070rompt":"b"}`,
		`{"prompt":"a","x":{"y":1,"y":2}}`, `{"prompt":"a","top_p":NaN}`, `{"prompt":"a","top_p":01}`, `{"prompt":"a","top_p":1.}`, "{\"prompt\":\"a\n\"}"}
	// The fastest of some four hundred tries counts: the machine may be busy.
	fastest := map[string]time.Duration{}
	for i := range 10_000 {
		body := bodies[i%len(bodies)]
		begin := time.Now()
		r := b.unchecked(body)
		if took := time.Since(begin); i < len(bodies) || took < fastest[body] {
			fastest[body] = took
		}
		if r.status != 400 || r.header.Get("Content-Type") != "application/json" || !json.Valid([]byte(r.body)) {
			t.Fatalf("%q gives %d %s", cut(body, 40), r.status, r.body)
		}
	}
	for body, took := range fastest {
		b.complete(body) // holds the error against the document
		if took > 50*time.Millisecond {
			t.Errorf("%q took %v", cut(body, 40), took)
		}
	}
	b.answer(`{"prompt":"a"}`)
}

func TestF41UnknownFieldsAreIgnored(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	want := b.answer(`{"prompt":"a","seed":1}`).Choices[0].Text
	got := b.answer(`{"prompt":"a","seed":1,"model":"x","n":1,"user":"u","echo":false,"zzz":{"a":[1]},"Temperature":"no","TOP_P":9,"x":"\ud800"}`)
	if got.Choices[0].Text != want {
		t.Errorf("%q, want %q", got.Choices[0].Text, want)
	}
	wantError(t, b.complete(`{"Prompt":"a"}`), 400, "missing_parameter", "prompt")
}

func TestF43ThePromptGoesToTheModelAsItIs(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}}, options: appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: true}}})
	b.answer(`{"prompt":"I think "}`)
	want := append([]int32{appliancetest.BOS}, ids("I think ")...)
	if got := b.model.Prompts()[0]; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func ids(s string) (out []int32) {
	for _, c := range []byte(s) {
		out = append(out, int32(c))
	}
	return out
}

func TestF45BOSAppearsOnce(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}}, options: appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: true}}})
	first, second := b.answer(`{"prompt":"<bos>hi"}`), b.answer(`{"prompt":"hi"}`)
	if p := b.model.Prompts(); !slices.Equal(p[0], p[1]) || first.Usage.PromptTokens != 3 || second.Usage.PromptTokens != 3 {
		t.Errorf("%v, usage %+v and %+v", p, *first.Usage, *second.Usage)
	}
}

func TestF49SpecialParsingCanBeOff(t *testing.T) {
	for plain, want := range map[bool]int{false: 3, true: len("<pad>x<eos>")} {
		b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}}, service: appliance.Config{PlainSpecial: plain}})
		if got := b.answer(`{"prompt":"<pad>x<eos>"}`).Usage.PromptTokens; got != want {
			t.Errorf("plain %v: %d tokens, want %d", plain, got, want)
		}
	}
}

func TestF61AnEmptyPromptIsHarmless(t *testing.T) {
	b := start(t, scripted("x"))
	for _, body := range []string{`{"prompt":""}`, `{"prompt":"","images":[]}`} {
		if c := b.answer(body); c.Usage.PromptTokens != 1 || c.Choices[0].Text != "x" {
			t.Errorf("%s: %+v %q", body, *c.Usage, c.Choices[0].Text)
		}
	}
	for _, body := range []string{`{}`, `{"prompt":null}`} {
		wantError(t, b.complete(body), 400, "missing_parameter", "prompt")
	}
	b = start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}}, options: appliancetest.Options{Vocabulary: appliancetest.Vocabulary{NoBOS: true}}})
	wantError(t, b.complete(`{"prompt":""}`), 400, "empty_prompt", "prompt")
	b.answer(`{"prompt":"a"}`)
}
