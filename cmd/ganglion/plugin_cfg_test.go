package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu"
	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
	"ganglion/plugins/host"
	"ganglion/plugins/sampling"
)

// openGolden opens a golden model on the CPU.
func openGolden(t *testing.T, name string) *engine.Engine {
	t.Helper()
	b, err := gpu.CPU()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	e, err := engine.Open(context.Background(), engine.Config{
		Path: archtest.Golden(t).Path(t, name), Backend: b, Numerics: ops.Exact, Threads: 2, Context: 160, Slots: 3, MaxRows: 48,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rowOf is what a model says behind a text.
func rowOf(t *testing.T, e *engine.Engine, ids []int32) []float32 {
	t.Helper()
	slot, cached, ok := e.Acquire(ids, 0)
	if !ok {
		t.Fatal("no slot")
	}
	defer e.Release(slot)
	for ids = ids[cached:]; ; ids = ids[48:] {
		var rows []engine.Row
		for _, id := range ids[:min(len(ids), 48)] {
			rows = append(rows, engine.Row{Slot: slot, Token: id})
		}
		last := len(ids) <= 48
		if last {
			rows[len(rows)-1].Want, rows[len(rows)-1].Read = true, ops.Want{Kind: ops.WantRow}
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		if last {
			return heads[0].Row
		}
	}
}

// guidance is classifier-free guidance by hand: (1+s)·main − s·other.
type guidance struct {
	strength float64
	other    []float32
}

func (g *guidance) Apply(d *sampling.Distribution) {
	row := make([]byte, 4*len(g.other))
	for i := range d.Len() {
		c := d.At(i)
		v := float32((1+g.strength)*float64(c.Logit) - g.strength*float64(g.other[c.ID]))
		binary.LittleEndian.PutUint32(row[4*c.ID:], math.Float32bits(v))
	}
	if err := d.Replace(row); err != nil {
		panic(err)
	}
}

// TestGuidance runs the guest `cfg` with models: a text is that of (1+s)·main − s·other,
// computed by hand from the rows of both sequences.
func TestGuidance(t *testing.T) {
	const prompt, other, strength, n = "The capital of the country lies by the river", "A story of the sea", 1.5, 40
	runtime, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close()
	file, err := readPlugin("../../plugins/builtin/wasm/cfg.wasm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := runtime.Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	logger := slog.New(slog.DiscardHandler)
	for _, model := range guidedModels {
		by := openGolden(t, model)
		defer by.Close()
		s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Plugins: pluginFile{p, logger}, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		s.Use(appliance.FromEngine(openGolden(t, model)))
		for _, temperature := range []float64{0, 1} {
			seed, limit := int64(11), int64(n)
			request := func(plugins ...appliance.PluginChoice) *appliance.Result {
				t.Helper()
				c, err := s.Start(context.Background(), &appliance.Request{
					ID: appliance.NewID(), Prompt: prompt, Temperature: &temperature, Seed: &seed, MaxTokens: &limit, Plugins: plugins,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				r, err := c.Wait(context.Background())
				if err != nil {
					t.Fatalf("%s at temperature %g: %v", model, temperature, err)
				}
				return r
			}
			got := request(appliance.PluginChoice{Name: "cfg", Config: fmt.Appendf(nil, `{"negative_prompt":%q,"scale":%g}`, other, 1+strength)})

			words := by.Tokenizer()
			g := &guidance{strength: strength}
			chain, err := sampling.New(sampling.Params{
				Vocab: by.Info().Vocab, Suppressed: words.Suppressed(), Temperature: temperature, TopP: 1, Seed: seed, Stages: []sampling.Stage{g},
			})
			if err != nil {
				t.Fatal(err)
			}
			options := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}
			text, beside := words.Encode(prompt, options), words.Encode(other, options)
			var scratch sampling.Scratch
			for i := range n {
				row := append([]float32(nil), rowOf(t, by, text)...)
				g.other = rowOf(t, by, beside)
				in := sampling.Input{Row: row, Max: float32(math.Inf(-1))}
				for id, l := range row {
					if l > in.Max {
						in.Best, in.Max = int32(id), l
					}
				}
				want, err := chain.Choose(&in, len(text), &scratch)
				if err != nil {
					t.Fatal(err)
				}
				if words.IsEOG(want.ID) {
					if i != len(got.Tokens) {
						t.Errorf("%s at temperature %g: %d tokens, the end comes after %d", model, temperature, len(got.Tokens), i)
					}
					break
				}
				if i >= len(got.Tokens) || got.Tokens[i].ID != want.ID {
					t.Fatalf("%s at temperature %g: token %d of %v is not %d", model, temperature, i, got.Tokens, want.ID)
				}
				text, beside = append(text, want.ID), append(beside, want.ID)
			}
			if r := got.Plugins; len(r) != 1 || r[0].Outcome != "ok" || r[0].Changed == 0 {
				t.Errorf("%s at temperature %g: %+v", model, temperature, r)
			}
			if plain := request(); plain.Text == got.Text {
				t.Errorf("%s at temperature %g: the text is as without guidance", model, temperature)
			}
		}
	}
}

// guidedModels keep keys and values, keep a window of them, or keep recurrent state.
var guidedModels = []string{"llama-dense", "gemma3-dense", "qwen35-dense"}
