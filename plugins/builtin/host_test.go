package builtin

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/js"
	"ganglion/plugins/wasm"
)

// manyVocab has 262,144 tokens: the bytes, and words of letters, digits and signs that
// share beginnings as those of a real vocabulary do.
type manyVocab struct{ pieces [][]byte }

const many = 262144

var large = func() manyVocab {
	v := manyVocab{make([][]byte, many)}
	parts := []string{"a", "e", "in", "th", "er", "on", " s", " t", "re", "st", "10", "7", ", ", ". ", "\"", ": ", "{", "}", "ß", "字", "_", "(", "ly", "qu", "ing", "C", "D", "O", "\n", "=", "-", "x"}
	for i := range many {
		switch {
		case i < 256:
			v.pieces[i] = []byte{byte(i)}
		case i < many-1:
			for n := i; n > 0; n /= len(parts) {
				v.pieces[i] = append(v.pieces[i], parts[n%len(parts)]...)
			}
		}
	}
	return v
}()

func (v manyVocab) Size() int             { return many }
func (v manyVocab) Key() string           { return "many" }
func (v manyVocab) Bytes(id int32) []byte { return v.pieces[id] }
func (v manyVocab) Encode(text []byte, _, _ bool) (ids []int32) {
	for _, c := range text {
		ids = append(ids, int32(c))
	}
	return ids
}
func (v manyVocab) Decode(ids []int32) (out []byte) {
	for _, id := range ids {
		out = append(out, v.pieces[id]...)
	}
	return out
}
func (v manyVocab) Special(role int) (int32, bool) { return many - 1, role == 1 }
func (v manyVocab) EOG(id int32) bool              { return id == many-1 }
func (v manyVocab) Control(id int32) bool          { return id == many-1 }

// needed are settings that have no default.
var needed = map[string]settings{
	"grammar": {"gbnf": `root ::= "{" [^}]* "}"`}, "regex": {"pattern": `[a-z ]+`}, "json-schema": {"schema": `{"type":"array","items":{"type":"string"}}`},
	"multiple-choice": {"choices": []string{"yes", "no"}}, "green-list": {"key": "k", "hard": true}, "anti-slop": {"phrases": []string{"tapestry"}},
	"cfg": {"negative_prompt": "rude"},
}

func newHost(t testing.TB) *host.Runtime {
	r, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// opening opens an instance as the server does: loaded through the whole pipeline, settings
// checked by the manifest's schema.
func opening(t testing.TB, r *host.Runtime, file []byte, config settings) *host.Instance {
	t.Helper()
	p, err := r.Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return openPlugin(t, p, config)
}

func openPlugin(t testing.TB, p *host.Plugin, config settings) *host.Instance {
	t.Helper()
	return openWith(t, p, config, large)
}

// openWith opens an instance over a vocabulary of as many tokens.
func openWith(t testing.TB, p *host.Plugin, config settings, v host.Vocabulary) *host.Instance {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if config == nil {
		raw = []byte("{}")
	}
	filled, err := p.Manifest().Schema.Fill(raw)
	if err != nil {
		t.Fatal(err)
	}
	i, err := p.Open(t.Context(), host.Open{Config: filled, Request: host.Request{Temperature: 1, MaxTokens: 4096, Seed: 7},
		Model: host.Model{Name: "m", Vocab: many, Context: 8192}, Prompt: 16, Services: host.Services{Vocab: v, Text: func(int) []byte { return nil }}})
	if err != nil || i == nil {
		t.Fatalf("%v, %v", i, err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

// fill writes a step: 256 candidates that fall off evenly, statistics, history.
func fill(i *host.Instance, step int) {
	f, l := i.Frame(), i.Layout()
	word := func(off int, v uint32) { binary.LittleEndian.PutUint32(f[off:], v) }
	word(abi.OffStep, uint32(step))
	word(abi.OffCandN, uint32(l.CandCap))
	for k := range l.CandCap {
		word(l.CandIDs+4*k, uint32(k*31))
		word(l.CandLogits+4*k, math.Float32bits(10-float32(k)/16))
	}
	for off, v := range map[int]float32{abi.OffMax: 10, abi.OffStd: 2, abi.OffLogSumExp: 12.8, abi.OffEntropy: 3.5, abi.OffCandMass: 1, abi.OffTemperature: 1} {
		word(off, math.Float32bits(v))
	}
	word(abi.OffNFinite, many)
	word(abi.OffRandom, uint32(step)*2654435769)
	n := min(l.HistoryCap, 2048)
	word(abi.OffHistoryLen, uint32(n))
	for k := range n {
		word(l.History+4*k, uint32((k*7919+step)%900))
	}
}

// TestLoadedByTheHost: every plugin passes the pipeline, opens with its defaults, and runs
// its hooks within fuel.
func TestLoadedByTheHost(t *testing.T) {
	r := newHost(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			if name == "cfg" {
				t.Skip("needs a second sequence; TestCFG has one")
			}
			file, _ := Module(name)
			i := opening(t, r, file, needed[name])
			for step := range 3 {
				for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookChoose} {
					if !i.Has(h) {
						continue
					}
					fill(i, step)
					if _, fuel, err := i.Call(h); err != nil {
						t.Errorf("%v at step %d: %v, %d fuel", h, step, err, fuel)
					}
				}
			}
		})
	}
	t.Run("js", func(t *testing.T) {
		script, err := os.ReadFile("../js/example/top-a.js")
		if err != nil {
			t.Fatal(err)
		}
		file, err := js.Module(script)
		if err != nil {
			t.Fatal(err)
		}
		i := opening(t, r, file, nil)
		fill(i, 0)
		if a, fuel, err := i.Call(abi.HookLogits); err != nil || a != 4 {
			t.Errorf("actions %d, %v, %d fuel", a, err, fuel)
		}
	})
}

// BenchmarkHook is a step of each plugin: what a token pays for it.
func BenchmarkHook(b *testing.B) {
	r := newHost(b)
	for _, name := range Names() {
		if name == "cfg" || name == "pii" {
			continue
		}
		file, _ := Module(name)
		i := opening(b, r, file, needed[name])
		for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookChoose} {
			if !i.Has(h) || name == "green-list" && h == abi.HookLogits {
				continue
			}
			b.Run(fmt.Sprintf("%s/%v", name, h), func(b *testing.B) {
				fill(i, 1)
				l := i.Layout()
				var fuel int64
				for b.Loop() {
					binary.LittleEndian.PutUint32(i.Frame()[abi.OffCandN:], uint32(l.CandCap))
					var err error
					if _, fuel, err = i.Call(h); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(fuel), "fuel")
			})
		}
	}
}

// BenchmarkXTCAndMinP is a token with both plugins: frames of 256 candidates are written,
// both hooks called. min-ns is the best token.
func BenchmarkXTCAndMinP(b *testing.B) {
	r := newHost(b)
	var both []*host.Instance
	var frames [][]byte
	for name, config := range map[string]settings{"xtc": {"probability": 1, "threshold": 0.01}, "min-p": {"p": 0.05}} {
		file, _ := Module(name)
		i := opening(b, r, file, config)
		fill(i, 1)
		both, frames = append(both, i), append(frames, bytes.Clone(i.Frame()))
	}
	b.ReportAllocs()
	least := time.Duration(1 << 62)
	for b.Loop() {
		began := time.Now()
		for n, i := range both {
			copy(i.Frame(), frames[n])
			if a, _, err := i.Call(abi.HookLogits); err != nil || a == 0 {
				b.Fatalf("actions %v, %v", a, err)
			}
		}
		least = min(least, time.Since(began))
	}
	b.ReportMetric(float64(least.Nanoseconds()), "min-ns")
}

// BenchmarkOpenPlugin is what a request pays to begin.
func BenchmarkOpenPlugin(b *testing.B) {
	r := newHost(b)
	for _, name := range []string{"min-p", "dry", "json-schema"} {
		file, _ := Module(name)
		p, err := r.Load(context.Background(), file)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				i := openPlugin(b, p, needed[name])
				if err := i.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		p.Close()
	}
}

// withOpenFuel is a plugin that may burn so much as it is opened.
func withOpenFuel(t *testing.T, name string, fuel int) []byte {
	t.Helper()
	file, _ := Module(name)
	module, err := wasm.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := module.Custom(abi.SectionManifest)
	var manifest map[string]any
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	limits, _ := manifest["limits"].(map[string]any)
	all, ok := limits["fuel"].(map[string]any)
	if !ok {
		all = map[string]any{}
		limits["fuel"] = all
	}
	all["open"] = fuel
	if text, err = json.Marshal(manifest); err == nil {
		file, err = wasm.DropCustom(file, abi.SectionManifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return wasm.AppendCustom(file, abi.SectionManifest, text)
}

// TestOpeningDry: its breakers are few questions to a vocabulary of 262,144 tokens, for each
// is paid for by the size of that.
func TestOpeningDry(t *testing.T) {
	for _, c := range []struct {
		fuel   int
		config settings
		opens  bool
	}{
		{12_000_000, nil, true},
		{12_000_000, settings{"breakers": []string{"\n", ":", "\"", "*", "a", "b", "c", ".", "]", "\\", "^", "-"}}, true},
		{12_000_000, settings{"breakers": []string{".\n"}}, false}, // several characters are a question of their own
		{2_000_000, nil, false},
	} {
		p, err := newHost(t).Load(context.Background(), withOpenFuel(t, "dry", c.fuel))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(c.config)
		if c.config == nil {
			raw = []byte("{}")
		}
		if err == nil {
			raw, err = p.Manifest().Schema.Fill(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		i, err := p.Open(t.Context(), host.Open{Config: raw, Model: host.Model{Name: "m", Vocab: many, Context: 8192}, Services: host.Services{Vocab: large}})
		var e *host.Error
		if (err == nil) != c.opens || err != nil && (!errors.As(err, &e) || e.Code != host.CodeFuel) {
			t.Errorf("with %d fuel, %v: %v", c.fuel, c.config, err)
		}
		if i != nil {
			_ = i.Close()
		}
		p.Close()
	}
}

// TestEditsAreOfOneStep: what a plugin did at a step is gone at the next one.
func TestEditsAreOfOneStep(t *testing.T) {
	file, _ := Module("dry")
	i := opening(t, newHost(t), file, settings{"breakers": []string{}})
	plan := func(history ...uint32) (abi.Action, uint32) {
		f, l := i.Frame(), i.Layout()
		for k, id := range history {
			binary.LittleEndian.PutUint32(f[l.History+4*k:], id)
		}
		binary.LittleEndian.PutUint32(f[abi.OffHistoryLen:], uint32(len(history)))
		a, _, err := i.Call(abi.HookPlan)
		if err != nil {
			t.Fatal(err)
		}
		return a, binary.LittleEndian.Uint32(i.Frame()[abi.OffEditN:])
	}
	repeats, other := []uint32{7, 8, 9, 5, 7, 8}, []uint32{1, 2, 3, 4, 5, 6}
	for round := range 3 {
		if a, n := plan(repeats...); a != abi.Edits || n != 1 {
			t.Errorf("round %d: %v with %d edits, want one", round, a, n)
		}
		if a, n := plan(other...); a != 0 || n != 0 {
			t.Errorf("round %d: %v with %d edits where nothing repeats", round, a, n)
		}
	}
}
