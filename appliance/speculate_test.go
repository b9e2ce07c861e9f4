package appliance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// Guessing ahead may change no answer. The tests run random requests without guesses,
// one by one, and then with guesses and in company, and compare all that a client or
// the log can see.

// still is a clock that stands still: steps have no price then, so that every guess
// with good odds is run.
func still() time.Time { return time.Unix(1_000_000, 0) }

// guessing serves a model with one source of guesses.
func guessing(t testing.TB, m appliance.Model, from appliance.Speculation) *bench {
	t.Helper()
	log := &appliancetest.Recorder{}
	s, err := appliance.NewService(appliance.Config{Recorder: log, Logger: slog.New(slog.DiscardHandler), Now: still, Speculate: from, QueueMax: 100})
	if err != nil {
		t.Fatal(err)
	}
	s.Use(m)
	t.Cleanup(func() {
		if err := s.Close(within(t)); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &bench{Service: s, log: log}
}

// tiny opens a model of the engine's test data.
func tiny(t testing.TB, name string, numerics ops.Numerics) appliance.Model {
	t.Helper()
	dir := os.Getenv("GANGLION_ARCH_DIR")
	if dir == "" {
		dir = "../gpu/engine/testdata/arch"
	}
	b, err := gpu.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	e, err := engine.Open(context.Background(), engine.Config{
		Path: filepath.Join(dir, name+".gguf"), Backend: b, Numerics: numerics, Threads: 2, Context: 160, Slots: 3, MaxRows: 48,
	})
	if err != nil {
		t.Fatal(err)
	}
	return appliance.FromEngine(e)
}

// randomRequests draws requests that use every part of sampling and of the text flow.
// Prompts repeat themselves, for else there is little to guess.
func randomRequests(rng *rand.Rand, v appliance.Vocabulary, n int) []*appliance.Request {
	var out []*appliance.Request
	token := func() int32 {
		for {
			if id := rng.Int32N(int32(v.VocabSize())); !v.IsEOG(id) {
				return id
			}
		}
	}
	for range n {
		var phrase, prompt []int32
		for range 2 + rng.IntN(6) {
			phrase = append(phrase, token())
		}
		for range 1 + rng.IntN(5) {
			prompt = append(prompt, phrase...)
			if rng.IntN(3) == 0 {
				prompt = append(prompt, token())
			}
		}
		r := &appliance.Request{ID: appliance.NewID(), PromptTokens: prompt, Seed: ptr(rng.Int64N(1000)), MaxTokens: ptr(1 + rng.Int64N(60))}
		r.Temperature = ptr([]float64{0, 0, 0.2, 0.7, 1}[rng.IntN(5)])
		if rng.IntN(2) == 0 {
			r.TopK = ptr(1 + rng.Int64N(40))
		}
		if rng.IntN(3) == 0 {
			r.TopP = ptr(0.5 + rng.Float64()/2)
		}
		if rng.IntN(3) == 0 {
			r.MinP = ptr(rng.Float64() / 5)
		}
		if rng.IntN(3) == 0 {
			r.PresencePenalty, r.FrequencyPenalty = ptr(rng.Float64()*2-0.5), ptr(rng.Float64()-0.2)
		}
		for range rng.IntN(4) * rng.IntN(2) {
			id := int64(token())
			r.LogitBias = append(r.LogitBias, appliance.Bias{Key: fmt.Sprint(id), ID: id, Value: rng.Float64()*20 - 10})
		}
		for range rng.IntN(3) {
			if s := v.AppendPiece(nil, token(), false); len(s) > 0 && s[0] < 0x80 {
				r.Stop = append(r.Stop, string(s[:1]))
			}
		}
		r.Logprobs, r.TopLogprobs = rng.IntN(2) == 0, rng.IntN(4)*rng.IntN(2)
		r.Stream = rng.IntN(2) == 0
		out = append(out, r)
	}
	return out
}

// seen is what a client and the log see of one request, without times.
type seen struct {
	chunks []appliance.Chunk
	result appliance.Result
	record appliance.Record
}

// observe runs copies of requests, so many at a time, and returns what is seen of each.
func observe(t testing.TB, b *bench, requests []*appliance.Request, together int) []seen {
	t.Helper()
	out := make([]seen, len(requests))
	ctx := within(t)
	for at := 0; at < len(requests); at += together {
		group := requests[at:min(at+together, len(requests))]
		var running []*appliance.Completion
		for _, r := range group {
			again := *r
			running = append(running, start(t, ctx, b, &again))
		}
		for i, c := range running {
			s := &out[at+i]
			for {
				chunk, err := c.Next(ctx)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("request %d: %v", at+i, err)
				}
				s.chunks = append(s.chunks, chunk)
			}
			s.result = *c.Result()
		}
	}
	for i := range out {
		for _, r := range b.log.Ended() {
			if r.ID == requests[i].ID {
				out[i].record = r
			}
		}
	}
	return out
}

// plain takes out of what was seen how it came about.
func (s seen) plain(cached bool) seen {
	if !cached {
		s.result.Usage.CachedTokens, s.record.CachedTokens = 0, 0
	}
	s.result.DraftedTokens, s.result.AcceptedTokens, s.result.Params = 0, 0, nil
	s.record.DraftedTokens, s.record.AcceptedTokens, s.record.Params = 0, 0, nil
	return s
}

// differences lists the requests that were answered differently. How much of a prompt
// was cached is compared where it is asked for: it depends on company, and with
// recurrent state on the lengths that a slot can go back to.
func differences(want, got []seen, cached bool) (out []string) {
	for i := range want {
		if w, g := want[i].plain(cached), got[i].plain(cached); !reflect.DeepEqual(w, g) {
			out = append(out, fmt.Sprintf("request %d:\n got %q %v %+v\nwant %q %v %+v", i,
				g.result.Text, g.result.Finish, g.result.Usage, w.result.Text, w.result.Finish, w.result.Usage))
		}
	}
	return out
}

// guessed counts guesses that were run and that came.
func guessed(s []seen) (drafted, accepted int) {
	for i := range s {
		drafted += s[i].record.DraftedTokens
		accepted += s[i].record.AcceptedTokens
	}
	return drafted, accepted
}

// doubles are models that cost nothing, so that many requests can be tried.
func doubles() map[string]func() appliance.Model {
	o := appliancetest.Options{Slots: 3, MaxRows: 48, Context: 160}
	text := "the cat sat on the mat. the cat sat on the mat and the dog sat on the cat. "
	loop := appliancetest.Script{For: func(prompt string) string { return text[len(prompt)%20:] + text + text }}
	return map[string]func() appliance.Model{
		"hashed":   func() appliance.Model { return appliancetest.NewHashed(o) },
		"scripted": func() appliance.Model { return appliancetest.NewScripted(loop, o) },
		"scripted, recurrent": func() appliance.Model {
			o.Recurrent = true
			return appliancetest.NewScripted(loop, o)
		},
		"hashed, recurrent": func() appliance.Model {
			o.Recurrent = true
			return appliancetest.NewHashed(o)
		},
		"scripted, few rows": func() appliance.Model {
			o.MaxRows = 5
			return appliancetest.NewScripted(loop, o)
		},
	}
}

// check compares answers with guesses, alone and in company, with those without.
func check(t *testing.T, open func() appliance.Model, from appliance.Speculation, requests int) (drafted, accepted int) {
	t.Helper()
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	m := open()
	asked := randomRequests(rand.New(rand.NewPCG(seed, 4)), m.Vocabulary(), requests)
	want := observe(t, guessing(t, m, appliance.SpeculateOff), asked, 1)
	for _, together := range []int{1, 3} {
		got := observe(t, guessing(t, open(), from), asked, together)
		for _, d := range differences(want, got, together == 1 && !strings.Contains(t.Name(), "recurrent")) {
			t.Errorf("%s, %d together, %s", from, together, d)
		}
		d, a := guessed(got)
		drafted, accepted = drafted+d, accepted+a
	}
	if d, _ := guessed(want); d != 0 {
		t.Errorf("%d tokens were guessed with guessing off", d)
	}
	return drafted, accepted
}

func TestLookupChangesNothing(t *testing.T) {
	for name, open := range doubles() {
		t.Run(name, func(t *testing.T) {
			drafted, accepted := check(t, open, appliance.SpeculateLookup, 60)
			t.Logf("%d of %d guesses came", accepted, drafted)
			if drafted == 0 || (accepted == 0 && name != "hashed" && name != "hashed, recurrent") {
				t.Errorf("%d of %d guesses came: nothing was tested", accepted, drafted)
			}
		})
	}
	for _, name := range []string{"llama-dense", "gemma3-dense", "qwen3-dense", "llama-moe"} {
		for _, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
			t.Run(name+"/"+numerics.String(), func(t *testing.T) {
				drafted, accepted := check(t, func() appliance.Model { return tiny(t, name, numerics) }, appliance.SpeculateLookup, 24)
				t.Logf("%d of %d guesses came", accepted, drafted)
				if drafted == 0 || accepted == 0 {
					t.Errorf("%d of %d guesses came: nothing was tested", accepted, drafted)
				}
			})
		}
	}
}

// bent is a model whose heads are changed on their way out.
type bent struct {
	appliance.Model
	bend func(rows []engine.Row, heads []engine.Head)
}

func (b bent) Run(rows []engine.Row) ([]engine.Head, error) {
	heads, err := b.Model.Run(rows)
	if err == nil {
		b.bend(rows, heads)
	}
	return heads, err
}

// insist makes a head one of which a token is always drawn.
func insist(h *engine.Head, id int32) {
	h.Best, h.Max, h.LogSumExp = id, 1e4, 1e4
	if h.Row != nil {
		h.Row = append([]float32{}, h.Row...)
		h.Row[id] = 1e4
	}
	if h.IDs != nil {
		ids, logits := []int32{id}, []float32{1e4}
		for i, other := range h.IDs {
			if other != id && len(ids) < len(h.IDs) {
				ids, logits = append(ids, other), append(logits, h.Logits[i])
			}
		}
		h.IDs, h.Logits = ids, logits
	}
}

// drafts are smaller models of all degrees of truth, made of one that is as good as
// the larger.
func drafts() map[string]func(good appliance.Model) appliance.Model {
	return map[string]func(appliance.Model) appliance.Model{
		"right": func(good appliance.Model) appliance.Model { return good },
		"wrong": func(good appliance.Model) appliance.Model {
			return bent{good, func(_ []engine.Row, heads []engine.Head) {
				for i := range heads {
					insist(&heads[i], (heads[i].Best+1)%int32(good.Info().Vocab))
				}
			}}
		},
		"at random": func(good appliance.Model) appliance.Model {
			rng := rand.New(rand.NewPCG(5, 6))
			return bent{good, func(_ []engine.Row, heads []engine.Head) {
				for i := range heads {
					if rng.IntN(3) == 0 {
						insist(&heads[i], rng.Int32N(int32(good.Info().Vocab)))
					}
				}
			}}
		},
		"failing": func(good appliance.Model) appliance.Model {
			runs := 0
			return bent{good, func(rows []engine.Row, _ []engine.Head) {
				if runs++; runs%40 == 0 {
					panic("a fault of the smaller model")
				}
			}}
		},
	}
}

// withDraft joins a model with a smaller one.
func withDraft(t testing.TB, m, small appliance.Model) appliance.Model {
	t.Helper()
	joined, err := appliance.WithDraft(m, small)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

func TestDraftModelChangesNothing(t *testing.T) {
	for how, bend := range drafts() {
		for name, open := range doubles() {
			t.Run(name+"/"+how, func(t *testing.T) {
				drafted, accepted := check(t, func() appliance.Model { return withDraft(t, open(), bend(open())) }, appliance.SpeculateDraft, 40)
				t.Logf("%d of %d guesses came", accepted, drafted)
				wantGuesses(t, how, drafted, accepted)
			})
		}
		for _, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
			t.Run("gemma3-dense/"+numerics.String()+"/"+how, func(t *testing.T) {
				open := func() appliance.Model { return tiny(t, "gemma3-dense", numerics) }
				drafted, accepted := check(t, func() appliance.Model { return withDraft(t, open(), bend(open())) }, appliance.SpeculateDraft, 8)
				t.Logf("%d of %d guesses came", accepted, drafted)
				wantGuesses(t, how, drafted, accepted)
			})
		}
	}
}

func wantGuesses(t *testing.T, how string, drafted, accepted int) {
	t.Helper()
	switch share := float64(accepted) / max(float64(drafted), 1); {
	case drafted == 0:
		t.Error("nothing was guessed: nothing was tested")
	case how == "right" && share < 0.5, how == "wrong" && share > 0.1:
		t.Errorf("%d of %d guesses of a model that is %s came", accepted, drafted, how)
	}
}

// forgetful is a model that does not take tokens back.
type forgetful struct{ appliance.Model }

func (f forgetful) Truncate(_, n int) (int, error) { return n, nil }

// The partner of the tests above: verification that accepts a wrong token, and one
// that leaves a wrong token in the slot, are seen.
func TestBrokenVerificationIsSeen(t *testing.T) {
	text := "abcabcabdabcabcabeabcabdabcabcabcabcabdabcabe"
	script := appliancetest.Script{For: func(string) string { return text }}
	open := func() appliance.Model { return appliancetest.NewScripted(script, appliancetest.Options{}) }
	hashedOnce := func() appliance.Model { return appliancetest.NewHashed(appliancetest.Options{}) }
	request := []*appliance.Request{{ID: appliance.NewID(), Prompt: "abcabcabc", MaxTokens: ptr[int64](40), Temperature: ptr(0.0), Seed: ptr[int64](1)}}
	for _, c := range []struct {
		name  string
		plain func() appliance.Model
		bad   func() appliance.Model
		bent  bool
	}{
		{"sound", open, open, false},
		// Every row behind which a guess is run says that the guess is right.
		{"accepts", open, func() appliance.Model {
			return bent{open(), func(rows []engine.Row, heads []engine.Head) {
				at := 0
				for i, r := range rows {
					if r.Want && i+1 < len(rows) && rows[i+1].Slot == r.Slot {
						insist(&heads[at], rows[i+1].Token)
					}
					if r.Want {
						at++
					}
				}
			}}
		}, true},
		{"leaves", hashedOnce, func() appliance.Model {
			return forgetful{withDraft(t, hashedOnce(), drafts()["at random"](hashedOnce()))}
		}, true},
	} {
		want := observe(t, guessing(t, c.plain(), appliance.SpeculateOff), request, 1)
		bad := c.bad()
		from := appliance.SpeculateLookup
		if f, ok := bad.(forgetful); ok {
			from = appliance.SpeculateDraft
			bad = withoutTakingBack{f, f.Model.(appliance.Drafted).Draft()}
		}
		got := observe(t, guessing(t, bad, from), request, 1)
		if d, _ := guessed(got); d == 0 {
			t.Errorf("%s: nothing was guessed", c.name)
		}
		if seen := differences(want, got, true); (len(seen) > 0) != c.bent {
			t.Errorf("%s: differences %v", c.name, seen)
		}
	}
}

// withoutTakingBack is a forgetful model with a draft model that is not.
type withoutTakingBack struct {
	forgetful
	small appliance.Model
}

func (w withoutTakingBack) Draft() appliance.Model { return w.small }
