package meter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/wasm/wasmtest"
)

// tank is more fuel than any test of the specification needs.
const tank = 1 << 50

// A world is one runtime in which a script runs: compiled or interpreted, metered or
// as delivered.
type world struct {
	t       *testing.T
	metered bool
	r       wazero.Runtime
	named   map[string]api.Module
	latest  api.Module
	all     []api.Module
}

func newWorld(t *testing.T, interpreter, metered bool) *world {
	t.Helper()
	config := wazero.NewRuntimeConfigCompiler()
	if interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), config.WithDebugInfoEnabled(false))
	t.Cleanup(func() { r.Close(context.Background()) })
	w := &world{t: t, metered: metered, r: r, named: map[string]api.Module{}}
	host, err := wasmtest.SpecTest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.InstantiateWithConfig(t.Context(), host, wazero.NewModuleConfig()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) instantiate(module []byte, name string) (api.Module, error) {
	ctx := w.t.Context()
	start := false
	if w.metered {
		out, info, err := Rewrite(module)
		if err != nil {
			return nil, err
		}
		module, start = out, info.HasStart
	}
	m, err := w.r.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	if start {
		give(m, tank)
		if _, err := m.ExportedFunction(Start).Call(ctx); err != nil {
			return nil, errors.Join(err, m.Close(ctx))
		}
	}
	return m, nil
}

func (w *world) fill() {
	for _, m := range w.all {
		give(m, tank)
	}
}

// used is the fuel that all modules have used since fill.
func (w *world) used() (n int64) {
	for _, m := range w.all {
		n += tank - left(m)
	}
	return n
}

// run does one command and returns what can be seen of it.
func (w *world) run(c *wasmtest.Command, registered string) string {
	switch c.Type {
	case "module":
		m, err := w.instantiate(c.Binary, registered)
		if err != nil {
			return "module: " + kind(err)
		}
		w.latest = m
		w.named[c.Name] = m
		if w.metered {
			w.all = append(w.all, m)
		}
		return "module"
	case "action", "assert_return", "assert_trap", "assert_exhaustion":
		return w.act(c)
	default: // a module that is refused, at the latest when it starts
		_, err := w.instantiate(c.Binary, "")
		if err == nil {
			return "accepted"
		}
		return "refused"
	}
}

func (w *world) act(c *wasmtest.Command) string {
	m := w.latest
	if c.Action.Module != "" {
		m = w.named[c.Action.Module]
	}
	if c.Action.Get {
		return fmt.Sprint(m.ExportedGlobal(c.Action.Field).Get())
	}
	f := m.ExportedFunction(c.Action.Field)
	results, err := f.Call(w.t.Context(), c.Action.Args...)
	if err != nil {
		return kind(err)
	}
	for i, t := range f.Definition().ResultTypes() {
		if t == api.ValueTypeExternref+1 && len(results) == len(f.Definition().ResultTypes()) && results[i] != 0 {
			results[i] = 1 // funcref: an address
		}
	}
	return fmt.Sprintf("%x", results)
}

// kind is the first line of a trap, without the stack.
func kind(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// TestSpec runs the specification's tests on modules as delivered and rewritten, compiled
// and interpreted: results and traps are the same, and so is the fuel of both engines.
func TestSpec(t *testing.T) {
	scripts, err := wasmtest.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for i, s := range scripts {
		if raceDetector && i%8 != 0 {
			continue
		}
		t.Run(s.Name, func(t *testing.T) { steps += runScript(t, &s) })
	}
	if steps < 40_000 && !raceDetector {
		t.Errorf("%d steps: tests are missing", steps)
	}
}

// orphans are the lines of script "linking" that call functions of modules whose start
// failed: the counters of these can no longer be set. (It takes an imported table.)
var orphans = map[int]bool{275: true, 288: true}

func runScript(t *testing.T, s *wasmtest.Script) (steps int) {
	plain, metered := newWorld(t, false, false), newWorld(t, false, true)
	slowPlain, slow := newWorld(t, true, false), newWorld(t, true, true)
	worlds := []*world{plain, metered, slowPlain, slow}
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.Type == "register" || c.Binary == nil && (c.Type == "assert_malformed" || c.Type == "assert_invalid") || c.Line == 969 && s.Name == "binary-leb128" {
			continue
		}
		name := ""
		if i+1 < len(s.Commands) && s.Commands[i+1].Type == "register" {
			name = s.Commands[i+1].As
		}
		var got [4]string
		for j, w := range worlds {
			w.fill()
			got[j] = w.run(c, name)
		}
		steps++
		if s.Name == "linking" && orphans[c.Line] {
			if got[1] != "wasm error: unreachable" || got[3] != got[1] {
				t.Errorf("line %d: %s and %s, want out of fuel", c.Line, got[1], got[3])
			}
		} else if got[0] != got[1] || got[2] != got[3] {
			t.Errorf("line %d %s %s: metered %s and %s, as delivered %s and %s", c.Line, c.Type, c.Action.Field, got[1], got[3], got[0], got[2])
		}
		// How deep calls may nest before an engine gives up is the engine's own.
		if c.Type != "assert_exhaustion" && metered.used() != slow.used() {
			t.Errorf("line %d %s: the compiler used %d fuel, the interpreter %d", c.Line, c.Action.Field, metered.used(), slow.used())
		}
	}
	return steps
}
