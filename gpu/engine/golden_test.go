package engine_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// backends under test, by name.
var backends = map[string]func(t testing.TB) ops.Backend{
	"ref": func(testing.TB) ops.Backend { return ref.New() },
	"cpu": func(t testing.TB) ops.Backend {
		b, err := cpu.New(cpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	},
}

// open loads a model on a backend and closes both at the end of the test.
func open(t testing.TB, backend string, c engine.Config) *engine.Engine {
	t.Helper()
	c.Backend = backends[backend](t)
	t.Cleanup(func() { c.Backend.Close() })
	e, err := engine.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// eachRow runs tokens from a cold slot in chunks and calls see with every row of
// logits and its log-sum-exp; the row is valid during the call.
func eachRow(t testing.TB, e *engine.Engine, tokens []int32, chunk int, see func(pos int, row []float32, lse float64)) {
	t.Helper()
	slot, _, ok := e.Acquire([]int32{-1, -1}, 0)
	if !ok {
		t.Fatal("no free slot")
	}
	defer e.Release(slot)
	for at := 0; at < len(tokens); at += chunk {
		var rows []engine.Row
		for _, id := range tokens[at:min(at+chunk, len(tokens))] {
			rows = append(rows, engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range heads {
			see(at+i, h.Row, float64(h.LogSumExp))
		}
	}
}

// allLogits is every row of logits.
func allLogits(t testing.TB, e *engine.Engine, tokens []int32, chunk int) (out []float32) {
	t.Helper()
	eachRow(t, e, tokens, chunk, func(_ int, row []float32, _ float64) { out = append(out, row...) })
	return out
}

// Every architecture gives the reference's logits within its own bounds, and the
// same bits on every backend in exact mode.
func TestArchitectures(t *testing.T) { followsReference(t, archtest.Golden(t)) }

// So do files that differ from the plain ones.
func TestArchitectureVariants(t *testing.T) { followsReference(t, archtest.Variants(t)) }

func followsReference(t *testing.T, set *archtest.Set) {
	for _, entry := range set.Entries {
		t.Run(entry.Name, func(t *testing.T) {
			want := set.Want(t, entry)
			exact := map[string][]float32{}
			for _, run := range []struct {
				backend  string
				numerics ops.Numerics
				bound    float64
			}{
				{"ref", ops.Exact, entry.MaxExact},
				{"cpu", ops.Exact, entry.MaxExact},
				{"cpu", ops.Fast, entry.MaxFast},
			} {
				t.Run(run.backend+"/"+run.numerics.String(), func(t *testing.T) {
					e := open(t, run.backend, engine.Config{Path: set.Path(t, entry.Name), Numerics: run.numerics, Threads: 2, Context: 256, Slots: 1})
					got := allLogits(t, e, set.Tokens, len(set.Tokens))
					if len(got) != len(want) {
						t.Fatalf("%d logits, want %d", len(got), len(want))
					}
					d := archtest.NMSE(got, want)
					t.Logf("NMSE %.3g, bound %.3g", d, run.bound)
					if !(d <= run.bound) {
						t.Errorf("NMSE %.3g, bound %.3g", d, run.bound)
					}
					if run.numerics == ops.Exact {
						exact[run.backend] = got
					}
				})
			}
			if ref, cpu := exact["ref"], exact["cpu"]; ref != nil && cpu != nil {
				same(t, cpu, ref, "exact mode on cpu, pass", 1)
			}
		})
	}
}

// The partner of TestArchitectures: a plan that is wrong in one place is caught.
func TestArchitectureBoundsCatchAWrongModel(t *testing.T) {
	set := archtest.Golden(t)
	e := open(t, "ref", engine.Config{Path: set.Path(t, "llama-dense"), Numerics: ops.Exact})
	got := allLogits(t, e, set.Tokens, len(set.Tokens))
	if d := archtest.NMSE(got, set.Want(t, set.Find(t, "llama-rope-linear"))); d <= 1e-3 {
		t.Errorf("NMSE %.3g against another model's logits, want it far above the bounds", d)
	}
}

// Cutting a prompt into batches does not change a bit, on any backend.
func TestChunksGiveTheSameBits(t *testing.T) {
	set := archtest.Golden(t)
	for _, file := range []string{"gemma3-dense", "llama-moe", "qwen3-dense"} {
		for _, run := range []struct {
			backend  string
			numerics ops.Numerics
		}{{"ref", ops.Exact}, {"cpu", ops.Exact}, {"cpu", ops.Fast}} {
			t.Run(file+"/"+run.backend+"/"+run.numerics.String(), func(t *testing.T) {
				e := open(t, run.backend, engine.Config{Path: set.Path(t, file), Numerics: run.numerics, Threads: 2})
				whole := allLogits(t, e, set.Tokens, len(set.Tokens))
				for _, chunk := range []int{1, 7, 16} {
					same(t, allLogits(t, e, set.Tokens, chunk), whole, "chunk", chunk)
				}
			})
		}
	}
}

func same(t *testing.T, got, want []float32, what string, n int) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s %d: value %d is %v, want %v", what, n, i, got[i], want[i])
			return
		}
	}
}
