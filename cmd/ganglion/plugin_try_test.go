package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// With the model a logged text comes again token by token, so that every other token is
// the plugin's doing; of what the log kept it comes again as far as that was enough.
func TestTryLoggedRequests(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home)
	for i := range 3 {
		body := fmt.Sprintf(`{"prompt":"abc def %d","max_tokens":24,"temperature":0.9,"seed":%d,"logprobs":true,"top_logprobs":20,"presence_penalty":0.5,"logit_bias":{"300":2}}`, i, i)
		if code, answer := p.complete(body); code != 200 {
			t.Fatalf("%d: %s", code, answer)
		}
	}
	if code, answer := p.complete(`{"prompt":"abc","max_tokens":8,"seed":1}`); code != 200 {
		t.Fatalf("%d: %s", code, answer)
	}
	p.stop()
	try := func(args ...string) (r trialResult) {
		t.Helper()
		cmd := exec.Command(binaryPath(t), append([]string{"plugin", "try", "--json", "--model", tinyPath(t), "--data", filepath.Join(home, "data")}, args...)...)
		cmd.Env = cleanEnv(home)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	xtc := filepath.Join("..", "..", "plugins", "builtin", "wasm", "xtc.wasm")
	minP := filepath.Join("..", "..", "plugins", "builtin", "wasm", "min-p.wasm")

	r := try("--with-model", "--plugin-config", `{"probability":1,"threshold":0.001}`, xtc)
	if !r.Exact || r.Texts != 4 || r.Seen != r.Tokens || r.Reproduced != r.Tokens || r.Tokens < 60 {
		t.Errorf("with the model: %+v; want every token to come again", r)
	}
	if r.Other == 0 || r.Fuel == 0 || r.Failed != 0 {
		t.Errorf("with the model: %+v; want other tokens, and fuel", r)
	}
	if r := try("--with-model", "--plugin-config", `{"p":0.000001}`, minP); r.Other != 0 || r.Reproduced != r.Tokens {
		t.Errorf("a plugin that changes nothing: %+v", r)
	}
	r = try("--plugin-config", `{"probability":1,"threshold":0.001}`, xtc)
	if r.Exact || r.Texts != 3 || len(r.Skipped) != 1 || r.Seen != r.Tokens || r.Reproduced == 0 || r.Reproduced == r.Tokens {
		t.Errorf("from the log: %+v", r)
	}
	// One that fails before the first token says so, what it costs, and why.
	script := filepath.Join(home, "endless.js")
	if err := os.WriteFile(script, []byte(stuck), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := try("--with-model", script); r.Texts != 4 || r.Failed != 4 || r.Seen != 0 || r.Calls != 0 || r.OnceFuel == 0 || !strings.Contains(r.Error, "fuel") {
		t.Errorf("one that never opens: %+v", r)
	}
	shown := exec.Command(binaryPath(t), "plugin", "try", "--model", tinyPath(t), "--data", filepath.Join(home, "data"), script)
	shown.Env = cleanEnv(home)
	if out, err := shown.CombinedOutput(); err != nil || !regexp.MustCompile(`(?m)^failed +3$`).Match(out) || !regexp.MustCompile(`(?m)^first failure +.*endless@1\.0\.0.*fuel`).Match(out) || !regexp.MustCompile(`(?m)^beside tokens +[0-9.]+ µs and [1-9][0-9]* fuel a request$`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
	// What needs more than the log holds says so before anything runs.
	cfg := exec.Command(binaryPath(t), "plugin", "try", "--plugin-config", `{"negative_prompt":"x"}`, "--model", tinyPath(t), "--data", filepath.Join(home, "data"), filepath.Join("..", "..", "plugins", "builtin", "wasm", "cfg.wasm"))
	cfg.Env = cleanEnv(home)
	if out, err := cfg.CombinedOutput(); err == nil || !strings.Contains(string(out), "sequences beside the text") {
		t.Errorf("cfg: %v: %s", err, out)
	}
	if r := try("--last", "1", xtc); r.Texts != 0 || len(r.Skipped) != 1 {
		t.Errorf("the last one alone: %+v", r)
	}
}
