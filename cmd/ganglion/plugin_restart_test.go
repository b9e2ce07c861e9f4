package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// failsOnce is a script that counts the tokens it is told of, makes the next one of their
// number, and fails at step 3: in its first instance, in all, or in none.
const failsOnce = `/* ganglion
{"abi": "1.0", "name": "forgetful", "version": "1.0.0", "slot": "bias", "hooks": ["plan", "accept"], "view": {"edits": 1},
 "config_schema": {"type": "object", "properties": {"how": {"type": "string"}, "always": {"type": "boolean", "default": false}}}}
*/
let told = 0, replayed = false, config;
function open(r) { config = r.config; }
function accept(f) {
	told += f.tokensIn.length;
	replayed = replayed || (f.flags & 16) !== 0;
}
function plan(f) {
	if (f.step === 3 && (config.always || !replayed)) {
		if (config.how === "throws") throw new Error("once");
		if (config.how === "loops") for (;;) {}
	}
	return f.edit(100 + told * 7, ADD, 1000);
}
`

// TestRestartThroughTheServer: a plugin that fails once is opened anew, reads the text so far,
// and goes on as if nothing had been; one that fails again fails the request. The answer and
// the log say so.
func TestRestartThroughTheServer(t *testing.T) {
	needsCompiler(t)
	p := serveTiny(t, t.TempDir(), "--plugin-upload")
	if status, _, body := p.request("PUT", "/v1/plugins/files/forgetful.js", failsOnce, asBytes, octetStream); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	ask := func(plugins, more string) (status int, told, body string) {
		status, header, body := p.request("POST", "/v1/completions", `{"prompt":"a","max_completion_tokens":8,"temperature":0`+more+plugins+`}`)
		return status, header.Get("Ganglion-Plugins"), body
	}
	of := func(config, onError string) string {
		return fmt.Sprintf(`,"plugins":[{"name":"forgetful","on_error":%q,"config":%s}]`, onError, config)
	}
	text := func(status int, body string) (id, text string) {
		t.Helper()
		var answer struct {
			ID      string
			Choices []struct{ Text string }
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 || len(answer.Choices) != 1 {
			t.Fatalf("%d %s", status, body)
		}
		return answer.ID, answer.Choices[0].Text
	}
	status, told, body := ask(of(`{"how":"works"}`, "restart"), "")
	_, want := text(status, body)
	if !strings.HasPrefix(told, "forgetful@1.0.0 ok ") {
		t.Errorf("one that works: header %q", told)
	}
	status, _, body = ask("", "")
	if _, plain := text(status, body); plain == want {
		t.Error("the plugin does nothing: the test sees nothing")
	}
	for how, code := range map[string]string{"throws": "error", "loops": "fuel"} {
		config := fmt.Sprintf(`{"how":%q}`, how)
		status, told, body := ask(of(config, "restart"), "")
		id, got := text(status, body)
		if got != want || !strings.HasPrefix(told, "forgetful@1.0.0 restarted="+code+" ") {
			t.Errorf("%s: %q, header %q, want %q", how, got, told, want)
		}
		rec := p.row(id)
		if len(rec.Plugins) != 1 || rec.Plugins[0].Outcome != "restarted" || !strings.HasPrefix(rec.Plugins[0].Error, code+": ") {
			t.Errorf("%s: log %+v", how, rec.Plugins)
		}
		// In a stream nobody sees it, and the partner: without the policy the request ends.
		if status, _, body := ask(of(config, "restart"), `,"stream":true`); status != 200 || strings.Contains(body, "plugin_error") || streamed(t, body) != want {
			t.Errorf("%s, as a stream: %d %s, want %q", how, status, body, want)
		}
		if status, _, body := ask(of(config, "fail"), ""); status != 500 || !strings.Contains(body, `"code":"`+code+`"`) || !strings.Contains(body, `"step":3`) {
			t.Errorf("%s, on_error fail: %d %s", how, status, body)
		}
		// Again in the new instance: it is opened anew once.
		if status, _, body := ask(of(fmt.Sprintf(`{"how":%q,"always":true}`, how), "restart"), ""); status != 500 || !strings.Contains(body, `"code":"`+code+`"`) {
			t.Errorf("%s, always: %d %s", how, status, body)
		}
		if status, _, body := p.request("POST", "/v1/plugins/clear", `{"hash":"`+rec.Plugins[0].Hash+`"}`); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	}
}

// streamed joins the texts of a stream's events.
func streamed(t *testing.T, body string) (text string) {
	t.Helper()
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var event struct{ Choices []struct{ Text string } }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, c := range event.Choices {
			text += c.Text
		}
	}
	return text
}
