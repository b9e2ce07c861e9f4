package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
)

// metamorphicModels have between them every kind of cache and state: full and sliding
// windows, chunks, shared layers, experts, recurrent layers beside attention and alone.
// Those whose family is not built in are left out.
var metamorphicModels = []string{
	"gemma3-dense", "llama-moe", "qwen3-dense", "gpt-oss-moe", "cohere2-dense", "gemma2-dense", "gemma4-shared-kv",
	"llama4-moe", "lfm2-dense", "mamba2-dense", "qwen35-dense", "granitehybrid-moe", "falcon-h1-dense", "deepseek2-moe",
}

// A request gets the same bits whatever its company, however it is cut into batches,
// with one thread or more, cold or from the cache, and after tokens were taken back;
// in exact mode and in fast mode.
func TestMetamorphic(t *testing.T) {
	seed := uint64(1) // the same draws at each run; GANGLION_SEED=N gives others
	if s := os.Getenv("GANGLION_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GANGLION_SEED=%d", seed)
	set := archtest.Golden(t)
	var names []string
	for _, e := range set.Entries {
		if slices.Contains(metamorphicModels, e.Name) && slices.Contains(model.Architectures(), e.Arch) {
			names = append(names, e.Name)
		}
	}
	if len(names) < 4 {
		t.Fatalf("%d models: %v", len(names), names)
	}
	for i, name := range names {
		for j, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
			t.Run(name+"/"+numerics.String(), func(t *testing.T) {
				w := newWorld(t, set.Path(t, name), numerics, rand.New(rand.NewPCG(seed, uint64(2*i+j))), nil)
				reused, draws := 0, (metamorphicDraws+2*len(names)-1)/(2*len(names))
				for n := range draws {
					if err := w.draw(); err != nil {
						t.Fatalf("draw %d: %v", n, err)
					}
					reused += w.cached
				}
				if reused == 0 && !w.recurrent && draws >= 20 {
					t.Error("no draw found anything in the cache")
				}
			})
		}
	}
}

// The partner of TestMetamorphic: a run that reads another sequence's page, or one
// that does not go back to an older state, is found.
func TestMetamorphicCatchesAWrongPage(t *testing.T) {
	set := archtest.Golden(t)
	for _, name := range []string{"gemma3-dense", "llama-moe"} {
		w := newWorld(t, set.Path(t, name), ops.Exact, rand.New(rand.NewPCG(1, 2)), func(b *ops.Batch) {
			b.Pages = slices.Clone(b.Pages)
			for i, page := range b.Pages {
				if page > 0 && int(b.Pos[0]) >= ops.PageSize { // the second page is the first
					b.Pages[i] = page - 1
				}
			}
		})
		var err error
		for n := 0; n < 30 && err == nil; n++ {
			err = w.draw()
		}
		if err == nil {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

const (
	metamorphicContext    = 320
	metamorphicNeighbours = 8
)

// world is one model in one mode: engines with one thread and more, and the truth.
type world struct {
	t         testing.TB
	r         *rand.Rand
	plain     *engine.Engine // one slot, always cold, all rows in one batch
	engines   []*engine.Engine
	recurrent bool
	texts     [][]int32 // beginnings that requests share
	truths    map[string][][]float32
	cold      uint64 // salts that nobody used yet
	cached    int    // tokens that the last draw found in the cache
}

func newWorld(t testing.TB, path string, numerics ops.Numerics, r *rand.Rand, spoil func(*ops.Batch)) *world {
	w := &world{t: t, r: r, truths: map[string][][]float32{}, cold: 1 << 32}
	c := engine.Config{Path: path, Numerics: numerics, Context: metamorphicContext, MaxRows: metamorphicContext}
	c.Slots, c.Threads, c.CacheTokens = 1, 1, -1
	w.plain = open(t, "cpu", c)
	c.Slots, c.CacheTokens, c.SnapshotBytes = 1+metamorphicNeighbours, 0, 8<<20
	for threads := 1; threads <= 3; threads++ {
		c.Threads = threads
		b, err := cpu.New(cpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c.Backend = spoiling{b, spoil}
		e, err := engine.Open(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close(); b.Close() })
		w.engines = append(w.engines, e)
	}
	w.recurrent = w.plain.Recurrent()
	for range 4 {
		w.texts = append(w.texts, w.tokens(150))
	}
	return w
}

func (w *world) tokens(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(3 + w.r.IntN(w.plain.Info().Vocab-3))
	}
	return ids
}

// text draws a sequence that begins as another one may.
func (w *world) text() []int32 {
	shared := w.texts[w.r.IntN(len(w.texts))]
	return slices.Concat(shared[:w.r.IntN(len(shared)+1)], w.tokens(1+w.r.IntN(12)))
}

// truth is every row of logits of a sequence that runs alone.
func (w *world) truth(tokens []int32) [][]float32 {
	key := fmt.Sprint(tokens)
	rows, ok := w.truths[key]
	if !ok {
		for part := range slices.Chunk(allLogits(w.t, w.plain, tokens, 64), w.plain.Info().Vocab) {
			rows = append(rows, part)
		}
		w.truths[key] = rows
	}
	return rows
}

// request is one sequence of a draw.
type request struct {
	slot, fed, chunk int
	tokens           []int32
	guesses          int // tokens to run and take back, 0: none
	guessed          bool
	check            bool
}

// draw runs one request beside others and compares its rows with the truth.
func (w *world) draw() error {
	e := w.engines[w.r.IntN(len(w.engines))]
	chunks := []int{1, 7, 64, 512}
	var all []*request
	for i := range 1 + w.r.IntN(metamorphicNeighbours+1) {
		q := &request{tokens: w.text(), chunk: chunks[w.r.IntN(len(chunks))], check: i == 0}
		if !q.check { // its rows cost time and tell nothing
			q.tokens, q.chunk = q.tokens[:min(len(q.tokens), 70)], chunks[1+w.r.IntN(3)]
		}
		if w.r.IntN(2) == 0 {
			q.guesses = 1 + w.r.IntN(20)
		}
		salt := uint64(0)
		if w.r.IntN(3) == 0 {
			w.cold++
			salt = w.cold
		}
		var ok bool
		if q.slot, q.fed, ok = e.Acquire(q.tokens, salt); !ok {
			return fmt.Errorf("no slot for request %d", i)
		}
		if i == 0 {
			w.cached = q.fed
		}
		defer e.Release(q.slot)
		all = append(all, q)
	}
	target := all[0]
	for target.fed < len(target.tokens) {
		order := w.r.Perm(len(all))
		var running []*request
		for _, i := range order {
			if all[i].fed < len(all[i].tokens) {
				running = append(running, all[i])
			}
		}
		if err := w.step(e, running); err != nil {
			return err
		}
		if err := w.guess(e, target); err != nil {
			return err
		}
	}
	return nil
}

// step runs the next rows of requests in one batch.
func (w *world) step(e *engine.Engine, running []*request) error {
	var rows []engine.Row
	var wants []int // positions of the target's wanted rows
	var target *request
	room := e.Info().MaxRows
	for i, q := range running {
		n := min(q.chunk, len(q.tokens)-q.fed, room-(len(running)-1-i))
		for k := range n {
			last := q.fed+k == len(q.tokens)-1
			row := engine.Row{Slot: q.slot, Token: q.tokens[q.fed+k], Want: last || (q.check && k == n-1)}
			if row.Want {
				row.Read.Kind = ops.WantRow
			}
			if q.check && row.Want {
				wants, target = append(wants, q.fed+k), q
			}
			rows = append(rows, row)
		}
		room -= n
		q.fed += n
	}
	heads, err := e.Run(rows)
	if err != nil {
		return err
	}
	at := 0
	for _, r := range rows {
		if !r.Want {
			continue
		}
		if target != nil && r.Slot == target.slot {
			if err := sameRow(heads[at].Row, w.truth(target.tokens)[wants[0]]); err != nil {
				return fmt.Errorf("%d of %d tokens cached, chunks of %d, position %d, beside %d: %w",
					w.cached, len(target.tokens), target.chunk, wants[0], len(running)-1, err)
			}
			wants = wants[1:]
		}
		at++
	}
	return nil
}

// guess runs tokens that do not belong to the request and takes them back.
func (w *world) guess(e *engine.Engine, q *request) error {
	if q.guesses == 0 || q.guessed || w.r.IntN(3) > 0 || q.fed+q.guesses > e.Info().Context {
		return nil
	}
	q.guessed = true
	if w.r.IntN(2) == 0 {
		if err := e.Mark(q.slot); err != nil {
			return err
		}
	}
	var rows []engine.Row
	for _, id := range w.tokens(q.guesses) {
		rows = append(rows, engine.Row{Slot: q.slot, Token: id})
	}
	if _, err := e.Run(rows); err != nil {
		return err
	}
	back := q.fed - w.r.IntN(min(q.fed, 40))
	kept, err := e.Truncate(q.slot, back)
	if err != nil || kept > back {
		return fmt.Errorf("truncate to %d: kept %d, error %v", back, kept, err)
	}
	q.fed = kept
	return nil
}

func sameRow(got, want []float32) error {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return fmt.Errorf("logit %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}

// spoiling is a backend whose batches are changed before they run.
type spoiling struct {
	ops.Backend
	spoil func(*ops.Batch) // nil: they are not
}

func (b spoiling) Load(ctx context.Context, p *ops.Plan, o ops.Options, f func(done, total int64)) (ops.Runtime, error) {
	r, err := b.Backend.Load(ctx, p, o, f)
	if err != nil || b.spoil == nil {
		return r, err
	}
	return spoilingRuntime{r, b.spoil}, nil
}

type spoilingRuntime struct {
	ops.Runtime
	spoil func(*ops.Batch)
}

func (r spoilingRuntime) Compile(s ops.Shape) (ops.Program, error) {
	p, err := r.Runtime.Compile(s)
	return spoilingProgram{p, r.spoil}, err
}

type spoilingProgram struct {
	ops.Program
	spoil func(*ops.Batch)
}

func (p spoilingProgram) Run(b *ops.Batch, r *ops.Result) error {
	changed := *b
	p.spoil(&changed)
	return p.Program.Run(&changed, r)
}
