package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/wasm"
)

// TestEveryPluginCarriesTests: each file has golden tests that call each of its hooks but
// those that have no answer, and a file whose tests say otherwise is not loaded.
func TestEveryPluginCarriesTests(t *testing.T) {
	r := newHost(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			file, _ := Module(name)
			module, err := wasm.Parse(file)
			if err != nil {
				t.Fatal(err)
			}
			tests, ok := module.Custom(abi.SectionTests)
			if !ok {
				t.Fatal("it has no golden tests")
			}
			p, err := r.Load(context.Background(), file)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			called := abi.HookSet(0)
			for line := range bytes.Lines(tests) {
				var test struct {
					Name  string
					Steps []struct{ Hook string }
				}
				if err := json.Unmarshal(line, &test); err != nil || test.Name == "" {
					t.Errorf("%s: %v", line, err)
				}
				for _, s := range test.Steps {
					called = called.With(abi.HookNamed(s.Hook))
				}
			}
			for _, h := range p.Facts().Hooks {
				if h := abi.HookNamed(h); h != abi.HookEnd && h != abi.HookRollback && !called.Has(h) {
					t.Errorf("no test calls gg_%s", h)
				}
			}
			// The partner: every test counts. One of them is told to want what cannot be.
			n := bytes.Count(tests, []byte("\n"))
			for wrong := range n {
				lines := strings.SplitAfter(string(tests), "\n")
				lines[wrong] = strings.Replace(lines[wrong], `"want":{`, `"want":{"backtrack":4294967295,`, 1)
				if strings.Contains(lines[wrong], `"error":`) {
					lines[wrong] = strings.Replace(lines[wrong], `"error":"error"`, `"error":"trap"`, 1)
				}
				altered, err := wasm.DropCustom(file, abi.SectionTests)
				if err != nil {
					t.Fatal(err)
				}
				q, err := r.Load(context.Background(), wasm.AppendCustom(altered, abi.SectionTests, []byte(strings.Join(lines, ""))))
				if err == nil {
					q.Close()
					t.Errorf("line %d: a wrong test passes", wrong+1)
				} else if errors.Is(err, host.ErrTransient) || !strings.Contains(err.Error(), "golden test in line") {
					t.Errorf("line %d: %v", wrong+1, err)
				}
			}
		})
	}
}
