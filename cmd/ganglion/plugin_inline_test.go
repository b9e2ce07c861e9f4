package main

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/plugins/builtin"
)

// TestInlineThroughTheServer: requests bring plugins as scripts and as modules, through the
// pipeline that all plugins take, from callers with the key, and without capabilities.
func TestInlineThroughTheServer(t *testing.T) {
	needsCompiler(t)
	module := func(name string) string {
		b, err := fs.ReadFile(builtin.Files(), name+".wasm")
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	ask := func(code string) string {
		b, err := json.Marshal(map[string]any{"prompt": "a", "max_completion_tokens": 2, "temperature": 1, "plugins": []any{map[string]any{"code": code, "on_error": "fail"}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const script = `/* ganglion
{"abi": "1.0", "name": "mine", "version": "1.0.0", "slot": "bias", "hooks": ["plan"], "view": {"edits": 1}}
*/
function plan(f) { return f.edit(1, BAN, 0); }
`
	home := t.TempDir()
	key := filepath.Join(home, "key")
	if err := os.WriteFile(key, []byte("known\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Callers that bring code must be known: without a key it does not start.
	open := launch(t, cleanEnv(home), serveArgs(t, home, "--inline-plugins")...)
	if code, out := open.wait(), open.output(); code != exitUsage || !strings.Contains(out, "--inline-plugins") || !strings.Contains(out, "--key-file") {
		t.Errorf("without a key it ends with %d:\n%s", code, out)
	}
	p := serveTiny(t, home, "--inline-plugins", "--key-file", key)
	complete := func(body string) (int, string) {
		status, _, answer := p.request("POST", "/v1/completions", body, "Authorization", "Bearer known")
		return status, answer
	}
	if status, body := p.complete(ask(script)); status != 401 {
		t.Errorf("a caller without the key: %d %s", status, body)
	}
	asking := func(capability string) string {
		return strings.Replace(script, `"slot"`, `"capabilities": ["`+capability+`"], "slot"`, 1)
	}
	for name, c := range map[string]struct {
		code   string
		status int
		want   string
	}{
		"script":       {script, 200, `"mine"`},
		"again":        {script, 200, `"mine"`},
		"module":       {module("min-p"), 200, `"min-p"`},
		"no base64":    {"?", 400, "neither a WebAssembly file"},
		"no module":    {"AAAA", 400, "neither a WebAssembly file"},
		"no manifest":  {base64.StdEncoding.EncodeToString([]byte("\x00asm\x01\x00\x00\x00")), 400, "manifest"},
		"cut":          {module("min-p")[:400], 400, "the code is not taken"},
		"sequences":    {module("cfg"), 400, "aux-seq"},
		"vocabulary":   {module("language-lock"), 400, "vocab"},
		"a store":      {asking("kv"), 400, "the capability kv"},
		"the time":     {asking("clock"), 400, "the capability clock"},
		"words":        {asking("vocab"), 400, "the capability vocab"},
		"system calls": {asking("wasi-stubs"), 400, "the capability wasi-stubs"},
		"fails":        {broken, 500, `"plugin":"broken"`},
		"fails at all": {`/* ganglion {"abi":"1.0"} */`, 400, "/plugins/0/code"},
		"large":        {"/*" + strings.Repeat("x", maxInlineBytes), 400, "at most 1048576"},
	} {
		for range 2 { // loaded, and kept
			if status, header, body := p.request("POST", "/v1/completions", ask(c.code), "Ganglion-Details", "1", "Authorization", "Bearer known"); status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %d %v %s", name, status, header, body)
			}
		}
	}
	// What a plugin does not take of a request is the request's fault.
	if status, body := complete(`{"prompt":"a","plugins":[{"name":"grammar","config":{"gbnf":"no grammar"}}]}`); status != 400 || !strings.Contains(body, `"code":"refused_by_plugin"`) || !strings.Contains(body, `"plugin":"grammar"`) || !strings.Contains(body, `"type":"invalid_request_error"`) {
		t.Errorf("a bad grammar: %d %s", status, body)
	}
	for range 4 { // quarantine is for what is installed
		if status, body := complete(ask(broken)); status != 500 {
			t.Errorf("%d %s", status, body)
		}
	}
	shut := serveTiny(t, t.TempDir())
	if status, body := shut.complete(ask(script)); status != 403 || !strings.Contains(body, "forbidden_code") || !strings.Contains(body, "--inline-plugins") {
		t.Errorf("without --inline-plugins: %d %s", status, body)
	}
}
