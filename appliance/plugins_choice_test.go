package appliance_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

const probability = `{"type":"object","additionalProperties":false,"properties":{"probability":{"type":"number","minimum":0,"maximum":1,"default":0.5}}}`

func TestPluginChoice(t *testing.T) {
	p := (&appliancetest.Plugins{}).Add(noE(), "", nil)
	seen := ""
	p.Add(coded("xtc", abi.SlotTruncate, abi.HookLogits, func(*frame) abi.Action { return 0 }), probability, func(o appliance.PluginOpen) { seen = string(o.Config) })
	p.Add(coded("quarantined", abi.SlotBias, abi.HookPlan, func(*frame) abi.Action { return 0 }), "", nil)
	for _, n := range []string{"one", "two"} {
		p.Add(coded(n, abi.SlotChoose, abi.HookChoose, func(*frame) abi.Action { return 0 }), "", nil)
	}
	large := coded("large", abi.SlotBias, abi.HookPlan, func(*frame) abi.Action { return 0 })
	large.Manifest.MinVocab = 1 << 20
	p.Add(large, "", nil)
	for name, kinds := range map[string][]string{"pieces": {"spm", "unigram"}, "bytes": {"spm", "bpe"}} {
		c := coded(name, abi.SlotBias, abi.HookPlan, func(*frame) abi.Action { return 0 })
		c.Manifest.Tokenizers = kinds
		p.Add(c, "", nil)
	}
	b := serve(t, noise(), appliance.Config{Plugins: p})
	if got := b.complete(t, asking("x", 3, "bytes")); got.Plugins[0].Outcome != "ok" {
		t.Errorf("a plugin for this tokenizer: %+v", got.Plugins)
	}
	config := func(name, config string) appliance.PluginChoice {
		return appliance.PluginChoice{Name: name, Config: []byte(config), At: "/plugins/0"}
	}
	for name, c := range map[string]struct {
		choices []appliance.PluginChoice
		param   string
		message string
	}{
		"unknown":          {[]appliance.PluginChoice{{Name: "nope", At: "/plugins/0"}}, "/plugins/0", `no plugin is called "nope"`},
		"version":          {[]appliance.PluginChoice{{Name: "xtc", Versions: "2", At: "/plugins/0"}}, "/plugins/0", `"xtc@2"`},
		"quarantined":      {[]appliance.PluginChoice{{Name: "quarantined", At: "/plugins/0"}}, "/plugins/0", "three times"},
		"out of range":     {[]appliance.PluginChoice{config("xtc", `{"probability":2}`)}, "/plugins/0/config/probability", "probability"},
		"unknown setting":  {[]appliance.PluginChoice{config("xtc", `{"odds":2}`)}, "/plugins/0/config/odds", ""},
		"no object":        {[]appliance.PluginChoice{config("xtc", `[1]`)}, "/plugins/0/config", ""},
		"no JSON":          {[]appliance.PluginChoice{config("xtc", `{`)}, "/plugins/0/config", ""},
		"policy":           {[]appliance.PluginChoice{{Name: "xtc", OnError: "ignore", At: "/plugins/0"}}, "/plugins/0/on_error", `"ignore"`},
		"twice":            {[]appliance.PluginChoice{{Name: "xtc", At: "/plugins/0"}, {Name: "xtc", At: "/plugins/1"}}, "/plugins/1", "twice"},
		"two choosers":     {[]appliance.PluginChoice{{Name: "one", At: "/plugins/0"}, {Name: "two", At: "/plugins/1"}}, "/plugins/1", "both choose"},
		"other tokenizer":  {[]appliance.PluginChoice{{Name: "pieces", At: "/plugins/0"}}, "/plugins/0", "spm, unigram"},
		"small vocabulary": {[]appliance.PluginChoice{{Name: "large", At: "/plugins/0"}}, "/plugins/0", "1048576"},
	} {
		r := greedy("x", 3)
		r.Plugins = c.choices
		if e := b.refuse(t, r, appliance.CodeInvalid, c.param); !strings.Contains(e.Message, c.message) {
			t.Errorf("%s: message %q", name, e.Message)
		}
	}
	if n := p.Held(); n != 0 {
		t.Errorf("%d plugins were not given back", n)
	}
	r := greedy("x", 3)
	r.Plugins = []appliance.PluginChoice{{Name: "xtc"}}
	if b.complete(t, r); seen != `{"probability":0.5}` {
		t.Errorf("config %q, want the default", seen)
	}
	if e := serve(t, noise(), appliance.Config{}).refuse(t, asking("x", 1, "xtc"), appliance.CodeInvalid, "/plugins/0"); !strings.Contains(e.Message, "has none") {
		t.Errorf("message %q", e.Message)
	}
}

// TestWhoseSettingsFail: failures count against settings that a request chose, and against
// nothing else where these are the plugin's own or the operator's.
func TestWhoseSettingsFail(t *testing.T) {
	xtc := coded("xtc", abi.SlotBias, abi.HookPlan, func(*frame) abi.Action { panic(&pipelinetest.Error{Code: "fuel"}) })
	p := (&appliancetest.Plugins{}).Add(xtc, probability, nil)
	b := serve(t, noise(), appliance.Config{Plugins: p, DefaultPlugins: []appliance.PluginChoice{{Name: "xtc", Config: []byte(`{"probability":0.9}`), At: "plugins"}}})
	choice := func(config string) []appliance.PluginChoice {
		c := appliance.PluginChoice{Name: "xtc", At: "/plugins/0"}
		if config != "" {
			c.Config = []byte(config)
		}
		return []appliance.PluginChoice{c}
	}
	failing := func(choices []appliance.PluginChoice) {
		t.Helper()
		r := greedy("x", 3)
		r.Plugins = choices
		var e *appliance.Error
		if _, err := b.try(t, r); !errors.As(err, &e) || e.Code != appliance.CodePlugin {
			t.Errorf("%v", err)
		}
	}
	for range 5 {
		failing(nil)                            // the operator's
		failing(choice(""))                     // the plugin's
		failing(choice(`{}`))                   // again
		failing(choice(`{"probability": 0.5}`)) // and again
	}
	for range 3 {
		failing(choice(`{"probability":0.7}`))
	}
	refused := greedy("x", 3)
	refused.Plugins = choice(`{ "probability" : 0.7 }`)
	if e := b.refuse(t, refused, appliance.CodeInvalid, "/plugins/0/config"); !strings.Contains(e.Message, "three times") {
		t.Errorf("message %q", e.Message)
	}
	failing(choice(`{"probability":0.8}`)) // others are run
	failing(nil)
	failing(choice(""))
	if n := p.Held(); n != 0 {
		t.Errorf("%d plugins were not given back", n)
	}
}

// TestWhichPlugins: the request's, else the model's, else the server's; the operator's
// always.
func TestWhichPlugins(t *testing.T) {
	p := &appliancetest.Plugins{}
	for _, n := range []string{"asked", "model", "server", "required"} {
		p.Add(coded(n, abi.SlotBias, abi.HookPlan, func(*frame) abi.Action { return 0 }), "", nil)
	}
	name := func(n string) []appliance.PluginChoice { return []appliance.PluginChoice{{Name: n}} }
	server := appliance.Config{Plugins: p, DefaultPlugins: name("server"), RequiredPlugins: name("required")}
	both := server
	both.ModelPlugins = map[string][]appliance.PluginChoice{"hashed": name("model"), "other": name("asked")}
	for _, c := range []struct {
		cfg    appliance.Config
		asked  []appliance.PluginChoice
		want   []string
		origin appliance.Origin
	}{
		{server, nil, []string{"required", "server"}, appliance.FromConfig},
		{both, nil, []string{"required", "model"}, appliance.FromModel},
		{both, name("asked"), []string{"required", "asked"}, appliance.FromRequest},
		{both, []appliance.PluginChoice{}, []string{"required"}, appliance.FromConfig},
		{both, name("required"), []string{"required"}, appliance.FromConfig},
	} {
		b := serve(t, noise(), c.cfg)
		r := greedy("x", 3)
		r.Plugins = c.asked
		got := b.complete(t, r)
		var names []string
		for _, p := range got.Plugins {
			names = append(names, p.Name)
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%v: plugins %v, want %v", c.asked, names, c.want)
		}
		last := got.Params[len(got.Params)-1]
		if last.Origin != c.origin || !strings.HasPrefix(last.Name, "plugins[") {
			t.Errorf("%v: parameter %+v, want origin %s", c.asked, last, c.origin)
		}
		if _, err := json.Marshal(last); err != nil {
			t.Error(err)
		}
	}
}

func TestParsePlugins(t *testing.T) {
	for text, want := range map[string][]appliance.PluginChoice{
		"":                                       {},
		" , ":                                    {},
		"dry":                                    {{Name: "dry"}},
		"dry@2":                                  {{Name: "dry", Versions: "2"}},
		"xtc;probability=0.5, dry;on_error=skip": {{Name: "xtc", Config: []byte(`{"probability":0.5}`)}, {Name: "dry", OnError: "skip"}},
		`a; words=["x;,y", "z"] ;name=some text`: {{Name: "a", Config: []byte(`{"words":["x;,y", "z"],"name":"some text"}`)}},
		`a;s="quoted, text"`:                     {{Name: "a", Config: []byte(`{"s":"quoted, text"}`)}},
		`a;s=say "no"`:                           {{Name: "a", Config: []byte(`{"s":"say \"no\""}`)}},
	} {
		got, err := appliance.ParsePlugins(text, "here")
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: %v, %v", text, got, err)
			continue
		}
		for i, c := range got {
			if c.Name != want[i].Name || c.Versions != want[i].Versions || string(c.Config) != string(want[i].Config) || c.OnError != want[i].OnError || c.At != "here" {
				t.Errorf("%q: %+v %s, want %+v %s", text, c, c.Config, want[i], want[i].Config)
			}
		}
	}
	for _, text := range []string{";a=1", "a;b", "a;=1", `a;b="`, "a;b=[1"} {
		if _, err := appliance.ParsePlugins(text, "here"); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestInlinePlugins: code of a request is a plugin where the operator allows it, and what
// becomes of it is its own affair.
func TestInlinePlugins(t *testing.T) {
	trap := coded("trap", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { panic(&pipelinetest.Error{Code: "trap"}) })
	p := (&appliancetest.Plugins{}).Add(noE(), "", nil).Add(trap, "", nil)
	with := func(choices ...appliance.PluginChoice) *appliance.Request {
		r := greedy("one", 100)
		for i := range choices {
			choices[i].At = "/plugins/" + strconv.Itoa(i)
		}
		r.Plugins = choices
		return r
	}
	off := serve(t, noise(), appliance.Config{Plugins: p})
	off.refuse(t, with(appliance.PluginChoice{Code: "no-e"}), appliance.CodeForbiddenCode, "/plugins/0/code")
	b := serve(t, noise(), appliance.Config{Plugins: p, InlinePlugins: true, RequiredPlugins: []appliance.PluginChoice{{Name: "no-e", At: "required"}}})
	b.refuse(t, with(appliance.PluginChoice{Code: "none"}), appliance.CodeInvalid, "/plugins/0/code")
	b.refuse(t, with(appliance.PluginChoice{Code: "trap", Name: "other"}), appliance.CodeInvalid, "/plugins/0")
	b.refuse(t, with(appliance.PluginChoice{Code: "trap", Config: []byte(`{"a":1}`)}), appliance.CodeInvalid, "/plugins/0/config/a")
	// It does not take the place of what the operator requires.
	b.refuse(t, with(appliance.PluginChoice{Code: "no-e"}), appliance.CodeInvalid, "/plugins/0")

	b = serve(t, noise(), appliance.Config{Plugins: p, InlinePlugins: true})
	if got := b.complete(t, with(appliance.PluginChoice{Code: "no-e"})); strings.Contains(got.Text, "e") || len(got.Plugins) != 1 {
		t.Errorf("%q, %+v", got.Text, got.Plugins)
	}
	b.complete(t, with(appliance.PluginChoice{Code: "trap", OnError: "skip"}))
	if f := p.Failures(); len(f) != 0 {
		t.Errorf("counted: %v", f)
	}
	if n := p.Held(); n != 0 {
		t.Errorf("%d plugins were not given back", n)
	}
}

// TestRefusalsOfPlugins: a plugin that does not open refuses what the request asks of it;
// the request is at fault and learns why.
func TestRefusalsOfPlugins(t *testing.T) {
	no := coded("no", abi.SlotBias, abi.HookPlan, func(*frame) abi.Action { return 0 })
	no.Open = func() error { return errors.New("the grammar has no root") }
	p := (&appliancetest.Plugins{}).Add(no, "", nil)
	b := serve(t, noise(), appliance.Config{Plugins: p})
	c, err := b.Start(within(t), asking("one", 5, "no"))
	if err != nil {
		t.Fatal(err)
	}
	var e *appliance.Error
	if _, err = c.Wait(within(t)); !errors.As(err, &e) || e.Code != appliance.CodeRefused || !strings.Contains(e.Message, "the grammar has no root") || e.Plugin == nil || e.Plugin.Plugin != "no" {
		t.Errorf("%v", err)
	}
}

// TestCancelledWhileAPluginLoads: a request that nobody wants any more does not wait for a
// plugin, and gives back what it found before.
func TestCancelledWhileAPluginLoads(t *testing.T) {
	b, p := with(t, noise(), appliance.Config{QueueMax: 1}, noE())
	for range 3 {
		ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
		_, err := b.Start(ctx, asking("one", 20, "no-e", "loading"))
		cancel()
		var e *appliance.Error
		if !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
			t.Errorf("%v", err)
		}
	}
	if n := p.Held(); n != 0 {
		t.Errorf("%d plugins are held", n)
	}
	b.complete(t, asking("one", 20, "no-e"))
}
