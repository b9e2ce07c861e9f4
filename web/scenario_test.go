package web

import (
	"encoding/json"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

// The scenario table: a request, what its answer must and must not hold, and what
// of it stands in the log. The script is " six", " seven", then the end.
var scenarios = []struct {
	name, body string
	status     int
	contain    []string
	not        []string
	rows       []appliance.Record // outcome, text, counts and stream are compared
}{
	{"plain", `{"prompt":"five"}`, 200,
		[]string{`"object":"completion"`, `"text":" six seven"`, `"finish_reason":"stop"`, `"logprobs":null`, `"total_tokens":6`},
		[]string{"data:", "details", "ganglion"},
		[]appliance.Record{{Outcome: "stop", Text: " six seven", Prompt: "five", PromptTokens: 4, CompletionTokens: 2}}},
	{"stream", `{"prompt":"five","stream":true}`, 200,
		[]string{`data: {"id":"cmpl-`, `"text":" six","index":0,"logprobs":null,"finish_reason":null`, "data: [DONE]\n\n"},
		[]string{"event:", "ping", `"finish_reason":""`},
		[]appliance.Record{{Outcome: "stop", Text: " six seven", Prompt: "five", PromptTokens: 4, CompletionTokens: 2, Stream: true}}},
	{"LangChain", `{"prompt":["hi"],"model":"x","max_tokens":256,"logprobs":null,"seed":null,"n":1,"best_of":1,"temperature":0.7,"top_p":1,"frequency_penalty":0,"presence_penalty":0}`, 200,
		[]string{`"text":" six seven"`}, nil, []appliance.Record{{Outcome: "stop", Text: " six seven", Prompt: "hi", PromptTokens: 2, CompletionTokens: 2}}},
	{"Vercel", `{"prompt":"hi","stop":["\nuser:"],"stream":true,"stream_options":{"include_usage":true},"max_tokens":1}`, 200,
		[]string{`"finish_reason":"length"`, `"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}`}, []string{`"usage":null`},
		[]appliance.Record{{Outcome: "length", Text: " six", Prompt: "hi", PromptTokens: 2, CompletionTokens: 1, Stream: true}}},
	{"llm", `{"prompt":"hi","stop":"seven","logprobs":2,"stream":false}`, 200,
		[]string{`"text":" six "`, `"tokens":[" six"`, `"token_logprobs"`, `"top_logprobs"`, `"text_offset":[0`}, nil,
		[]appliance.Record{{Outcome: "stop", Text: " six ", Prompt: "hi", PromptTokens: 2, CompletionTokens: 2}}},
	{"batch", `{"prompt":["a","bb"],"max_completion_tokens":1}`, 200,
		[]string{`"index":0`, `"index":1`, `"prompt_tokens":3,"completion_tokens":2`}, []string{`"index":2`},
		[]appliance.Record{{Outcome: "length", Text: " six", Prompt: "a", PromptTokens: 1, CompletionTokens: 1}, {Outcome: "length", Text: " six", Prompt: "bb", PromptTokens: 2, CompletionTokens: 1}}},
	{"nothing to do", `{"prompt":"a","max_completion_tokens":0}`, 200, []string{`"text":""`, `"finish_reason":"length"`}, nil,
		[]appliance.Record{{Outcome: "length", Prompt: "a", PromptTokens: 1}}},
	{"HTML stays text", `{"prompt":"<b>&</b>"}`, 200, []string{`"text":" six seven"`}, []string{`\u003c`},
		[]appliance.Record{{Outcome: "stop", Text: " six seven", Prompt: "<b>&</b>", PromptTokens: 8, CompletionTokens: 2}}},
	{"bad value", `{"prompt":"a","top_p":7}`, 400, []string{"top_p"}, []string{"choices"}, nil},
	{"bad value in a stream", `{"prompt":"a","top_p":7,"stream":true}`, 400, []string{"top_p"}, []string{"data:"}, nil},
	{"bad type", `{"prompt":"a","top_p":"canary"}`, 400, []string{`"param":"top_p"`, "a number", "a string"}, []string{"canary"}, nil},
	{"bad bias", `{"prompt":"a","logit_bias":{"999999999":5}}`, 400, []string{"999999999"}, nil, nil},
	{"bad JSON", `{"prompt":"a"`, 400, []string{"invalid_json", "ends too early"}, nil, nil},
	{"bad media", `{"prompt":"a","images":["!"]}`, 400, []string{"images[0]", "media_invalid"}, nil, nil},
}

func TestScenarios(t *testing.T) {
	for _, tt := range scenarios {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, setup{script: appliancetest.Script{Pieces: []string{" six", " seven"}}})
			r := b.complete(tt.body, "User-Agent", "test/1")
			if r.status != tt.status {
				t.Fatalf("status %d, want %d: %s", r.status, tt.status, r.body)
			}
			for _, s := range tt.contain {
				if !strings.Contains(r.body, s) {
					t.Errorf("no %q in %s", s, r.body)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(r.body, s) {
					t.Errorf("%q is in %s", s, r.body)
				}
			}
			if tt.status != 200 {
				var e map[string]map[string]any
				if err := json.Unmarshal([]byte(r.body), &e); err != nil || len(e["error"]) != 4 {
					t.Errorf("error object %s", r.body)
				}
			}
			rows := b.recorder.Ended()
			if len(rows) != len(tt.rows) {
				t.Fatalf("%d rows, want %d", len(rows), len(tt.rows))
			}
			for _, want := range tt.rows {
				found := false
				for _, got := range rows {
					if got.Prompt != want.Prompt {
						continue
					}
					found = true
					if got.Outcome != want.Outcome || got.Text != want.Text || got.PromptTokens != want.PromptTokens ||
						got.CompletionTokens != want.CompletionTokens || got.Stream != want.Stream {
						t.Errorf("row %+v, want %+v", got, want)
					}
					if string(got.Body) != tt.body || got.Route != "POST /v1/completions" || got.Client != "test/1" {
						t.Errorf("row of %q by %q over %q", got.Body, got.Client, got.Route)
					}
				}
				if !found {
					t.Errorf("no row of %q", want.Prompt)
				}
			}
		})
	}
}
