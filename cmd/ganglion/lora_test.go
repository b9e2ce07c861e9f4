package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ganglion/gpu/archtest"
)

const loraDir = "../../gpu/engine/testdata/lora"

// loraFile is the tiny model's adapter, for programs that run in any folder.
func loraFile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(loraDir, "gemma3-0.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lastRow reads the log-probability of the best token of a file's last row of logits.
func lastRow(t *testing.T, path string) float64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const vocab = 320
	best, sum := math.Inf(-1), 0.0
	row := b[len(b)-4*vocab:]
	for i := range vocab {
		best = math.Max(best, float32At(string(row[4*i:])))
	}
	for i := range vocab {
		sum += math.Exp(float32At(string(row[4*i:])) - best)
	}
	return -math.Log(sum)
}

// A request gets the adapters it names: over HTTP the log-probabilities are those of
// the reference with the same adapter at the same scale, and without it those of the
// model, also where both are answered together.
func TestAdaptersOverHTTP(t *testing.T) {
	set := archtest.Golden(t)
	plain := lastRow(t, filepath.Join(set.Dir, set.Find(t, "gemma3-dense").Logits))
	adapted := lastRow(t, filepath.Join(loraDir, "gemma3.logits.f32"))
	if math.Abs(plain-adapted) < 0.05 {
		t.Fatalf("the adapter changes %v to %v alone", plain, adapted)
	}
	p := serveTiny(t, t.TempDir(), "--numerics", "exact", "--lora", loraFile(t)+":0")
	ask := func(lora string) float64 {
		code, body := p.complete(`{"prompt":[[` + goldenTokens + `]],"max_completion_tokens":1,"temperature":0,"logprobs":true` + lora + `}`)
		var answer struct {
			Choices []struct{ Logprobs []float64 }
		}
		if err := json.Unmarshal([]byte(body), &answer); code != http.StatusOK || err != nil || len(answer.Choices) != 1 || len(answer.Choices[0].Logprobs) != 1 {
			t.Errorf("%s: status %d: %s", lora, code, body)
			return math.NaN()
		}
		return answer.Choices[0].Logprobs[0]
	}
	tests := []struct {
		lora string
		want float64
	}{
		{``, plain}, {`,"lora":[{"name":"gemma3-0","scale":-0.5}]`, adapted}, {`,"lora":[]`, plain}, {`,"lora":[{"id":0,"scale":-0.5}]`, adapted},
	}
	var wg sync.WaitGroup
	for range 3 {
		for _, tt := range tests {
			wg.Go(func() {
				if got := ask(tt.lora); !(math.Abs(got-tt.want) < 0.005) {
					t.Errorf("%s: log-probability %v, want %v", tt.lora, got, tt.want)
				}
			})
		}
	}
	wg.Wait()
	code, body := p.complete(`{"prompt":"x","lora":[{"name":"canary"}]}`)
	if code != http.StatusBadRequest || !strings.Contains(body, `the adapters loaded are 0 \"gemma3-0\"`) || !strings.Contains(body, `"lora[0].name"`) {
		t.Errorf("an unknown adapter: status %d: %s", code, body)
	}
	var s struct {
		Adapters []struct {
			ID         int
			Name, Path string
			Scale      float64
			Weights    int
		}
	}
	p.get("/v1/status", &s)
	if len(s.Adapters) != 1 || s.Adapters[0].Name != "gemma3-0" || s.Adapters[0].Path != loraFile(t) || s.Adapters[0].Scale != 0 || s.Adapters[0].Weights == 0 {
		t.Errorf("status: %+v", s)
	}
	var log struct {
		Records []struct{ ID string }
	}
	p.get("/v1/log?limit=1", &log)
	if len(log.Records) == 1 {
		var row struct {
			Params []struct {
				Name, Origin string
				Value        any
			}
		}
		p.get("/v1/log/"+log.Records[0].ID, &row)
		if !strings.Contains(fmt.Sprint(row.Params), `{lora["gemma3-0"] `) {
			t.Errorf("the row says nothing of the adapter: %v", row.Params)
		}
	} else {
		t.Errorf("log: %+v", log)
	}
	p.stop()
}

// A model that a server's adapter does not fit is not loaded, and the one that serves
// goes on; the error names the adapter.
func TestAdapterThatDoesNotFitTheNextModel(t *testing.T) {
	home := t.TempDir()
	other := filepath.Join(home, "data", "models", "other.gguf")
	copyFile(t, "../../gpu/engine/testdata/arch/llama-dense.gguf", other, 0o644)
	p := serveTiny(t, home, "--lora", loraFile(t))
	p.load(other, "")
	p.waitLine("model did not load")
	var s status
	p.get("/v1/status", &s)
	if s.State != "ready" || s.Model == nil || s.Model.Name != "gemma3-dense" || !strings.Contains(s.Error, `adapter "gemma3-0": key "general.architecture" is "gemma3", want "llama"`) {
		t.Errorf("status: %+v", s)
	}
	p.answers()
	p.stop()
}
