package web

import (
	"slices"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

// startAdapters serves a model with two adapters, of which the first acts by default.
func startAdapters(t *testing.T) *bench {
	return start(t, setup{
		model:   appliancetest.NewHashed(appliancetest.Options{Adapters: []string{"law", "poems"}}),
		service: appliance.Config{LoRA: []appliance.LoRA{{Path: "law.gguf", Scale: 90}, {Path: "poems.gguf"}}},
	})
}

func TestAdapters(t *testing.T) {
	b := startAdapters(t)
	const body = `{"prompt":"five","temperature":0,"max_completion_tokens":3`
	none := b.answer(body + `,"lora":[]}`).Choices[0].Text
	for _, tt := range []struct{ lora, want string }{
		{``, "AAA"},
		{`,"lora":null`, "AAA"},
		{`,"lora":[{"name":"poems","scale":90}]`, "BBB"},
		{`,"lora":[{"id":1,"scale":9e1},{"name":"law","scale":0}]`, "BBB"},
		{`,"lora":[{"id":1,"name":null,"scale":90}]`, "BBB"},
		{`,"lora":[{"name":"law","scale":0}]`, none},
	} {
		if got := b.answer(body + tt.lora + `}`).Choices[0].Text; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.lora, got, tt.want)
		}
	}
	for _, tt := range []struct{ lora, param, says string }{
		{`[{"name":"tax"}]`, "lora[0].name", `the adapters loaded are 0 \"law\", 1 \"poems\"`},
		{`[{"id":0},{"id":2}]`, "lora[1].id", "lora[1].id is 2"},
		{`[{"id":0},{"name":"law"}]`, "lora[1]", "a second time"},
		{`[{"id":0,"scale":101}]`, "lora[0].scale", "it must be in [-100, 100]"},
	} {
		r := b.complete(`{"prompt":"five","lora":` + tt.lora + `}`)
		wantError(t, r, 400, "invalid_value", tt.param)
		if !strings.Contains(r.body, tt.says) {
			t.Errorf("%s: %s, want %q", tt.lora, r.body, tt.says)
		}
	}
}

// The record and the details say which adapters acted and who asked for them.
func TestAdaptersAreTold(t *testing.T) {
	b := startAdapters(t)
	a := b.answer(`{"prompt":"five","max_completion_tokens":1,"lora":[{"id":1}]}`, "Ganglion-Details", "1")
	names := []string{}
	for _, p := range a.Ganglion.Params {
		if strings.HasPrefix(p.Name, "lora") {
			names = append(names, p.Name+" "+string(p.Origin))
		}
	}
	if want := []string{`lora["law"] request`, `lora["poems"] request`}; !slices.Equal(names, want) {
		t.Errorf("parameters %q, want %q", names, want)
	}
	s := parse[api.Status](t, b.do("GET", "/v1/status", "").body)
	if len(s.Adapters) != 2 || s.Adapters[0].Name != "law" || s.Adapters[0].Scale != 90 || s.Adapters[1].ID != 1 || s.Adapters[1].Scale != 0 {
		t.Errorf("adapters %+v", s.Adapters)
	}
	plain := start(t, setup{})
	if r := plain.do("GET", "/v1/status", ""); !strings.Contains(r.body, `"adapters":[]`) {
		t.Errorf("without adapters: %s", r.body)
	}
}

// What the decoder refuses for its shape, the document refuses as well.
func TestAdaptersOfTheDocument(t *testing.T) {
	doc, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	b := startAdapters(t)
	for lora, good := range map[string]bool{
		`[]`: true, `null`: true, `[{"name":"law"}]`: true, `[{"id":0,"scale":-1.5}]`: true, `[{"id":1,"scale":null}]`: true,
		`{}`: false, `"law"`: false, `["law"]`: false, `[{}]`: false, `[{"scale":1}]`: false, `[{"id":"0"}]`: false, `[{"id":-1}]`: false,
		`[{"name":1}]`: false, `[{"id":0,"scale":true}]`: false, `[{"id":0,"scale":101}]`: false,
	} {
		body := `{"prompt":"p","max_completion_tokens":1,"lora":` + lora + `}`
		r := b.request("POST", "/v1/completions", body)
		first, second := doc.request(r, body)
		if (first == nil) != good || (second == nil) != good {
			t.Errorf("%s: the document says %v / %v, want good %v", lora, first, second, good)
		}
		if got := b.send(b.request("POST", "/v1/completions", body)).status; (got == 200) != good {
			t.Errorf("%s: the server says %d, want good %v", lora, got, good)
		}
	}
}
