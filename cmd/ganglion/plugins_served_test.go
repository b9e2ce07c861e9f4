package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ganglion/web/api"
)

// broken is a script that fails at every token.
const broken = `/* ganglion
{"abi": "1.0", "name": "broken", "version": "1.0.0", "slot": "bias", "hooks": ["plan"]}
*/
function plan(f) { throw new Error("no"); }
`

const (
	asBytes      = "Content-Type"
	octetStream  = "application/octet-stream"
	askForBroken = `{"prompt":"a","max_completion_tokens":2,"plugins":[{"name":"broken","on_error":"fail"}]}`
)

// TestPluginsThroughTheServer takes a plugin from its upload over its failures and its
// quarantine to the button that clears it.
func TestPluginsThroughTheServer(t *testing.T) {
	needsCompiler(t)
	home := t.TempDir()
	p := serveTiny(t, home, "--plugin-upload")
	put := func(name, file string, status int, want string) {
		t.Helper()
		if got, _, body := p.request("PUT", "/v1/plugins/files/"+name, file, asBytes, octetStream); got != status || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %d with %s", name, got, body, status, want)
		}
	}
	put("broken.js", broken, 201, `{"name":"broken","version":"1.0.0"}`)
	put("bad.wasm", "no module", 400, "invalid_plugin_file")
	put("other.js", broken, 409, "already_exists")
	put("broken.txt", broken, 400, "invalid_value")
	folder := filepath.Join(home, "data", "plugins")
	if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
		t.Errorf("%v in %s: %v", files, folder, err)
	}
	find := func() api.PluginItem {
		t.Helper()
		var list api.PluginList
		p.get("/v1/plugins", &list)
		if !list.Upload || len(list.Plugins) < 20 || list.Loading {
			t.Errorf("%d plugins, upload %v, loading %v", len(list.Plugins), list.Upload, list.Loading)
		}
		for _, i := range list.Plugins {
			if i.Name == "broken" {
				return i
			}
		}
		t.Fatal("it is not listed")
		return api.PluginItem{}
	}
	for range 3 {
		if status, body := p.complete(askForBroken); status != 500 || !strings.Contains(body, `"plugin":"broken"`) {
			t.Errorf("%d %s", status, body)
		}
	}
	got := find()
	if got.Quarantine == nil || got.Cost.Requests != 3 || got.Cost.Failures != 3 || got.Cost.LastError == "" || got.Signature != "unsigned" {
		t.Errorf("%+v", got)
	}
	if status, body := p.complete(askForBroken); status == 200 || strings.Contains(body, `"step"`) {
		t.Errorf("in quarantine: %d %s", status, body)
	}
	if status, _, body := p.request("POST", "/v1/plugins/clear", `{"hash":"`+got.Hash+`"}`); status != 200 || body != `{"cleared":true}` {
		t.Errorf("%d %s", status, body)
	}
	if got := find(); got.Quarantine != nil {
		t.Errorf("%+v", got.Quarantine)
	}

	shut := serveTiny(t, t.TempDir())
	if status, _, body := shut.request("PUT", "/v1/plugins/files/broken.js", broken, asBytes, octetStream); status != 404 || !strings.Contains(body, "--plugin-upload") {
		t.Errorf("without --plugin-upload: %d %s", status, body)
	}
}

// stuck is a script whose text never ends: it uses all of its fuel as it is opened.
const stuck = `/* ganglion
{"abi": "1.0", "name": "endless", "version": "1.0.0", "slot": "bias", "hooks": ["plan"]}
*/
for (;;) {}
function plan(f) { return 0; }
`

// TestPluginsThatFailAtOpen: three requests whose plugin fails before the first token take
// it to quarantine, whether they fail with it or go on without it; the list of plugins and
// the log say why. One that refuses what a request configures is not taken there.
func TestPluginsThatFailAtOpen(t *testing.T) {
	needsCompiler(t)
	for _, c := range []struct {
		onError string
		status  int
	}{{"fail", 500}, {"skip", 200}} {
		p := serveTiny(t, t.TempDir(), "--plugin-upload")
		if status, _, body := p.request("PUT", "/v1/plugins/files/endless.js", stuck, asBytes, octetStream); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
		find := func(name string) (item api.PluginItem) {
			var list api.PluginList
			p.get("/v1/plugins", &list)
			for _, i := range list.Plugins {
				if i.Name == name {
					item = i
				}
			}
			return item
		}
		ask := `{"prompt":"a","max_completion_tokens":2,"plugins":[{"name":"endless","on_error":"` + c.onError + `"}]}`
		for i := range 3 {
			if q := find("endless").Quarantine; q != nil {
				t.Errorf("%s: in quarantine after %d failures: %+v", c.onError, i, q)
			}
			if status, body := p.complete(ask); status != c.status || c.status == 500 && !strings.Contains(body, "fuel") {
				t.Errorf("%s: %d %s", c.onError, status, body)
			}
		}
		got := find("endless")
		if got.Quarantine == nil || got.Quarantine.Reason != "fuel" || got.Cost.Failures != 3 || got.Cost.OnceFuel == 0 || !strings.HasPrefix(got.Cost.LastError, "fuel: ") {
			t.Errorf("%s: %+v", c.onError, got)
		}
		for range 4 {
			if status, body := p.complete(`{"prompt":"a","max_completion_tokens":2,"plugins":[{"name":"regex","config":{"pattern":"("}}]}`); status != 400 && status != 422 {
				t.Errorf("a pattern that is none: %d %s", status, body)
			}
		}
		if got := find("regex"); got.Quarantine != nil || got.Cost.Failures != 4 {
			t.Errorf("regex: %+v", got)
		}
	}
}

// moody is a script that never ends its plan where its settings say so.
const moody = `/* ganglion
{"abi": "1.0", "name": "moody", "version": "1.0.0", "slot": "bias", "hooks": ["plan"],
 "config_schema": {"type": "object", "additionalProperties": false, "properties": {"sulks": {"type": "integer", "default": 0}}}}
*/
let sulks = 0;
function open(request) { sulks = request.config.sulks; }
function plan(f) { while (sulks > 0) {} return 0; }
`

// TestSettingsOfOneClient: settings that make a plugin fail are refused to those who send
// them, and take it from nobody else.
func TestSettingsOfOneClient(t *testing.T) {
	needsCompiler(t)
	p := serveTiny(t, t.TempDir(), "--plugin-upload")
	if status, _, body := p.request("PUT", "/v1/plugins/files/moody.js", moody, asBytes, octetStream); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	ask := func(config string) string {
		return `{"prompt":"a","max_completion_tokens":2,"plugins":[{"name":"moody","on_error":"fail","config":` + config + `}]}`
	}
	for n := range 3 {
		if status, body := p.complete(ask(`{"sulks":1}`)); status != 500 || !strings.Contains(body, "fuel") {
			t.Errorf("request %d: %d %s", n, status, body)
		}
	}
	if status, body := p.complete(ask(`{"sulks":1}`)); status != 400 || !strings.Contains(body, `"param":"/plugins/0/config"`) || !strings.Contains(body, "in 10 minutes") {
		t.Errorf("settings that failed three times: %d %s", status, body)
	}
	if status, body := p.complete(ask(`{"sulks":2}`)); status != 500 {
		t.Errorf("other settings: %d %s", status, body)
	}
	if status, body := p.complete(ask(`{}`)); status != 200 {
		t.Errorf("its own settings: %d %s", status, body)
	}

	// A hostile pattern: with so little fuel a harmless one does for it.
	scarce := serveTiny(t, t.TempDir(), "--plugin-fuel", "200000")
	for n := range 5 {
		ask := fmt.Sprintf(`{"prompt":"a","max_completion_tokens":2,"plugins":[{"name":"regex","config":{"pattern":"[a-z]{1,2%d}"}}]}`, n)
		if status, body := scarce.complete(ask); status != 500 || !strings.Contains(body, "fuel") {
			t.Errorf("regex, request %d: %d %s", n, status, body)
		}
	}
	if status, body := scarce.complete(`{"prompt":"a","max_completion_tokens":2,"plugins":[{"name":"regex","config":{"pattern":"a"}}]}`); status != 200 {
		t.Errorf("regex for somebody else: %d %s", status, body)
	}
}

// TestOpeningIsTold: a plugin that works hard as it opens says so in the answer's header, in
// the log and in the list, apart from what tokens cost.
func TestOpeningIsTold(t *testing.T) {
	needsCompiler(t)
	p := serveTiny(t, t.TempDir())
	status, header, body := p.request("POST", "/v1/completions", `{"prompt":"a","max_completion_tokens":3,"temperature":0,"plugins":[{"name":"json-schema","config":{"schema":{"type":"string"}}}]}`)
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	told := regexp.MustCompile(`^json-schema@\S+ ok \S+us/tok fuel=\d+ changed=\d+ once=\d+\.\dus once_fuel=(\d+)$`).FindStringSubmatch(header.Get("Ganglion-Plugins"))
	if told == nil {
		t.Fatalf("header %q", header.Get("Ganglion-Plugins"))
	}
	fuel, _ := strconv.ParseInt(told[1], 10, 64)
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	rec := p.row(answer.ID)
	if len(rec.Plugins) != 1 || fuel < 10_000 || rec.Plugins[0].OnceFuel != fuel || rec.Plugins[0].OnceUS <= 0 {
		t.Errorf("header %s, log %+v", told[0], rec.Plugins)
	}
	var list api.PluginList
	p.get("/v1/plugins", &list)
	for _, i := range list.Plugins {
		if i.Name == "json-schema" && (i.Cost.OnceFuel != float64(fuel) || i.Cost.OnceUS != rec.Plugins[0].OnceUS) || i.Name == "xtc" && i.Cost.OnceFuel != 0 {
			t.Errorf("%s: %+v", i.Name, i.Cost)
		}
	}
}

// restoring is a script that gives a prompt the words back that the test took out.
const restoring = `/* ganglion
{"abi": "1.0", "name": "restoring", "version": "1.0.0", "slot": "text", "hooks": ["prompt"], "view": {"text": true}}
*/
function prompt(f) {
	return f.say(f.textIn.replaceAll("[redacted by the test]", "what is the"));
}
`

// TestPromptsWithMediaAreRewritten: the prompts of recorded pairs, altered and put right by a
// plugin, give the reference's tokens.
func TestPromptsWithMediaAreRewritten(t *testing.T) {
	needsCompiler(t)
	for _, family := range []string{"gemma3", "qwen2vl"} {
		home := t.TempDir()
		p := start(t, cleanEnv(home, "XDG_CACHE_HOME="+filmTestCache), serveArgs(t, home, append(pair(t, family), "--plugin-upload")...)...)
		p.ready()
		if status, _, body := p.request("PUT", "/v1/plugins/files/restoring.js", restoring, asBytes, octetStream); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
		end := endOfTurn(t, p)
		for _, name := range []string{"a", "c", "ab"} {
			c := namedCase(t, family, name)
			whole := c.Prompt
			if c.Prompt = strings.ReplaceAll(whole, "what is the", "[redacted by the test]"); c.Prompt == whole {
				t.Fatalf("%s: nothing is taken out of %q", name, whole)
			}
			altered := p.answerOf(c.request(t, end))
			got := p.answerOf(strings.Replace(c.request(t, end), "{", `{"plugins":["restoring"],`, 1))
			if got.prompt != c.Count || !slices.Equal(got.ids, c.Tokens) {
				t.Errorf("%s, %s: %d %s; %d prompt tokens, %v; want %d, %v", family, name, got.code, got.body, got.prompt, got.ids, c.Count, c.Tokens)
			}
			if altered.prompt == c.Count {
				t.Errorf("%s, %s: without the plugin too: the test sees nothing", family, name)
			}
		}
		p.stop()
	}
}
