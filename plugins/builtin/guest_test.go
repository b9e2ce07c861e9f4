package builtin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"ganglion/plugins/meter"
	"ganglion/plugins/wasm"
)

// guest runs one plugin, metered, with hand-made frames and no host behind it.
type guest struct {
	t      testing.TB
	m      api.Module
	frame  uint32
	vocab  *vocabulary
	open   []byte
	fault  string // of set_error
	assets map[string][]byte
	second []float32 // logits of the auxiliary sequence
	part   struct{ history, ids, logits, edits, mask, out, in uint32 }
}

const (
	frameBytes = 256
	mostParts  = 4096
)

var (
	ctx      = context.Background()
	compiled = wazero.NewCompilationCache()
)

// newGuest opens a plugin with a config; nil means that it has nothing to do with it.
func newGuest(t testing.TB, name string, config any, v *vocabulary) *guest {
	t.Helper()
	g, answer := opened(t, name, config, v)
	if answer == 1 {
		return nil
	}
	if answer != 0 {
		t.Fatalf("%s: gg_open returns %d: %s", name, answer, g.fault)
	}
	return g
}

// openFault is the text of the error with which gg_open ends.
func openFault(t testing.TB, name string, config any) string {
	t.Helper()
	g, answer := opened(t, name, config, of())
	if answer >= 0 {
		t.Fatalf("%s: %v: gg_open returns %d", name, config, answer)
	}
	return g.fault
}

// opened makes an instance and returns the answer of gg_open.
func opened(t testing.TB, name string, config any, v *vocabulary) (*guest, int32) {
	t.Helper()
	file, ok := Module(name)
	if !ok {
		t.Fatalf("no plugin %q", name)
	}
	return openedFile(t, file, config, v)
}

func openedFile(t testing.TB, file []byte, config any, v *vocabulary) (*guest, int32) {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(compiled))
	t.Cleanup(func() { r.Close(ctx) })
	g := &guest{t: t, vocab: v, assets: map[string][]byte{}}
	module, err := wasm.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range module.Sections {
		if name, ok := strings.CutPrefix(s.Name, "ganglion.asset:"); ok {
			g.assets[name], _ = module.Custom(s.Name)
		}
	}
	g.hostModule(r)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	// Metered, as the server runs it, with fuel for all that a test does.
	metered, _, err := meter.Rewrite(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.InstantiateWithConfig(ctx, metered, wazero.NewModuleConfig().WithName("guest").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	m.ExportedGlobal(meter.Rest).(api.MutableGlobal).Set(1 << 60)
	for _, name := range []string{meter.Start, "_initialize"} {
		if f := m.ExportedFunction(name); f != nil {
			if _, err := f.Call(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.m = m
	g.frame = g.alloc(frameBytes, 64)
	g.part.history = g.alloc(mostParts*4, 16)
	g.part.ids = g.alloc(mostParts*4, 16)
	g.part.logits = g.alloc(mostParts*4, 16)
	g.part.edits = g.alloc(mostParts*8, 16)
	g.part.mask = g.alloc(uint32(v.size+31)/32*4, 16)
	g.part.out = g.alloc(mostParts*4, 16)
	g.part.in = g.alloc(mostParts*4, 16)
	g.put(0x00, 0x31464747)
	g.put(0x04, g.part.in+mostParts*4-g.frame)
	g.put(0x20, uint32(v.size))
	g.open, err = json.Marshal(map[string]any{"config": config, "model": map[string]any{"vocab": v.size}, "request": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	at := g.alloc(uint32(len(g.open)), 8)
	m.Memory().Write(at, g.open)
	res, err := m.ExportedFunction("gg_open").Call(ctx, uint64(at), uint64(len(g.open)))
	if err != nil {
		t.Fatal(err)
	}
	return g, int32(res[0])
}

func (g *guest) alloc(size, align uint32) uint32 {
	res, err := g.m.ExportedFunction("gg_alloc").Call(ctx, uint64(size), uint64(align))
	if err != nil || res[0] == 0 {
		g.t.Fatalf("gg_alloc(%d): %v, %v", size, res, err)
	}
	return uint32(res[0])
}

func (g *guest) put(off, v uint32)              { g.m.Memory().WriteUint32Le(g.frame+off, v) }
func (g *guest) putFloat(off uint32, v float64) { g.put(off, math.Float32bits(float32(v))) }
func (g *guest) get(off uint32) uint32 {
	v, _ := g.m.Memory().ReadUint32Le(g.frame + off)
	return v
}

func (g *guest) words(at uint32, n int) []uint32 {
	b, _ := g.m.Memory().Read(at, uint32(4*n))
	w := make([]uint32, n)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

func (g *guest) putWords(at uint32, w []uint32) { g.writeWords(g.m, at, w) }

type candidate struct {
	id    uint32
	logit float32
}

// distribution fills the view: statistics of all logits, and the best n candidates.
func (g *guest) distribution(logits []float32, n int) {
	var cands []candidate
	best, sum := math.Inf(-1), 0.0
	for i, l := range logits {
		if !math.IsInf(float64(l), -1) {
			cands = append(cands, candidate{uint32(i), l})
			best = max(best, float64(l))
			sum += float64(l)
		}
	}
	mean, square, weights := sum/float64(len(cands)), 0.0, 0.0
	for _, c := range cands {
		square += (float64(c.logit) - mean) * (float64(c.logit) - mean)
		weights += math.Exp(float64(c.logit) - best)
	}
	all, entropy, mass := best+math.Log(weights), 0.0, 0.0
	slices.SortStableFunc(cands, func(a, b candidate) int {
		if a.logit != b.logit {
			return int(math.Copysign(1, float64(b.logit-a.logit)))
		}
		return int(a.id) - int(b.id)
	})
	for i, c := range cands {
		p := math.Exp(float64(c.logit) - all)
		entropy += p * (all - float64(c.logit))
		if i < n {
			mass += p
			g.putWords(g.part.ids+uint32(4*i), []uint32{c.id})
			g.putWords(g.part.logits+uint32(4*i), []uint32{math.Float32bits(c.logit)})
		}
	}
	g.put(0x3C, mostParts)
	g.put(0x40, uint32(min(n, len(cands))))
	g.put(0x44, g.part.ids-g.frame)
	g.put(0x48, g.part.logits-g.frame)
	for off, v := range map[uint32]float64{0x80: best, 0x84: mean, 0x88: math.Sqrt(square / float64(len(cands))), 0x8C: all, 0x90: entropy, 0x94: mass} {
		g.putFloat(off, v)
	}
	g.put(0x9C, uint32(len(cands)))
	g.putFloat(0x98, 1)
}

func (g *guest) history(tokens []uint32) {
	g.putWords(g.part.history, tokens)
	g.put(0x30, g.part.history-g.frame)
	g.put(0x34, uint32(len(tokens)))
}

// call runs a hook and returns its action bits.
func (g *guest) call(hook string) int32 {
	g.t.Helper()
	g.put(0x5C, g.part.mask-g.frame)
	g.put(0x60, g.part.edits-g.frame)
	g.put(0x64, mostParts)
	g.put(0x68, 0)
	g.put(0x6C, g.part.out-g.frame)
	g.put(0x70, 4*mostParts)
	g.put(0x74, 0)
	res, err := g.m.ExportedFunction("gg_"+hook).Call(ctx, uint64(g.frame))
	if err != nil {
		g.t.Fatalf("gg_%s: %v", hook, err)
	}
	if int32(res[0]) < 0 {
		g.t.Fatalf("gg_%s returns %d: %s", hook, int32(res[0]), g.fault)
	}
	return int32(res[0])
}

func (g *guest) candidates() []uint32 { return g.words(g.part.ids, int(g.get(0x40))) }

type edit struct {
	id, op uint32
	value  float32
}

func (g *guest) edits() []edit {
	var out []edit
	for i := range g.get(0x68) {
		w := g.words(g.part.edits+8*i, 2)
		out = append(out, edit{w[0] & (1<<28 - 1), w[0] >> 28, math.Float32frombits(w[1])})
	}
	return out
}

// attempt calls a hook and puts the memory back to what it was before.
func (g *guest) attempt(hook string, look func()) {
	size := g.m.Memory().Size()
	b, _ := g.m.Memory().Read(0, size)
	image := slices.Clone(b)
	g.call(hook)
	look()
	g.m.Memory().Write(0, image)
}
