package appliance_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
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
	b := serve(t, noise(), appliance.Config{Plugins: p})
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
		"inline":           {[]appliance.PluginChoice{{Inline: true, At: "/plugins/0/inline"}}, "/plugins/0/inline", "takes no code"},
		"out of range":     {[]appliance.PluginChoice{config("xtc", `{"probability":2}`)}, "/plugins/0/config/probability", "probability"},
		"unknown setting":  {[]appliance.PluginChoice{config("xtc", `{"odds":2}`)}, "/plugins/0/config/odds", ""},
		"no object":        {[]appliance.PluginChoice{config("xtc", `[1]`)}, "/plugins/0/config", ""},
		"no JSON":          {[]appliance.PluginChoice{config("xtc", `{`)}, "/plugins/0/config", ""},
		"policy":           {[]appliance.PluginChoice{{Name: "xtc", OnError: "ignore", At: "/plugins/0"}}, "/plugins/0/on_error", `"ignore"`},
		"twice":            {[]appliance.PluginChoice{{Name: "xtc", At: "/plugins/0"}, {Name: "xtc", At: "/plugins/1"}}, "/plugins/1", "twice"},
		"two choosers":     {[]appliance.PluginChoice{{Name: "one", At: "/plugins/0"}, {Name: "two", At: "/plugins/1"}}, "/plugins/1", "both choose"},
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
