package web

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

// plugged starts a server with plugins: upper writes capitals, bad fails at its second
// token, and filter ends the text after two.
func plugged(t *testing.T, service appliance.Config) *bench {
	t.Helper()
	code := func(name string, h abi.Hook, c pipelinetest.Code) *pipelinetest.Plugin {
		return &pipelinetest.Plugin{Manifest: abi.Manifest{Name: name, Version: "1.2.0", Slot: abi.SlotText}, Hooks: map[abi.Hook]pipelinetest.Code{h: c},
			OpenFuel: 12_000_000, OpenTime: time.Millisecond}
	}
	second := func(c pipelinetest.Code) pipelinetest.Code {
		return func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffStep) == 1 {
				return c(f)
			}
			return 0
		}
	}
	p := &appliancetest.Plugins{}
	p.Add(code("upper", abi.HookText, func(f *pipelinetest.Frame) abi.Action { return f.Text(strings.ToUpper(f.In())) }),
		`{"type":"object","additionalProperties":false,"properties":{"strength":{"type":"number","maximum":1}}}`, nil)
	p.Add(code("bad", abi.HookPlan, second(func(f *pipelinetest.Frame) abi.Action { panic(&pipelinetest.Error{Code: "fuel"}) })), "", nil)
	p.Add(code("filter", abi.HookAccept, second(func(f *pipelinetest.Frame) abi.Action { return f.Stop(abi.StopContentFilter) })), "", nil)
	service.Plugins = p
	return start(t, setup{script: appliancetest.Script{Pieces: []string{"one", " two", " three"}}, service: service})
}

const completionPath = "/v1/completions"

// cost is what the header says of upper.
var cost = regexp.MustCompile(`^upper@1\.2\.0 ok \d+\.\dus/tok fuel=\d+ changed=0 once=\d+\.\dus once_fuel=12000000$`)

func TestPluginsOfARequest(t *testing.T) {
	b := plugged(t, appliance.Config{})
	failure := regexp.MustCompile(`^bad@1\.2\.0 failed=fuel \d+\.\dus/tok fuel=\d+ changed=0 once=`)
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		want   string
	}{
		"name":             {`{"prompt":"x","plugins":["upper"]}`, nil, 200, `"text":"ONE TWO THREE"`},
		"object":           {`{"prompt":"x","plugins":[{"name":"upper","version":"1.2.0","config":{"strength":1},"on_error":"skip"}]}`, nil, 200, `"text":"ONE TWO THREE"`},
		"header":           {`{"prompt":"x"}`, []string{"Ganglion-Plugins", "upper;strength=0.5"}, 200, `"text":"ONE TWO THREE"`},
		"body over header": {`{"prompt":"x","plugins":["upper"]}`, []string{"Ganglion-Plugins", "bad"}, 200, `"text":"ONE TWO THREE"`},
		"none":             {`{"prompt":"x","plugins":[]}`, []string{"Ganglion-Plugins", "bad"}, 200, `"text":"one two three"`},
		"null":             {`{"prompt":"x","plugins":null}`, nil, 200, `"text":"one two three"`},
		"filter":           {`{"prompt":"x","plugins":["filter"]}`, nil, 200, `"finish_reason":"content_filter"`},
		"unknown":          {`{"prompt":"x","plugins":["upper","nope"]}`, nil, 400, `"param":"/plugins/1"`},
		"config":           {`{"prompt":"x","plugins":[{"name":"upper","config":{"strength":2}}]}`, nil, 400, `"param":"/plugins/0/config/strength"`},
		"config type":      {`{"prompt":"x","plugins":[{"name":"upper","config":3}]}`, nil, 400, `"param":"/plugins/0/config"`},
		"member":           {`{"prompt":"x","plugins":[{"name":"upper","cnofig":{}}]}`, nil, 400, `"param":"/plugins/0"`},
		"no name":          {`{"prompt":"x","plugins":[{}]}`, nil, 400, `"param":"/plugins/0"`},
		"no list":          {`{"prompt":"x","plugins":"upper"}`, nil, 400, `"param":"/plugins"`},
		"a number":         {`{"prompt":"x","plugins":[1]}`, nil, 400, `"param":"/plugins/0"`},
		"inline":           {`{"prompt":"x","plugins":[{"code":"AA=="}]}`, nil, 403, `"param":"/plugins/0/code"`},
		"empty code":       {`{"prompt":"x","plugins":[{"code":""}]}`, nil, 400, `"param":"/plugins/0/code"`},
		"no member":        {`{"prompt":"x","plugins":[{"inline":{}}]}`, nil, 400, `on_error and code`},
		"bad header":       {`{"prompt":"x"}`, []string{"Ganglion-Plugins", "upper;strength"}, 400, `"param":"Ganglion-Plugins"`},
		"failure":          {`{"prompt":"x","plugins":["bad"]}`, nil, 500, `"type":"plugin_error"`},
		"details":          {`{"prompt":"x","plugins":["upper"]}`, []string{"Ganglion-Details", "1"}, 200, `"plugins":[{"name":"upper","version":"1.2.0","hash":"hash of upper","outcome":"ok"`},
	} {
		got := b.do("POST", completionPath, c.body, c.header...)
		if got.status != c.status || !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %d %s, want %d with %s", name, got.status, got.body, c.status, c.want)
		}
		h := got.header.Get("Ganglion-Plugins")
		if ran := strings.Contains(got.body, "ONE TWO"); ran != cost.MatchString(h) {
			t.Errorf("%s: header %q", name, h)
		}
		if failed := name == "failure"; failed != failure.MatchString(h) {
			t.Errorf("%s: header %q", name, h)
		}
	}
	got := b.do("POST", completionPath, `{"prompt":"x","plugins":["bad"]}`)
	for _, want := range []string{`"code":"fuel"`, `"plugin":"bad"`, `"version":"1.2.0"`, `"step":1`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("failure: %s, want %s", got.body, want)
		}
	}
}

// TestPluginsOfAStream: what plugins cost comes as a trailer, and a failure as the one
// event behind the text before it.
func TestPluginsOfAStream(t *testing.T) {
	b := plugged(t, appliance.Config{})
	stream := func(plugin string) (body string, trailer http.Header) {
		r := b.request("POST", completionPath, `{"prompt":"x","stream":true,"plugins":["`+plugin+`"]}`)
		resp, err := b.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), resp.Trailer
	}
	body, trailer := stream("upper")
	if h := trailer.Get("Ganglion-Plugins"); !cost.MatchString(h) || !strings.Contains(body, `"text":"ONE"`) {
		t.Errorf("trailer %q of %s", h, body)
	}
	body, trailer = stream("bad")
	if h := trailer.Get("Ganglion-Plugins"); !strings.HasPrefix(h, "bad@1.2.0 failed=fuel ") {
		t.Errorf("trailer of a failure %q", h)
	}
	if !strings.Contains(body, `"text":"one"`) || strings.Count(body, `"type":"plugin_error"`) != 1 || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("stream %s", body)
	}
}

func TestPluginsOfTheServer(t *testing.T) {
	b := plugged(t, appliance.Config{DefaultPlugins: []appliance.PluginChoice{{Name: "upper"}}})
	if got := b.do("POST", completionPath, `{"prompt":"x"}`); !strings.Contains(got.body, "ONE") {
		t.Errorf("%s", got.body)
	}
	b = plugged(t, appliance.Config{RequiredPlugins: []appliance.PluginChoice{{Name: "upper"}}})
	if got := b.do("POST", completionPath, `{"prompt":"x","plugins":[]}`); !strings.Contains(got.body, "ONE") {
		t.Errorf("what is required was removed: %s", got.body)
	}
}
