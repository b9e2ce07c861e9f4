package tryout

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/builtin"
	"ganglion/plugins/host"
	"ganglion/plugins/plugintest"
	"ganglion/plugins/rowstats"
	"ganglion/plugins/sampling"
	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

func load(t *testing.T, file []byte) *host.Plugin {
	t.Helper()
	r, err := host.New(host.Options{AllowSlow: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func module(t *testing.T, name string) []byte {
	t.Helper()
	b, ok := builtin.Module(name)
	if !ok {
		t.Fatalf("no plugin %q", name)
	}
	return b
}

func twin(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "plugintest", "testdata", "twins", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const vocab, steps = 1000, 40

// made makes a text with a chain, as a server would.
func made(t *testing.T, temperature float64) *Text {
	t.Helper()
	text := &Text{Prompt: []int32{5, 6, 7}, MaxTokens: steps, Params: sampling.Params{Vocab: vocab, Temperature: temperature, TopP: 1, Seed: 9, PresencePenalty: 0.5}}
	row := make([]float32, vocab)
	text.Input = func(step int) (sampling.Input, bool, error) {
		plugintest.Row(row, 3, step)
		return whole(row), true, nil
	}
	chain, err := sampling.New(text.Params)
	if err != nil {
		t.Fatal(err)
	}
	var s sampling.Scratch
	for step := range steps {
		in, _, _ := text.Input(step)
		c, err := chain.Choose(&in, len(text.Prompt)+step, &s)
		if err != nil {
			t.Fatal(err)
		}
		chain.Accept(c.ID)
		text.Tokens = append(text.Tokens, Token{ID: c.ID, Text: "x"})
	}
	return text
}

func whole(row []float32) sampling.Input {
	in := sampling.Input{Row: row, Max: float32(math.Inf(-1))}
	for i, l := range row {
		if l > in.Max {
			in.Best, in.Max = int32(i), l
		}
	}
	in.LogSumExp = float32(float64(in.Max) + math.Log(rowstats.ScanMass(row, in.Max).Sum))
	return in
}

func try(t *testing.T, p *host.Plugin, config string, text *Text) *Report {
	t.Helper()
	full, err := p.Manifest().Schema.Fill([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Try(t.Context(), p, full, host.Services{}, text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTry(t *testing.T) {
	xtc, minP := load(t, module(t, "xtc")), load(t, module(t, "min-p"))
	if r := try(t, minP, `{"p":0.000001}`, made(t, 0.8)); r.Seen != steps || r.Reproduced != steps || r.Other != 0 || r.Calls != steps || r.Fuel == 0 {
		t.Errorf("a plugin that changes nothing: %+v", r)
	}
	if r := try(t, xtc, `{"probability":1,"threshold":0.01}`, made(t, 0.8)); r.Reproduced != steps || r.Other < steps/2 {
		t.Errorf("a plugin that changes much: %+v", r)
	}
	if r := try(t, xtc, `{"probability":0}`, made(t, 0.8)); r.Idle != 1 || r.Other != 0 {
		t.Errorf("a plugin that is not interested: %+v", r)
	}
}

// A text that another chain made does not come again, and the report says so.
func TestAnotherSeedIsNotReproduced(t *testing.T) {
	text := made(t, 1)
	text.Params.Seed++
	if r := try(t, load(t, module(t, "min-p")), `{}`, text); r.Reproduced == steps || r.Seen != steps {
		t.Errorf("%+v", r)
	}
}

func TestFailures(t *testing.T) {
	text := made(t, 0.8)
	text.Input = func(int) (sampling.Input, bool, error) {
		row := make([]float32, vocab)
		for i := 1; i < vocab; i++ {
			row[i] = float32(math.Inf(-1))
		}
		return whole(row), true, nil
	}
	text.Tokens = []Token{{ID: 0}}
	if r := try(t, load(t, twin(t, "corpora")), `{}`, text); r.Failed != 1 || r.Error == "" {
		t.Errorf("a plugin that traps: %+v", r)
	}
	broken := errors.New("no model")
	text.Input = func(int) (sampling.Input, bool, error) { return sampling.Input{}, false, broken }
	if _, err := Try(t.Context(), load(t, module(t, "min-p")), nil, host.Services{}, text); !errors.Is(err, broken) {
		t.Errorf("a text that cannot be read: %v", err)
	}
	if _, err := Try(t.Context(), load(t, module(t, "min-p")), nil, host.Services{}, &Text{}); err == nil {
		t.Error("a text without a vocabulary was tried")
	}
}

func TestFromAlternatives(t *testing.T) {
	row := make([]float32, 10)
	in := FromAlternatives(row, []Alternative{{3, math.Log(0.5)}, {7, math.Log(0.3)}, {3, math.Log(0.5)}, {-1, 0}, {10, 0}})
	if in.Best != 3 || in.Max != float32(math.Log(0.5)) || math.Abs(float64(in.LogSumExp)) > 1e-6 {
		t.Errorf("%+v", in)
	}
	for id, l := range row {
		want := math.Log(0.2 / 8)
		switch id {
		case 3:
			want = math.Log(0.5)
		case 7:
			want = math.Log(0.3)
		}
		if math.Abs(float64(l)-want) > 1e-6 {
			t.Errorf("token %d: %g, want %g", id, l, want)
		}
	}
	// What is not known is never above the least that is.
	FromAlternatives(row, []Alternative{{0, math.Log(0.1)}, {1, math.Log(0.01)}})
	if row[2] > row[1] {
		t.Errorf("an unknown token at %g, the least known one at %g", row[2], row[1])
	}
	// Nothing is left for the others.
	if FromAlternatives(row, []Alternative{{4, 0}}); !math.IsInf(float64(row[0]), -1) {
		t.Errorf("others are at %g", row[0])
	}
}

// opens is a plugin whose gg_open has a body, and which plans nothing.
func opens(t *testing.T, body []byte) *host.Plugin {
	t.Helper()
	i32 := []wasm.ValType{wasm.I32}
	two := []wasm.ValType{wasm.I32, wasm.I32}
	b := &wasmtest.Builder{}
	b.Memory(2)
	b.Export("gg_abi_1", wasm.KindFunc, b.Func(nil, i32, nil, wasmtest.Code(byte(0x41), 0)))
	b.Export("gg_alloc", wasm.KindFunc, b.Func(two, i32, nil, wasmtest.Code(byte(0x41), 1024)))
	b.Export("gg_open", wasm.KindFunc, b.Func(two, i32, nil, body))
	b.Export("gg_plan", wasm.KindFunc, b.Func(i32, i32, nil, wasmtest.Code(byte(0x41), 0)))
	return load(t, wasm.AppendCustom(b.Bytes(), abi.SectionManifest, []byte(`{"abi":"1.0","name":"opens","version":"1.0.0","slot":"bias"}`)))
}

// TestFailuresAtOpen: a plugin that fails before the first token fails in the report, with
// the reason and what it cost.
func TestFailuresAtOpen(t *testing.T) {
	for name, c := range map[string]struct {
		body []byte
		want string // "": it opens
	}{
		"zero":       {wasmtest.Code(byte(0x41), 0), ""},
		"refuses":    {wasmtest.Code(byte(0x41), -1), "gg_open returned -1"},
		"traps":      {wasmtest.Code(byte(0x00)), "unreachable"},
		"never ends": {wasmtest.Code(byte(0x03), byte(0x40), byte(0x0c), uint(0), byte(0x0b), byte(0x00)), "used"}, // loop br 0 end
	} {
		r := try(t, opens(t, c.body), `{}`, made(t, 0.8))
		if c.want == "" {
			if r.Failed != 0 || r.Error != "" || r.Seen != steps || r.Calls != steps || r.OnceFuel == 0 {
				t.Errorf("%s: %+v", name, r)
			}
			continue
		}
		if r.Failed != 1 || !strings.Contains(r.Error, c.want) || r.Texts != 1 || r.Seen != 0 || r.Calls != 0 || r.Fuel != 0 || r.OnceFuel == 0 || r.OnceUS <= 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// panics is a vocabulary that nothing can be asked of.
type panics struct{ host.Vocabulary }

func (panics) Key() string                       { return "panics" }
func (panics) Size() int                         { return vocab }
func (panics) Encode([]byte, bool, bool) []int32 { panic("no vocabulary") }

// TestPanicAtOpen: what panics as the plugin opens is its failure in the report, and the
// next text is tried, also where there were more of these than there are seats.
func TestPanicAtOpen(t *testing.T) {
	p := load(t, module(t, "thinking-budget"))
	config, err := p.Manifest().Schema.Fill([]byte(`{"budget":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * runtime.GOMAXPROCS(0) {
		r, err := Try(t.Context(), p, config, host.Services{Vocab: panics{}}, made(t, 0.8))
		if err != nil || r.Failed != 1 || !strings.Contains(r.Error, "panic") || !strings.Contains(r.Error, "no vocabulary") {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// TestCancelled: who cancelled hears that, and no failure of the plugin.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Try(ctx, load(t, module(t, "min-p")), nil, host.Services{}, made(t, 0.8)); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
}
