package compute

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine/enginetest"
	"ganglion/gpu/gguf/synthetic"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// quantSet is gpu/engine/testdata/quant: a model of each type of weights and its logits.
type quantSet struct {
	Tokens  []int32
	Vocab   int `json:"n_vocab"`
	Entries []quantEntry
}

type quantEntry struct {
	Type, File, Logits string
	Peer               float64 `json:"peer_nmse_with_its_own_integer_activations"`
}

const quantDir = "../engine/testdata/quant"

func quantised(t *testing.T) *quantSet {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(quantDir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	s := &quantSet{}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// path is the file of a type's model, unpacked.
func (s *quantSet) path(t *testing.T, typ string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), typ+".gguf")
	if err := os.WriteFile(path, unzipped(t, typ+".gguf"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// want are the golden logits of the first rows.
func (s *quantSet) want(t *testing.T, e quantEntry, rows int) []float32 {
	t.Helper()
	data := unzipped(t, e.Logits)
	out := make([]float32, rows*s.Vocab)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func unzipped(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(quantDir, name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// quantRun is a model in a mode on a device as it is, or as one that passes for a GPU.
type quantRun struct {
	name     string
	path     string
	format   string    // a part of the names of its kernels
	exact    []float32 // the processor's logits
	want     []float32 // the reference's, or the processor's where there are none
	fast     float64   // bound of fast mode
	layers   bool      // more than one
	mode     ops.Numerics
	hardware bool
	tiled    bool // products with more than one row go by tiles
}

// Models of each type of whole numbers give the processor's bits in exact mode and the
// reference's logits within its bounds in both modes, on every driver, with the kernels of
// renderers and with those of GPUs: one row and some rows, by tiles too, products that go on
// with their rows and others. GANGLION_GPU_ALL runs each model in each of the four ways on every
// driver; otherwise the drivers, whose kernels are the same text, have one of them each, in turn.
func TestQuantisedModels(t *testing.T) {
	t.Parallel()
	const rows = 3 // in two batches: one alone, then two
	m := quantised(t)
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	models := m.models(t, rows)
	for i := range models {
		models[i].exact = enginetest.Logits(t, c, models[i].path, ops.Exact, m.Tokens[:rows], 1)
		if models[i].want == nil {
			models[i].want = models[i].exact
		}
	}
	t.Run("drivers", func(t *testing.T) {
		for n, d := range drivers {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				dev := devicetest.Keep(d.device(t))
				t.Cleanup(func() { dev.Close() })
				for i, r := range models {
					for way := range 4 {
						r.mode, r.hardware = ops.Numerics(way%2), way/2 == 1
						r.tiled = r.hardware && (i/4+n)%2 == 0
						if os.Getenv("GANGLION_GPU_ALL") == "" && !hasWay(n, i, way) {
							continue
						}
						t.Run(fmt.Sprintf("%s/%s/%s", r.name, r.mode, map[bool]string{false: "renderer", true: "gpu"}[r.hardware]), func(t *testing.T) {
							r.run(t, dev, m.Tokens[:rows])
						})
					}
				}
			})
		}
	})
}

// hasWay divides the four ways of running a model among the four drivers, in turn.
func hasWay(driver, model, way int) bool { return way == (driver+model)%4 }

// Every way of running a model is taken, and every way on each driver.
func TestWaysAreDivided(t *testing.T) {
	var byModel, byDriver [4][4]int
	for driver := range drivers {
		for model := range 4 {
			for way := range 4 {
				if hasWay(driver, model, way) {
					byModel[model][way]++
					byDriver[driver][way]++
				}
			}
		}
	}
	for i := range 4 {
		if slices.Contains(byModel[i][:], 0) {
			t.Errorf("model %d: %v drivers have its ways", i, byModel[i])
		}
		if slices.Contains(byDriver[i][:], 0) {
			t.Errorf("%s: %v models of four go its ways", drivers[i].name, byDriver[i])
		}
	}
}

// models are those of the set, of one layer each, and one of two layers, in which an
// attention leaves whole numbers: the last layer drops rows before.
func (s *quantSet) models(t *testing.T, rows int) (all []quantRun) {
	for _, e := range s.Entries {
		typ := tensor.Types()[slices.IndexFunc(tensor.Types(), func(t tensor.Type) bool { return t.String() == e.Type })]
		if onceInAFormat(typ) {
			all = append(all, quantRun{name: e.Type, path: s.path(t, e.Type), format: formatName(typ),
				want: s.want(t, e, rows), fast: max(quantExact, quantFast*e.Peer)})
		}
	}
	path := filepath.Join(t.TempDir(), "layers.gguf")
	l := synthetic.Llama{Layers: 2, Embed: 256, FeedForward: 256, Heads: 4, KVHeads: 2, Vocab: s.Vocab, Context: 256, Type: tensor.Q4_K}
	if err := l.Write(path, 1); err != nil {
		t.Fatal(err)
	}
	return append(all, quantRun{name: "layers", path: path, format: formatName(l.Type), fast: 1e-4, layers: true})
}

// onceInAFormat chooses the types that have a format of their own, and one of those that
// are repacked.
func onceInAFormat(t tensor.Type) bool {
	f, own := formats[t]
	_, floats := f.(*floats)
	return own && !floats || t == tensor.IQ2_S
}

func (r *quantRun) run(t *testing.T, keep *devicetest.Keeping, tokens []int32) {
	var dev device.Device = keep
	if r.hardware {
		dev = devicetest.AsHardware(keep)
	}
	keep.Used = nil
	b := New(dev, Options{Shared: true, Deadline: 5 * time.Minute})
	defer b.Close()
	if r.tiled {
		b.tiles = tiling{few: 1, groups: tiledGroups}
	}
	got := enginetest.Logits(t, b, r.path, r.mode, tokens, 2)
	bound := quantExact
	if r.mode == ops.Fast {
		bound = r.fast
	} else if !archtest.SameBits(got, r.exact) {
		t.Error("the logits are not those of the processor")
	}
	if e := archtest.NMSE(got, r.want); !(e <= bound) {
		t.Errorf("NMSE %.3g, bound %.3g", e, bound)
	}
	r.usesItsKernels(t, keep.Used)
}

// Bounds of NMSE, as in gpu/engine/quant_test.go.
const (
	quantExact = 1e-7
	quantFast  = 1.1
)

// usesItsKernels checks that the model tested what it is for: the products of its format
// with one row and with some, with and without what goes on with their rows, and the
// kernels that make whole numbers on the way.
func (r *quantRun) usesItsKernels(t *testing.T, used []devicetest.Use) {
	suffix := map[bool]string{true: "_fast"}[r.mode == ops.Fast]
	product := "matmul_" + r.format + suffix
	if !r.hardware {
		product += texelsSuffix
	}
	has := func(kernel string, constants map[int]uint32) bool {
		return slices.ContainsFunc(used, func(u devicetest.Use) bool {
			if u.Kernel != kernel {
				return false
			}
			for i, v := range constants {
				if u.Constants[i] != v {
					return false
				}
			}
			return true
		})
	}
	const xRows, chain = 2, 6 // of product_params.glsl
	for _, rows := range []uint32{1, sharedRows} {
		if r.tiled && rows > 1 {
			if !has(product+tiledSuffix, nil) {
				t.Errorf("%s was not used by tiles", product)
			}
			continue
		}
		for _, goesOn := range []uint32{0, 1} {
			if !has(product, map[int]uint32{xRows: rows, chain: goesOn}) {
				t.Errorf("%s with XROWS %d and CHAIN %d was not used", product, rows, goesOn)
			}
		}
	}
	for _, kernel := range []string{"embed_" + r.format, "gluwhole" + suffix, "quantize" + suffix, "normchain" + suffix} {
		if !has(kernel, nil) {
			t.Errorf("%s was not used", kernel)
		}
	}
	const whole = 9 // of attention_params.glsl
	if r.layers != slices.ContainsFunc(used, func(u devicetest.Use) bool {
		return strings.HasPrefix(u.Kernel, "attention_") && len(u.Constants) > whole && u.Constants[whole] == 1
	}) {
		t.Errorf("attentions leave whole numbers: %v, want %v", !r.layers, r.layers)
	}
}

// formatName is the part of kernels' names that says a type's format.
func formatName(t tensor.Type) string {
	if f, own := formats[t]; own {
		return f.Name()
	}
	return "codes"
}
