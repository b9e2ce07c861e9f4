package builtin

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
)

// row is logits in JSON, with null for minus infinity.
type row []float32

func (r *row) UnmarshalJSON(b []byte) error {
	var v []*float32
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	for _, p := range v {
		if p == nil {
			*r = append(*r, float32(math.Inf(-1)))
		} else {
			*r = append(*r, *p)
		}
	}
	return nil
}

type step struct {
	Logits        row
	Size          int // candidates that stayed
	Token         uint32
	Probabilities []float64
}

type oracleCase struct {
	Name        string
	Config      map[string]any
	Logits      row
	Kept        []uint32
	Temperature float64
	Vocab       int
	Steps       []step
	History     []uint32
	Penalties   map[string]float64
}

type oracleFile struct {
	Cases   []oracleCase
	Pieces  map[string]string
	Encoded map[string][]uint32
}

func readOracle(t *testing.T, name string) oracleFile {
	t.Helper()
	b, err := os.ReadFile("testdata/llama.cpp/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var f oracleFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// each runs the cases of a file as subtests.
func each(t *testing.T, name string, run func(t *testing.T, c oracleCase)) {
	for i, c := range readOracle(t, name).Cases {
		t.Run(fmt.Sprintf("%d %s", i, c.Name), func(t *testing.T) { run(t, c) })
	}
}

// survivors lists the tokens that a truncating plugin leaves, in order of id.
func survivors(g *guest, logits row) []uint32 {
	left := map[uint32]bool{}
	for i, l := range logits {
		left[uint32(i)] = !math.IsInf(float64(l), -1)
	}
	if g != nil {
		g.distribution(logits, len(logits))
		actions := g.call("logits")
		if actions&4 != 0 {
			clear(left)
			for _, id := range g.candidates() {
				left[id] = true
			}
		}
		if actions&1 != 0 {
			for _, e := range g.edits() {
				left[e.id] = false
			}
		}
	}
	ids := []uint32{}
	for id, in := range left {
		if in {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// values are the sorted logits of tokens. Among equal logits llama.cpp keeps the ones that
// its sorting happens to put first, so what must agree is which values stay.
func values(logits row, ids []uint32) []float32 {
	var v []float32
	for _, id := range ids {
		v = append(v, logits[id])
	}
	slices.Sort(v)
	return v
}

// TestTruncationAsInLlamaCpp: same candidates in, same tokens out.
func TestTruncationAsInLlamaCpp(t *testing.T) {
	for _, name := range []string{"min-p", "top-nsigma", "typical", "xtc"} {
		t.Run(name, func(t *testing.T) {
			each(t, name, func(t *testing.T, c oracleCase) {
				g := newGuest(t, name, c.Config, &vocabulary{size: len(c.Logits)})
				if got := survivors(g, c.Logits); !slices.Equal(values(c.Logits, got), values(c.Logits, c.Kept)) {
					t.Errorf("config %v: got %d tokens %v, want %d %v", c.Config, len(got), got, len(c.Kept), c.Kept)
				}
			})
		})
	}
}

func TestTemperatureAsInLlamaCpp(t *testing.T) {
	each(t, "dynatemp", func(t *testing.T, c oracleCase) {
		g := newGuest(t, "dynatemp", c.Config, &vocabulary{size: len(c.Logits)})
		g.distribution(c.Logits, len(c.Logits))
		g.putFloat(0x98, 1)
		g.call("logits")
		got := float64(math.Float32frombits(g.get(0x98)))
		if len(c.Logits) == 1 {
			return // llama.cpp leaves a single token as it is
		}
		// The oracle's probabilities are float32, so its entropy is off by some 1e-7 per
		// token near 1, which the widest range of the cases triples.
		if diff := math.Abs(got - c.Temperature); diff > 1e-6+2e-5*c.Temperature {
			t.Errorf("config %v: got temperature %v, want %v, off by %v", c.Config, got, c.Temperature, diff)
		}
	})
}

// interval returns a random word from the middle of a token's share of the numbers, given
// weights in the order in which the plugin adds them.
func interval(weights []float64, i int) uint32 {
	sum, before := 0.0, 0.0
	for k, w := range weights {
		sum += w
		if k < i {
			before += w
		}
	}
	return uint32((before + weights[i]/2) / sum * (1 << 32))
}

// TestMirostatAsInLlamaCpp walks through runs of steps: at each the plugin must keep as
// many tokens, and with the random number that llama.cpp's choice stands for it must make
// the same choice, which moves mu for the next step.
func TestMirostatAsInLlamaCpp(t *testing.T) {
	for _, name := range []string{"mirostat", "mirostat2"} {
		t.Run(name, func(t *testing.T) {
			each(t, name, func(t *testing.T, c oracleCase) {
				delete(c.Config, "n_vocab")
				g := newGuest(t, name, c.Config, &vocabulary{size: max(c.Vocab, 128)})
				for k, s := range c.Steps {
					g.distribution(s.Logits, len(s.Logits))
					ids := g.candidates()
					var weights []float64
					for _, id := range ids[:s.Size] {
						weights = append(weights, math.Exp(float64(s.Logits[id]-s.Logits[ids[0]])))
					}
					g.put(0xA0, math.MaxUint32)
					g.attempt("choose", func() {
						if got, want := g.get(0xC0), ids[s.Size-1]; got != want {
							t.Fatalf("step %d: last token that stays is %d, rank %d of %d, want rank %d", k, got, slices.Index(ids, got), len(ids), s.Size-1)
						}
					})
					g.put(0xA0, interval(weights, slices.Index(ids, s.Token)))
					g.call("choose")
					if got := g.get(0xC0); got != s.Token {
						t.Fatalf("step %d: got token %d, want %d", k, got, s.Token)
					}
				}
			})
		})
	}
}

// TestAdaptivePAsInLlamaCpp: the plugin's shares of the random numbers are the oracle's
// probabilities, step after step.
func TestAdaptivePAsInLlamaCpp(t *testing.T) {
	each(t, "adaptive-p", func(t *testing.T, c oracleCase) {
		g := newGuest(t, "adaptive-p", c.Config, &vocabulary{size: 128})
		for k, s := range c.Steps {
			g.distribution(s.Logits, len(s.Logits))
			ids := g.candidates()
			var weights []float64
			for _, id := range ids {
				weights = append(weights, s.Probabilities[id])
			}
			for i, id := range ids {
				if weights[i] < 1e-4 {
					continue
				}
				g.put(0xA0, interval(weights, i))
				g.attempt("choose", func() {
					if got := g.get(0xC0); got != id {
						t.Fatalf("step %d: rank %d: got token %d, want %d", k, i, got, id)
					}
				})
			}
			g.put(0xA0, interval(weights, slices.Index(ids, s.Token)))
			g.call("choose")
			if got := g.get(0xC0); got != s.Token {
				t.Fatalf("step %d: got token %d, want %d", k, got, s.Token)
			}
			g.call("accept")
		}
	})
}

func TestRepetitionAsInLlamaCpp(t *testing.T) {
	f := readOracle(t, "dry")
	v := &vocabulary{size: 262144, pieces: map[uint32]string{}, encoded: f.Encoded}
	number := func(s string) uint32 {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	for id, piece := range f.Pieces {
		v.pieces[number(id)] = piece
	}
	found := 0
	for i, c := range f.Cases {
		t.Run(fmt.Sprintf("%d %s", i, c.Name), func(t *testing.T) {
			g := newGuest(t, "dry", c.Config, v)
			g.history(c.History)
			g.call("plan")
			got, want := map[uint32]float64{}, map[uint32]float64{}
			for _, e := range g.edits() {
				got[e.id] = -float64(e.value)
			}
			for id, p := range c.Penalties {
				want[number(id)] = p
				found++
			}
			for id := range got {
				if _, ok := want[id]; !ok {
					t.Errorf("config %v: token %d %q: got penalty %v, want none", c.Config, id, v.pieces[id], got[id])
				}
			}
			for id, p := range want {
				if math.Abs(got[id]-p) > 2e-6*p {
					t.Errorf("config %v: token %d %q: got penalty %v, want %v", c.Config, id, v.pieces[id], got[id], p)
				}
			}
		})
	}
	if found < 50 {
		t.Errorf("the cases hold %d penalties", found)
	}
}
