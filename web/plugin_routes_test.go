package web

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/web/api"
)

// shelf is a Plugins with one plugin in quarantine.
type shelf struct {
	files   map[string]string
	cleared string
}

func (s *shelf) List() api.PluginList {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return api.PluginList{
		Plugins: []api.PluginItem{{
			Name: "dry", Version: "1.0.0", Hash: "abc", Place: "built-in:dry.wasm", BuiltIn: true, Signature: "built-in", Slot: "bias",
			Permissions: []string{"history"}, OnError: "fail", ConfigSchema: json.RawMessage(`{"type":"object"}`), LoadedAt: at,
			Quarantine: &api.Quarantine{Reason: "fuel", Since: at}, Cost: api.PluginCost{Requests: 3, Failures: 3, LastError: "fuel: too much", LastFailureAt: &at},
		}},
		Rejected: []api.RejectedPlugin{{Place: "x.wasm", Hash: "def", Reason: "no module", At: at}},
		Defaults: []string{"dry"}, Required: []string{}, Shadow: []string{}, Folder: "/plugins",
	}
}

func (s *shelf) Clear(hash string) (bool, error) {
	s.cleared = hash
	return hash == "abc", nil
}

func (s *shelf) Add(_ context.Context, name string, file []byte) (api.PluginAdded, error) {
	switch {
	case string(file) == "full":
		return api.PluginAdded{}, fmt.Errorf("registry: %w", syscall.ENOSPC)
	case string(file) != "module":
		return api.PluginAdded{}, appliance.Errorf(appliance.CodePluginFile, "", "no module")
	case s.files[name] != "":
		return api.PluginAdded{}, appliance.Errorf(appliance.CodeExists, "name", "name: it is taken")
	}
	s.files[name] = string(file)
	return api.PluginAdded{Name: "x", Version: "1.0.0"}, nil
}

func TestPluginRoutes(t *testing.T) {
	f := &shelf{files: map[string]string{}}
	b := start(t, setup{config: Config{Plugins: f, PluginUpload: true, MaxPlugin: 100}})
	list := parse[api.PluginList](t, b.do("GET", "/v1/plugins", "").body)
	if len(list.Plugins) != 1 || list.Plugins[0].Quarantine == nil || string(list.Plugins[0].ConfigSchema) != `{"type":"object"}` || len(list.Rejected) != 1 || !list.Upload {
		t.Errorf("%+v", list)
	}
	if r := b.do("POST", "/v1/plugins/clear", `{"hash":"abc"}`); r.status != 200 || r.body != `{"cleared":true}` || f.cleared != "abc" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := b.do("POST", "/v1/plugins/clear", `{"hash":"x"}`); r.status != 200 || r.body != `{"cleared":false}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	wantError(t, b.do("POST", "/v1/plugins/clear", `{}`), 400, "missing_parameter", "hash")

	put := func(b *bench, body string) reply {
		return b.do("PUT", "/v1/plugins/files/x.wasm", body, "Content-Type", "application/octet-stream")
	}
	wantError(t, put(b, "what"), 400, "invalid_plugin_file", "")
	wantError(t, put(b, "full"), 507, "insufficient_storage", "")
	wantError(t, put(b, strings.Repeat("x", 101)), 413, "body_too_large", "")
	if r := put(b, "module"); r.status != 201 || r.body != `{"name":"x","version":"1.0.0"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	wantError(t, put(b, "module"), 409, "already_exists", "name")

	// Without the operator's word nothing is taken, and the list says so.
	shut := start(t, setup{config: Config{Plugins: f}})
	f.files = map[string]string{}
	wantError(t, put(shut, "module"), 404, "not_found", "")
	if len(f.files) != 0 || parse[api.PluginList](t, shut.do("GET", "/v1/plugins", "").body).Upload {
		t.Errorf("a file was taken: %v", f.files)
	}
	none := start(t, setup{})
	if l := parse[api.PluginList](t, none.do("GET", "/v1/plugins", "").body); len(l.Plugins) != 0 || l.Upload {
		t.Errorf("%+v", l)
	}
	wantError(t, none.do("POST", "/v1/plugins/clear", `{"hash":"abc"}`), 404, "not_found", "hash")
	wantError(t, put(none, "module"), 404, "not_found", "")
}

// TestPluginChangesOnTheWire: with details each token says what plugins did to it.
func TestPluginChangesOnTheWire(t *testing.T) {
	b := plugged(t, appliance.Config{})
	body := `{"prompt":"x","plugins":["upper"]}`
	if got := b.do("POST", completionPath, body, "Ganglion-Details", "1"); strings.Count(got.body, `"changes":[{"plugin":"upper","kind":"text"}]`) != 3 {
		t.Errorf("%s", got.body)
	}
	if got := b.do("POST", completionPath, `{"prompt":"x","temperature":0.5,"seed":1}`, "Ganglion-Details", "stages"); !strings.Contains(got.body, `"changes":[{"stage":"temperature","kind":"`) || !strings.Contains(got.body, `"temperature":0.5`) {
		t.Errorf("stages: %s", got.body)
	}
	if got := b.do("POST", completionPath, body); strings.Contains(got.body, "changes") {
		t.Errorf("without details: %s", got.body)
	}
}
