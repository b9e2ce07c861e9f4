package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/sdk"
	"ganglion/plugins/wasm/wasmtest"
	"ganglion/web/api"
)

// TestFirstFiveMinutes walks in each language from an empty folder to a plugin that a server
// runs. The commands are those of the language's README, and the texts show that the plugin
// acts: switched off it changes nothing, and in every language it makes the same of a text.
func TestFirstFiveMinutes(t *testing.T) {
	texts := map[string]string{}
	for _, lang := range append(sdk.Languages(), "js") {
		t.Run(lang, func(t *testing.T) {
			if lang == "go" || lang == "js" {
				needsCompiler(t)
			}
			w := newWalk(t, lang)
			out := w.run("sh", "-ec", w.commands())
			for _, want := range []string{"restore      ok", "top-a@1.0.0 ok "} {
				if !strings.Contains(out, want) {
					t.Errorf("the README's commands do not say %q:\n%s", want, out)
				}
			}
			plain, off, on := w.complete(""), w.complete(`{"a":0}`), w.complete(`{"a":1}`)
			if off != plain || on == plain {
				t.Errorf("without the plugin %q, switched off %q, on %q", plain, off, on)
			}
			texts[lang] = on
			w.serve(plain, on)
		})
	}
	for lang, text := range texts {
		for other, its := range texts {
			if text != its {
				t.Errorf("%s makes %q of a text, %s makes %q", lang, text, other, its)
			}
		}
	}
}

// walk is a folder in which somebody writes the first plugin.
type walk struct {
	t         *testing.T
	lang      string
	home, dir string
}

func newWalk(t *testing.T, lang string) *walk {
	w := &walk{t: t, lang: lang, home: t.TempDir()}
	w.dir = filepath.Join(w.home, "work")
	copyFile(t, tinyModel, filepath.Join(w.dir, "model.gguf"), 0o644)
	return w
}

// commands are those under "Five minutes" in the README of the language. Compilers are not
// installed by a test, and of the kit's checks it makes two.
func (w *walk) commands() string {
	readme := "../../plugins/sdk/" + w.lang + "/README.md"
	if w.lang == "js" {
		readme = "../../plugins/js/README.md"
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		w.t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "## Five minutes\n```\n")
	block, _, ends := strings.Cut(block, "```")
	if !ok || !ends {
		w.t.Fatalf("%s has no commands under Five minutes", readme)
	}
	for from, to := range map[string]string{
		"apt-get install": "# ", "npm install": "true ", "ganglion plugin test": "ganglion plugin test --only determinism,restore",
	} {
		block = strings.ReplaceAll(block, from, to)
	}
	return block
}

// run runs a command in the folder and returns what it says. It skips where a compiler is
// missing, unless GANGLION_REQUIRE asks for those of plugins.
func (w *walk) run(name string, args ...string) string {
	w.t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = w.dir
	cmd.Env = cleanEnv(w.home, "GOCACHE="+strings.TrimSpace(string(cache)), "GANGLION_ASC="+os.Getenv("GANGLION_ASC"), "GANGLION_RUSTC="+os.Getenv("GANGLION_RUSTC"))
	var all bytes.Buffer
	cmd.Stderr = &all
	out, err := cmd.Output()
	all.Write(out)
	if err != nil {
		if strings.Contains(all.String(), sdk.ErrNoToolchain.Error()) && !wasmtest.Required() {
			w.t.Skip(all.String())
		}
		w.t.Fatalf("%v: %s", err, all.String())
	}
	if name == "sh" {
		return all.String()
	}
	return string(out)
}

// file is the plugin, from the folder.
func (w *walk) file() string {
	if w.lang == "js" {
		return "top-a/top-a.js"
	}
	return "top-a/top-a.wasm"
}

const walkPrompt, walkTokens = "Once upon a time", "16"

// complete makes a text; "" is without the plugin.
func (w *walk) complete(config string) string {
	w.t.Helper()
	sampled := []string{"--model", "model.gguf", "-n", walkTokens, "--seed", "5", "--temperature", "1"}
	args := append([]string{"run"}, append(sampled, walkPrompt)...)
	if config != "" {
		args = append([]string{"plugin", "run"}, append(sampled, "--prompt", walkPrompt, "--plugin-config", config, w.file())...)
	}
	return strings.TrimSuffix(w.run("ganglion", args...), "\n")
}

// serve puts the plugin into a server's folder and completes the same over HTTP.
func (w *walk) serve(plain, on string) {
	t := w.t
	t.Helper()
	copyFile(t, filepath.Join(w.dir, w.file()), filepath.Join(w.home, "data", "plugins", filepath.Base(w.file())), 0o644)
	p := serveTiny(t, w.home)
	defer p.stop()
	var list api.PluginList
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		list = api.PluginList{}
		p.get("/v1/plugins", &list)
		if slices.ContainsFunc(list.Plugins, func(i api.PluginItem) bool { return i.Name == "top-a" }) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("it is not listed: %+v", list)
		}
	}
	for plugins, want := range map[string]string{"": plain, `,"plugins":["top-a"]`: "", `,"plugins":[{"name":"top-a","config":{"a":1}}]`: on} {
		status, header, body := p.request("POST", "/v1/completions", `{"prompt":"`+walkPrompt+`","max_completion_tokens":`+walkTokens+`,"seed":5,"temperature":1`+plugins+`}`)
		var answer struct{ Choices []struct{ Text string } }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 || len(answer.Choices) != 1 {
			t.Fatalf("%d %s", status, body)
		}
		if got := answer.Choices[0].Text; want != "" && got != want {
			t.Errorf("%s: the server says %q, want %q", plugins, got, want)
		}
		if told := header.Get("Ganglion-Plugins"); strings.HasPrefix(told, "top-a@1.0.0 ok ") != (plugins != "") {
			t.Errorf("%s: header %q", plugins, told)
		}
	}
}
