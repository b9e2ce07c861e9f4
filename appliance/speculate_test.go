package appliance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu"
	"ganglion/gpu/archtest"
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
func guessing(t testing.TB, m appliance.Model, from appliance.Speculation, adapters ...appliance.LoRA) *bench {
	t.Helper()
	log := &appliancetest.Recorder{}
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Recorder: log, Logger: slog.New(slog.DiscardHandler), Now: still, Speculate: from, QueueMax: 100, LoRA: adapters})
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

// tiny opens a golden model.
func tiny(t testing.TB, name string, numerics ops.Numerics) appliance.Model {
	t.Helper()
	b, err := gpu.CPU()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	e, err := engine.Open(context.Background(), engine.Config{
		Path: archtest.Golden(t).Path(t, name), Backend: b, Numerics: numerics, Threads: 2, Context: 160, Slots: 3, MaxRows: 48,
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
	// Full attention, sliding windows, experts, recurrent state of three kinds, and
	// latent attention.
	came := 0
	for _, name := range []string{"llama-dense", "gemma3-dense", "gpt-oss-moe", "mamba2-dense", "qwen35-dense", "lfm2-dense", "deepseek2-moe"} {
		for _, numerics := range []ops.Numerics{ops.Exact, ops.Fast} {
			t.Run(name+"/"+numerics.String(), func(t *testing.T) {
				drafted, accepted := 0, 0
				for try := 0; try < 5 && drafted == 0; try++ { // a draw of requests may hold nothing to guess
					drafted, accepted = check(t, func() appliance.Model { return tiny(t, name, numerics) }, appliance.SpeculateLookup, 16)
				}
				t.Logf("%d of %d guesses came", accepted, drafted)
				if came += accepted; drafted == 0 {
					t.Error("nothing was guessed: nothing was tested")
				}
			})
		}
	}
	if came == 0 {
		t.Error("no guess came: half was not tested")
	}
}
