package model

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cputime"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tensor"
)

// What a faulty file may cost: time to build and to run one token, and memory
// allocated by New. The models have 2 to 7 layers and build in well under 10 ms.
const (
	faultTime   = 10 * time.Second
	faultMemory = 256 << 20
	faultCache  = 1 << 30 // KV bytes beyond which a plan is not loaded; the engine's forecast refuses it
)

// notFinite matches the error of a run whose logits are not numbers.
var notFinite = regexp.MustCompile(`logit of token \d+ is [+-]?(NaN|Inf)`)

// faultNames matches an error that names a key or a tensor.
var faultNames = regexp.MustCompile(`keys? "[^"]+"|(tensor|weight) "[^"]+"`)

// smallest is the file of the smallest golden model of each architecture the package
// knows. An architecture without one fails the test.
func smallest(t *testing.T) map[string]string {
	files, sizes := map[string]string{}, map[string]int64{}
	for _, set := range []*archtest.Set{archtest.Golden(t), archtest.Variants(t)} {
		for _, e := range set.Entries {
			st, err := os.Stat(set.Path(t, e.Name))
			if err != nil {
				t.Fatal(err)
			}
			if files[e.Arch] == "" || st.Size() < sizes[e.Arch] {
				files[e.Arch], sizes[e.Arch] = set.Path(t, e.Name), st.Size()
			}
		}
	}
	for _, arch := range Architectures() {
		if files[arch] == "" {
			t.Fatalf("%s has no golden model", arch)
		}
	}
	return files
}

// outcome runs New on a changed file, and the plan when there is one, and tells what
// is wrong with the outcome; "" when all is well. says are words of which an error
// must have one.
// refused tells that there must be an error; a plan equal to runs, if not nil, is
// known to run.
func outcome(f Source, refused bool, runs *ops.Plan, says ...string) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			stack := make([]byte, 4096)
			wrong = fmt.Sprintf("panic: %v\n%s", r, stack[:runtime.Stack(stack, false)])
		}
	}()
	start := cputime.Used()
	before := allocated()
	p, err := New(f, Options{Context: 64})
	if n := allocated() - before; n > faultMemory {
		return fmt.Sprintf("New allocates %d MiB", n>>20)
	}
	if err != nil {
		if !faultNames.MatchString(err.Error()) && !slices.ContainsFunc(says, func(s string) bool { return strings.Contains(err.Error(), s) }) {
			return fmt.Sprintf("error %q names no key and no tensor", err)
		}
	} else if refused {
		return "is taken"
	} else if reflect.DeepEqual(p, runs) {
		return ""
	} else if err := oneToken(p); err != nil {
		return fmt.Sprintf("a plan is made, but: %v", err)
	}
	if d := cputime.Used() - start; d > faultTime {
		return fmt.Sprintf("takes %v of a processor", d)
	}
	return ""
}

// allocated is how many bytes the program has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// oneToken runs token 1 at position 0 on ref. Values that are not finite are an
// honest answer to weights that make them.
func oneToken(p *ops.Plan) error {
	o := ops.Options{Slots: 1, Context: 64, MaxRows: 1, Numerics: ops.Exact, Threads: 1}
	if p.KVBytes(o) > faultCache {
		return nil
	}
	b := ref.New()
	defer b.Close()
	r, err := b.Load(context.Background(), p, o, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	prog, err := r.Compile(ops.Shape{Rows: 1, Outs: 1})
	if err != nil {
		return err
	}
	defer prog.Close()
	pages := make([]int32, ops.NewPaging(p, o).Entries()) // one sequence on one page: all are page 0
	batch := &ops.Batch{Pages: pages, Tokens: []int32{1}, Pos: []int32{0}, Slot: []int32{0}, Outs: []int32{0}, Want: []ops.Want{{}}}
	var res ops.Result
	if err := prog.Run(batch, &res); err != nil && !notFinite.MatchString(err.Error()) {
		return err
	}
	return nil
}

// keyFaults are the values a key gets, by name. An absent key is a nil value.
func keyFaults(v gguf.Value) map[string]any {
	all := map[string]any{
		"0": uint64(0), "1": uint64(1), "-1": int64(-1), "max": uint64(math.MaxUint64),
		"NaN": math.NaN(), "1e30": 1e30, "0.5": 0.5, "-0.5": -0.5,
		"missing": nil, "true": true, "text": "gpt", "none": []int64{}, "one": []int64{1}, "texts": []string{"a"},
	}
	if v.Type == gguf.Array {
		for name, x := range map[string]int64{"0": 0, "-1": -1, "max": math.MaxInt64, "7": 7} {
			all["all "+name] = slices.Repeat([]int64{x}, v.Len)
			all["first "+name] = append([]int64{x}, slices.Repeat([]int64{1}, max(v.Len-1, 0))...)
		}
		all["all NaN"] = slices.Repeat([]float32{float32(math.NaN())}, v.Len)
	}
	return all
}

// eachArchitecture gives a test the smallest model of each architecture, what New
// asks of it, so that no key is forgotten, and the plan of the sound file.
func eachArchitecture(t *testing.T, test func(t *testing.T, f *gguf.File, asked *audit, base *ops.Plan)) {
	models := smallest(t)
	for i, arch := range Architectures() {
		if i%faultStep != 0 {
			continue
		}
		t.Run(arch, func(t *testing.T) {
			f, err := gguf.Open(models[arch])
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			asked := newAudit(f)
			base, err := New(asked, Options{Context: 64})
			if err != nil {
				t.Fatal(err)
			}
			test(t, f, asked, base)
		})
	}
}

// Every key a family reads, with every fault: the file is refused by name, or the
// plan runs.
func TestKeyFaults(t *testing.T) {
	eachArchitecture(t, func(t *testing.T, f *gguf.File, asked *audit, base *ops.Plan) {
		for _, key := range slices.Sorted(maps.Keys(asked.asked)) {
			if strings.HasPrefix(key, "tokenizer.") {
				continue
			}
			v, _ := f.Value(key)
			table := keyFaults(v)
			for _, name := range slices.Sorted(maps.Keys(table)) {
				if wrong := outcome(patch{Source: f, key: key, value: table[name]}, name == "NaN" || name == "texts", base, "general.architecture", "unknown architecture"); wrong != "" {
					t.Errorf("%s = %s: %s", key, name, wrong)
				}
			}
		}
	})
}

// tensorFaults are the changes made to a tensor, by name.
var tensorFaults = map[string]func(t *gguf.Tensor, data *[]byte){
	"missing":    func(t *gguf.Tensor, _ *[]byte) { t.Name = "" },
	"transposed": func(t *gguf.Tensor, _ *[]byte) { slices.Reverse(t.Dims) },
	"short": func(t *gguf.Tensor, data *[]byte) { // by one in the last dimension
		last := len(t.Dims) - 1
		*data = (*data)[:len(*data)/t.Dims[last]*(t.Dims[last]-1)]
		t.Dims[last]--
	},
	"whole numbers": func(t *gguf.Tensor, _ *[]byte) { t.Type = tensor.I32 },
	"4-D":           func(t *gguf.Tensor, _ *[]byte) { t.Dims = append(slices.Repeat([]int{1}, 3), t.Cols()*t.Rows()) },
	"4-D, last": func(t *gguf.Tensor, data *[]byte) {
		t.Dims, *data = []int{t.Cols(), t.Rows(), 1, 2}, slices.Repeat(*data, 2)
	},
	"empty": func(_ *gguf.Tensor, data *[]byte) { *data = nil },
	"NaN": func(_ *gguf.Tensor, data *[]byte) {
		*data = slices.Repeat([]byte{0xff}, len(*data))
	},
}

// needed tells whether no family can do without a weight of a layer.
func needed(name string) bool {
	layer, ok := strings.CutPrefix(name, "blk.0.")
	return ok && strings.HasSuffix(layer, ".weight") && !dispensable[layer]
}

// dispensable are weights of a layer that some family can do without.
var dispensable = map[string]bool{
	"attn_norm_2.weight":        true, // Falcon 7B
	"ffn_norm.weight":           true, // StableLM 12B
	"attn_q_norm.weight":        true, // StableLM, LLaMA's relatives by presence
	"attn_k_norm.weight":        true,
	"attn_sinks.weight":         true,
	"ssm_norm.weight":           true, // Falcon-H1
	"attn_v.weight":             true, // Gemma 4, whose values may be the keys
	"attn_qkv.weight":           true, // Qwen3-Next, whose older files have ssm_in
	"layer_output_scale.weight": true,
}

// Every tensor with every fault: refused by name, or optional.
func TestTensorFaults(t *testing.T) {
	eachArchitecture(t, func(t *testing.T, f *gguf.File, whole *audit, base *ops.Plan) {
		for _, tt := range f.Tensors() {
			for _, name := range slices.Sorted(maps.Keys(tensorFaults)) {
				if wrong := outcome(patchTensor(f, tt.Name, tensorFaults[name]), name == "missing" && whole.read[tt.Name] && needed(tt.Name), base); wrong != "" {
					t.Errorf("%s %s: %s", tt.Name, name, wrong)
				}
			}
		}
	})
}

// The table's own guard: faults that are let through are found.
func TestFaultsAreSeen(t *testing.T) {
	models := smallest(t)
	f, err := gguf.Open(models["llama"])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if wrong := outcome(f, false, nil); wrong != "" {
		t.Errorf("the model itself: %s", wrong)
	}
	for name, src := range map[string]Source{
		"an error without a name": patch{Source: f, key: "general.architecture", value: "x"},
		"a panic":                 patch{Source: f, key: "llama.block_count", value: panicking{}},
	} {
		if wrong := outcome(src, false, nil); wrong == "" {
			t.Errorf("%s is not seen", name)
		}
	}
	p, err := New(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Ops = p.Ops[1:]
	if oneToken(p) == nil {
		t.Error("a plan without its first operation runs")
	}
}
