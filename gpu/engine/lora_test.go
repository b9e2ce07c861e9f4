package engine_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/gguf"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// lora is a random adapter of a model, and what merging it into the weights needs.
type lora struct {
	path  string
	alpha float64
	pairs map[string]factors
}

// factors are one weight's update. a: [experts, rank, cols], b: [experts, rows, rank];
// of a table a is [vocab, rank] and b [width, rank].
type factors struct {
	rank, cols, rows, experts int
	table                     bool
	a, b                      []float32
}

// newLoRA writes an adapter of the weights that wanted names.
func newLoRA(t testing.TB, model string, seed uint64, rank int, typ tensor.Type, wanted func(name string) bool) lora {
	t.Helper()
	f, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(seed, 7))
	l := lora{path: filepath.Join(t.TempDir(), "adapter.gguf"), alpha: float64(2 * rank), pairs: map[string]factors{}}
	var tensors []gguftest.Tensor
	for _, w := range f.Tensors() {
		if len(w.Dims) < 2 || !wanted(w.Name) {
			continue
		}
		p := factors{rank: rank, cols: w.Dims[0], rows: w.Dims[1], experts: 1, table: strings.HasSuffix(w.Name, "token_embd.weight")}
		if len(w.Dims) == 3 {
			p.experts = w.Dims[2]
		}
		aDims, bDims := []int{p.cols, rank}, []int{rank, p.rows}
		if p.table {
			aDims, bDims = []int{rank, p.rows}, []int{rank, p.cols}
		}
		if len(w.Dims) == 3 {
			aDims, bDims = append(aDims, p.experts), append(bDims, p.experts)
		}
		var a, b gguftest.Tensor
		a, p.a = randomTensor(t, r, w.Name+".lora_a", typ, aDims)
		b, p.b = randomTensor(t, r, w.Name+".lora_b", typ, bDims)
		tensors = append(tensors, a, b)
		l.pairs[w.Name] = p
	}
	if err := gguftest.Write(l.path, gguftest.Adapter(f.Architecture(), float32(l.alpha), tensors...)); err != nil {
		t.Fatal(err)
	}
	return l
}

// everyMatrix names all weights that have an update.
func everyMatrix(string) bool { return true }

// randomTensor draws a tensor; values are what the file says of it.
func randomTensor(t testing.TB, r *rand.Rand, name string, typ tensor.Type, dims []int) (gguftest.Tensor, []float32) {
	t.Helper()
	n := 1
	for _, d := range dims {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(r.NormFloat64() * 0.1)
	}
	data := encode(typ, values)
	if err := tensor.Dequantize(typ, values, data); err != nil {
		t.Fatal(err)
	}
	return gguftest.Tensor{Name: name, Type: typ, Dims: dims, Data: data}, values
}

// encode writes values in a type that is simple enough to quantise here.
func encode(typ tensor.Type, values []float32) []byte {
	var b []byte
	half := func(h uint16) { b = append(b, byte(h), byte(h>>8)) }
	switch typ {
	case tensor.F32:
		return gguftest.F32(values...)
	case tensor.F16:
		for _, v := range values {
			half(tensor.F32ToF16(v))
		}
	case tensor.BF16:
		for _, v := range values {
			half(tensor.F32ToBF16(v))
		}
	case tensor.Q8_0:
		for i := 0; i < len(values); i += 32 {
			const d = 0.005
			half(tensor.F32ToF16(d))
			for _, v := range values[i : i+32] {
				b = append(b, byte(int8(max(-127, min(127, math.Round(float64(v)/d))))))
			}
		}
	}
	return b
}

// delta is alpha/rank·B·A of a weight: [experts, rows, cols].
func (l lora) delta(name string) []float64 {
	p := l.pairs[name]
	out := make([]float64, p.experts*p.rows*p.cols)
	for i := range out {
		e, row, col := i/(p.rows*p.cols), i/p.cols%p.rows, i%p.cols
		for k := range p.rank {
			if p.table {
				out[i] += float64(p.a[row*p.rank+k]) * float64(p.b[col*p.rank+k])
			} else {
				out[i] += float64(p.b[(e*p.rows+row)*p.rank+k]) * float64(p.a[(e*p.rank+k)*p.cols+col])
			}
		}
		out[i] *= l.alpha / float64(p.rank)
	}
	return out
}

// merged writes a copy of a model whose weights hold the adapters at these scales:
// W + Σ scale·delta, added in float64, kept as float32. more tensors are added to the file.
func merged(t testing.TB, model string, adapters []lora, scales []float64, more ...gguftest.Tensor) string {
	t.Helper()
	f, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := gguftest.Model{KV: keysOf(t, f), Tensors: more}
	for _, w := range f.Tensors() {
		data, err := f.Data(w)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float32, w.Rows()*w.Cols())
		if err := tensor.Dequantize(w.Type, values, data); err != nil {
			t.Fatal(err)
		}
		sum := make([]float64, len(values))
		for i, v := range values {
			sum[i] = float64(v)
		}
		for i, l := range adapters {
			if _, ok := l.pairs[w.Name]; ok {
				for j, d := range l.delta(w.Name) {
					sum[j] += scales[i] * d
				}
			}
		}
		for i, s := range sum {
			values[i] = float32(s)
		}
		m.Tensors = append(m.Tensors, gguftest.Tensor{Name: w.Name, Type: tensor.F32, Dims: w.Dims, Data: gguftest.F32(values...)})
	}
	path := filepath.Join(t.TempDir(), "merged.gguf")
	if err := gguftest.Write(path, m); err != nil {
		t.Fatal(err)
	}
	return path
}

// keysOf copies a file's metadata.
func keysOf(t testing.TB, f *gguf.File) []gguftest.KV {
	t.Helper()
	var kv []gguftest.KV
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		x := valueOf(f, key, v)
		if x == nil {
			t.Fatalf("key %q has type %v of %v", key, v.Type, v.Elem)
		}
		kv = append(kv, gguftest.KV{Key: key, Value: x})
	}
	return kv
}

// valueOf is a value with the Go type that stands for its own; nil for the types that
// no test model uses.
func valueOf(f *gguf.File, key string, v gguf.Value) any {
	switch v.Elem {
	case gguf.String:
		if s, ok := f.Strings(key); ok {
			return s
		}
		s, _ := f.String(key)
		return s
	case gguf.Bool:
		if b, ok := f.Bools(key); ok {
			return b
		}
		b, _ := f.Bool(key)
		return b
	case gguf.Float32:
		if x, ok := f.Floats(key); ok {
			return x
		}
		x, _ := f.Float(key)
		return float32(x)
	case gguf.Uint32:
		if x, ok := f.Ints(key); ok {
			return narrow[uint32](x)
		}
		x, _ := f.Uint(key)
		return uint32(x)
	case gguf.Int32:
		if x, ok := f.Ints(key); ok {
			return narrow[int32](x)
		}
		x, _ := f.Int(key)
		return int32(x)
	}
	return nil
}

func narrow[T int32 | uint32](x []int64) []T {
	out := make([]T, len(x))
	for i, v := range x {
		out[i] = T(v)
	}
	return out
}
