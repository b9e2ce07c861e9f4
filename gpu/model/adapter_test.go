package model

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/gguf"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// adapterFile writes and opens an adapter.
func adapterFile(t *testing.T, m gguftest.Model) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "adapter.gguf")
	if err := gguftest.Write(path, m); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func modelFile(t *testing.T, name string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(archtest.Golden(t).Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// dims is the shape of a model's tensor.
func dims(t *testing.T, f *gguf.File, name string) []int {
	t.Helper()
	w, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("the model has no tensor %q", name)
	}
	return w.Dims
}

// zero is a tensor of zeros.
func zero(name string, dims ...int) gguftest.Tensor {
	return gguftest.Tensor{Name: name, Type: tensor.F32, Dims: dims}
}

func TestAdapterIsRefused(t *testing.T) {
	f := modelFile(t, "llama-moe")
	const q, gate, embd = "blk.0.attn_q.weight", "blk.0.ffn_gate_exps.weight", "token_embd.weight"
	qd, gd, ed := dims(t, f, q), dims(t, f, gate), dims(t, f, embd)
	a, b := zero(q+".lora_a", qd[0], 4), zero(q+".lora_b", 4, qd[1])
	good := func() gguftest.Model { return gguftest.Adapter("llama", 8, a, b) }
	key := func(name string, value any) func(*gguftest.Model) {
		return func(m *gguftest.Model) {
			i := slices.IndexFunc(m.KV, func(k gguftest.KV) bool { return k.Key == name })
			switch {
			case value == nil:
				m.KV = slices.Delete(m.KV, i, i+1)
			case i < 0:
				m.KV = append(m.KV, gguftest.KV{Key: name, Value: value})
			default:
				m.KV[i].Value = value
			}
		}
	}
	tensors := func(ts ...gguftest.Tensor) func(*gguftest.Model) {
		return func(m *gguftest.Model) { m.Tensors = ts }
	}
	tests := []struct {
		name  string
		spoil func(*gguftest.Model)
		says  string // "" = accepted
	}{
		{"good", func(*gguftest.Model) {}, ""},
		{"no type", key("general.type", nil), `key "general.type" is missing`},
		{"a model", key("general.type", "model"), `key "general.type" is "model", want "adapter"`},
		{"type is a number", key("general.type", uint32(1)), `key "general.type" is missing`},
		{"no architecture", key("general.architecture", nil), `key "general.architecture" is missing`},
		{"other architecture", key("general.architecture", "qwen3"), `key "general.architecture" is "qwen3", want "llama"`},
		{"no adapter type", key("adapter.type", nil), `key "adapter.type" is missing`},
		{"other adapter type", key("adapter.type", "control_vector"), `key "adapter.type" is "control_vector"`},
		{"no alpha", key("adapter.lora.alpha", nil), ""},
		{"alpha 0", key("adapter.lora.alpha", float32(0)), ""},
		{"negative alpha", key("adapter.lora.alpha", float32(-1)), ""},
		{"whole alpha", key("adapter.lora.alpha", uint32(16)), ""},
		{"alpha NaN", key("adapter.lora.alpha", float32(math.NaN())), `key "adapter.lora.alpha" is no finite number`},
		{"alpha infinite", key("adapter.lora.alpha", math.Inf(-1)), `key "adapter.lora.alpha"`},
		{"alpha beyond float32", key("adapter.lora.alpha", 1e300), `key "adapter.lora.alpha"`},
		{"alpha is text", key("adapter.lora.alpha", "16"), `key "adapter.lora.alpha"`},
		{"acts after tokens", key("adapter.alora.invocation_tokens", []uint32{1, 2}), `key "adapter.alora.invocation_tokens"`},
		{"no tensors", tensors(), "holds no pair"},
		{"no A", tensors(b), `tensor "blk.0.attn_q.weight.lora_a" is missing`},
		{"no B", tensors(a), `tensor "blk.0.attn_q.weight.lora_b" is missing`},
		{"other suffix", tensors(a, b, zero("blk.0.attn_q.bias", 4)), `tensor "blk.0.attn_q.bias": the name ends in neither`},
		{"norm", tensors(a, b, zero("blk.0.attn_norm.weight", 4)), ""},
		{"norms alone", tensors(zero("blk.0.attn_norm.weight", 4)), "holds no pair"},
		{"unknown tensor", tensors(a, b, zero("blk.9.attn_q.weight.lora_a", 4, 4), zero("blk.9.attn_q.weight.lora_b", 4, 4)), `the model has no tensor "blk.9.attn_q.weight"`},
		{"not multiplied by", tensors(a, b, zero("blk.0.attn_norm.weight.lora_a", 1, 4), zero("blk.0.attn_norm.weight.lora_b", 4, 64)),
			`the model does not multiply by "blk.0.attn_norm.weight"`},
		{"A too narrow", tensors(zero(a.Name, qd[0]-1, 4), b), `tensor "blk.0.attn_q.weight.lora_a" is`},
		{"B too short", tensors(a, zero(b.Name, 4, qd[1]+1)), `tensor "blk.0.attn_q.weight.lora_b" is`},
		{"A is turned", tensors(zero(a.Name, 4, qd[0]), b), `tensor "blk.0.attn_q.weight.lora_a" is`},
		{"ranks differ", tensors(a, zero(b.Name, 5, qd[1])), `tensor "blk.0.attn_q.weight.lora_b" has rank 5, its other half 4`},
		{"rank too large", tensors(zero(a.Name, qd[0], 4097), zero(b.Name, 4097, qd[1])), "has rank 4097, which is not in [1, 4096]"},
		{"stack for a matrix", tensors(zero(a.Name, qd[0], 4, 2), zero(b.Name, 4, qd[1], 2)), `tensor "blk.0.attn_q.weight.lora_a" is`},
		{"four dimensions", tensors(zero(a.Name, qd[0], 4, 1, 2), b), `tensor "blk.0.attn_q.weight.lora_a": has shape`},
		{"indices", tensors(gguftest.Tensor{Name: a.Name, Type: 26, Dims: []int{qd[0], 4}, Data: make([]byte, 16*qd[0])}, b), `attn_q.weight.lora_a`},
		{"stack", tensors(zero(gate+".lora_a", gd[0], 3, gd[2]), zero(gate+".lora_b", 3, gd[1], gd[2])), ""},
		{"matrix for a stack", tensors(zero(gate+".lora_a", gd[0], 3), zero(gate+".lora_b", 3, gd[1])), `tensor "blk.0.ffn_gate_exps.weight.lora_a" is`},
		{"fewer experts", tensors(zero(gate+".lora_a", gd[0], 3, gd[2]), zero(gate+".lora_b", 3, gd[1], gd[2]-1)), `tensor "blk.0.ffn_gate_exps.weight.lora_b" is`},
		{"table", tensors(zero(embd+".lora_a", 3, ed[1]), zero(embd+".lora_b", 3, ed[0])), ""},
		{"table like a matrix", tensors(zero(embd+".lora_a", ed[0], 3), zero(embd+".lora_b", 3, ed[1])), `tensor "token_embd.weight.lora_a" is`},
		{"table of another vocabulary", tensors(zero(embd+".lora_a", 3, ed[1]-1), zero(embd+".lora_b", 3, ed[0])), `tensor "token_embd.weight.lora_a" is`},
		{"ranks of a table differ", tensors(zero(embd+".lora_a", 3, ed[1]), zero(embd+".lora_b", 2, ed[0])), `tensor "token_embd.weight.lora_b" has rank 2`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := good()
			tt.spoil(&m)
			path := filepath.Join(t.TempDir(), "adapter.gguf")
			if err := gguftest.Write(path, m); err != nil {
				t.Fatal(err)
			}
			file, err := gguf.Open(path)
			if err == nil { // the reader may refuse first
				defer file.Close()
				_, err = New(f, Options{Adapters: []Adapter{{Name: "one", File: file}}})
				if err != nil && !strings.Contains(err.Error(), `adapter "one"`) {
					t.Errorf("error %v does not name the adapter", err)
				}
			}
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
		})
	}
}

// The factor is alpha/rank, or 1 where the file names no alpha; a table's counts the
// scale of the embedding as well. A tied embedding is looked up, and it is the head.
func TestAdapterFactor(t *testing.T) {
	const q, embd = "blk.0.attn_q.weight", "token_embd.weight"
	for _, tt := range []struct {
		model, arch string
		tied        bool
		scaled      bool
	}{{"gemma3-dense", "gemma3", false, true}, {"llama-tied", "llama", true, false}} {
		f := modelFile(t, tt.model)
		qd, ed := dims(t, f, q), dims(t, f, embd)
		for alpha, factor := range map[float32]float64{8: 2, 1: 0.25, 0: 1} {
			file := adapterFile(t, gguftest.Adapter(tt.arch, alpha, zero(q+".lora_a", qd[0], 4), zero(q+".lora_b", 4, qd[1]),
				zero(embd+".lora_a", 4, ed[1]), zero(embd+".lora_b", 4, ed[0])))
			p, err := New(f, Options{Adapters: []Adapter{{Name: "one", File: file}}})
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, op := range p.Ops {
				o, ok := op.(*ops.LowRank)
				if !ok {
					continue
				}
				want := factor
				if o.ByToken && tt.scaled {
					want *= math.Sqrt(float64(ed[0]))
				}
				if math.Abs(float64(o.Factor)-want) > 1e-6*want {
					t.Errorf("%s, alpha %v: factor %v of %s, want %v", tt.model, alpha, o.Factor, o.A.Name, want)
				}
				found = append(found, o.A.Name)
			}
			want := []string{embd + ".lora_a", q + ".lora_a"}
			if tt.tied {
				want = append(want, embd+".lora_b transposed")
			}
			if !slices.Equal(found, want) {
				t.Errorf("%s: updates %v, want %v", tt.model, found, want)
			}
		}
	}
}

func TestIgnoredTensors(t *testing.T) {
	file := adapterFile(t, gguftest.Adapter("llama", 8, zero("x.weight.lora_a", 4, 4), zero("x.weight.lora_b", 4, 4), zero("blk.0.attn_norm.weight", 4)))
	if got := IgnoredTensors(file); !slices.Equal(got, []string{"blk.0.attn_norm.weight"}) {
		t.Errorf("ignored %v", got)
	}
}

// oneMore is a model file with one more tensor.
type oneMore struct {
	*gguf.File
	extra gguf.Tensor
	data  []byte
}

func (f oneMore) Tensor(name string) (gguf.Tensor, bool) {
	if name == f.extra.Name {
		return f.extra, true
	}
	return f.File.Tensor(name)
}

func (f oneMore) Data(t gguf.Tensor) ([]byte, error) {
	if t.Name == f.extra.Name {
		return f.data, nil
	}
	return f.File.Data(t)
}

// Experts with scales of their own: the reference adds the update to what they scale,
// which the operation that scales them comes too late for.
func TestAdapterOfScaledExpertsIsRefused(t *testing.T) {
	f := modelFile(t, "llama-moe")
	const down = "blk.1.ffn_down_exps.weight"
	d := dims(t, f, down)
	file := adapterFile(t, gguftest.Adapter("llama", 8, zero(down+".lora_a", d[0], 2, d[2]), zero(down+".lora_b", 2, d[1], d[2])))
	o := Options{Adapters: []Adapter{{Name: "one", File: file}}}
	if _, err := New(f, o); err != nil {
		t.Errorf("without scales: %v", err)
	}
	scaled := oneMore{f, gguf.Tensor{Name: "blk.1.ffn_down_exps.scale", Type: tensor.F32, Dims: []int{d[2]}, Bytes: int64(4 * d[2])}, make([]byte, 4*d[2])}
	if _, err := New(scaled, Options{}); err != nil {
		t.Errorf("without an adapter: %v", err)
	}
	if _, err := New(scaled, o); err == nil || !strings.Contains(err.Error(), `tensor "blk.1.ffn_down_exps.weight.lora_a": experts with scales of their own`) {
		t.Errorf("error %v", err)
	}
}
