package appliance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
)

// same tells whether two answers are equal bit for bit, log-probabilities included.
func same(a, b *appliance.Result) bool {
	if a.Text != b.Text || a.Finish != b.Finish || len(a.Tokens) != len(b.Tokens) {
		return false
	}
	for i := range a.Tokens {
		if a.Tokens[i].ID != b.Tokens[i].ID || a.Tokens[i].Logprob != b.Tokens[i].Logprob {
			return false
		}
	}
	return true
}

// references are the requests whose answers must not change.
func references() map[string]func() *appliance.Request {
	prompt := strings.Repeat("one two three ", 22)[:300]
	return map[string]func() *appliance.Request{
		"temperature 0": func() *appliance.Request { return greedy(prompt, 40) },
		"seed 7":        func() *appliance.Request { return sampled(prompt, 7, 40) },
		"filters": func() *appliance.Request {
			r := sampled(prompt, 9, 40)
			r.TopK, r.TopP, r.PresencePenalty = ptr[int64](20), ptr(0.9), ptr(0.5)
			return r
		},
	}
}

func TestF20WarmCacheChangesNothing(t *testing.T) {
	for name, request := range references() {
		t.Run(name, func(t *testing.T) {
			b := hashed(t, appliancetest.Options{})
			cold := b.complete(t, request())
			for range 2 {
				if warm := b.complete(t, request()); !same(warm.Result, cold.Result) {
					t.Fatalf("warm %q, cold %q", warm.Text, cold.Text)
				}
			}
			for i := range 20 {
				b.complete(t, greedy(request().Prompt[:100]+strings.Repeat("z", i), 8))
			}
			again := b.complete(t, request())
			if !same(again.Result, cold.Result) {
				t.Errorf("after other prompts %q, cold %q", again.Text, cold.Text)
			}
			if again.Usage.CachedTokens == 0 {
				t.Error("the cache was not used, so nothing was tested")
			}
		})
	}
}

func TestF21CompanyChangesNothing(t *testing.T) {
	for name, request := range references() {
		for _, o := range []appliancetest.Options{
			{Slots: 4}, {Slots: 16, MaxRows: 512}, {Slots: 16, MaxRows: 5}, {Slots: 3, MaxRows: 1}, {Slots: 100, MaxRows: 128},
		} {
			t.Run(fmt.Sprintf("%s/%d slots/%d rows", name, o.Slots, o.MaxRows), func(t *testing.T) {
				alone := hashed(t, appliancetest.Options{}).complete(t, request())
				b := hashed(t, o)
				ctx := within(t)
				var copies, strangers []*appliance.Completion
				for i := range 8 {
					copies = append(copies, start(t, ctx, b, request()))
					strangers = append(strangers, start(t, ctx, b, sampled(strings.Repeat("s", 5*i+1), int64(i), 50)))
				}
				for i, c := range copies {
					if got, err := c.Wait(ctx); err != nil || !same(got, alone.Result) {
						t.Errorf("copy %d: %v, %v, alone %q", i, got, err, alone.Text)
					}
				}
				for _, c := range strangers {
					if _, err := c.Wait(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func start(t testing.TB, ctx context.Context, b *bench, r *appliance.Request) *appliance.Completion {
	t.Helper()
	c, err := b.Start(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMaxWantedRows runs more decoding sequences than one batch reads heads for.
func TestMaxWantedRows(t *testing.T) {
	most := 0
	gate := make(chan struct{}) // until all are there
	o := appliancetest.Options{Slots: 100, MaxRows: 512, Gate: gate, Before: func(_ int, rows []engine.Row) error {
		n := 0
		for _, r := range rows {
			if r.Want {
				n++
			}
		}
		most = max(most, n)
		return nil
	}}
	alone := hashed(t, appliancetest.Options{}).complete(t, greedy("same", 30))
	b := serve(t, appliancetest.NewHashed(o), appliance.Config{QueueMax: 200})
	ctx := within(t)
	var all []*appliance.Completion
	for range 150 {
		all = append(all, start(t, ctx, b, greedy("same", 30)))
	}
	close(gate)
	for i, c := range all {
		if got, err := c.Wait(ctx); err != nil || !same(got, alone.Result) {
			t.Fatalf("request %d: %v, %v, alone %q", i, got, err, alone.Text)
		}
	}
	if most != 64 {
		t.Errorf("at most %d wanted rows in a batch, want 64", most)
	}
}

func TestF22CancelLeavesNoTrace(t *testing.T) {
	request := references()["seed 7"]
	want := hashed(t, appliancetest.Options{}).complete(t, request())
	victim := func() *appliance.Request { return sampled(request().Prompt[:200]+strings.Repeat("v", 100), 3, 40) }

	// The model stops before each batch; the victim is cancelled in that of a
	// given number, which falls into prefill (10 rows each) or generation.
	for at := 1; at <= 36; at++ {
		var c *appliance.Completion
		started := make(chan struct{})
		o := appliancetest.Options{Slots: 2, MaxRows: 10, Before: func(run int, _ []engine.Row) error {
			if run == 1 {
				<-started
			}
			if run == at {
				c.Close()
			}
			return nil
		}}
		// By a clock that runs, the rows of a batch would follow from what others took.
		b := serve(t, appliancetest.NewHashed(o), appliance.Config{Now: still})
		ctx := within(t)
		c = start(t, ctx, b, victim())
		close(started)
		_, err := c.Wait(ctx)
		if e := new(appliance.Error); !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
			t.Fatalf("cancelled in batch %d: %v, want cancelled", at, err)
		}
		if n := b.model.Runs(); n != at {
			t.Errorf("cancelled in batch %d: %d batches were run", at, n)
		}
		if got := b.complete(t, request()); !same(got.Result, want.Result) {
			t.Errorf("after a cancel in batch %d: %q, want %q", at, got.Text, want.Text)
		}
		rec := b.log.Ended()[0]
		if rec.Outcome != appliance.OutcomeCancelled || rec.CompletionTokens != max(0, at-29) {
			t.Errorf("cancelled in batch %d: recorded as %s with %d tokens", at, rec.Outcome, rec.CompletionTokens)
		}
	}
}

// TestHammer runs 64 clients that complete, cancel and are refused, while models are
// swapped, and compares every answer with that of a quiet service.
func TestHammer(t *testing.T) {
	const clients, each = 64, 12
	prompt := func(i int) string { return strings.Repeat("p", i%7+1) + fmt.Sprint(i%11) }
	quiet := hashed(t, appliancetest.Options{})
	want := map[string]*appliance.Result{}
	for i := range 77 {
		if _, ok := want[prompt(i)]; !ok {
			want[prompt(i)] = quiet.complete(t, sampled(prompt(i), 5, 12)).Result
		}
	}
	b := serve(t, appliancetest.NewHashed(appliancetest.Options{Slots: 6, MaxRows: 16}), appliance.Config{QueueMax: 40})
	ctx := within(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	count := func(what string) {
		mu.Lock()
		outcomes[what]++
		mu.Unlock()
	}
	for client := range clients {
		wg.Go(func() {
			for i := range each {
				n := client*each + i
				r := sampled(prompt(n), 5, 12)
				c, err := b.Start(ctx, r)
				var e *appliance.Error
				switch {
				case errors.As(err, &e) && e.Code == appliance.CodeQueueFull && e.RetryAfter > 0:
					count("refused")
					continue
				case err != nil:
					t.Errorf("start: %v", err)
					return
				}
				if n%5 == 0 {
					c.Next(ctx)
					c.Close()
					c.Wait(ctx)
					count("cancelled")
					continue
				}
				if got, err := c.Wait(ctx); err != nil || !same(got, want[r.Prompt]) {
					t.Errorf("prompt %q: %v, %v, want %q", r.Prompt, got, err, want[r.Prompt].Text)
				}
				count("completed")
			}
		})
	}
	var models []*appliancetest.Scripted
	for range 3 {
		m := appliancetest.NewHashed(appliancetest.Options{Slots: 4, MaxRows: 16})
		models = append(models, m)
		b.Use(m)
	}
	wg.Wait()
	if outcomes["completed"] == 0 || outcomes["cancelled"] == 0 {
		t.Errorf("outcomes %v: not all kinds occurred", outcomes)
	}
	if n := len(b.log.Begun()); n != outcomes["completed"]+outcomes["cancelled"] {
		t.Errorf("%d records, outcomes %v", n, outcomes)
	}
	if st := b.Status(); st.Running != 0 || st.Queued != 0 {
		t.Errorf("%d running, %d queued when all is over", st.Running, st.Queued)
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(models, func(m *appliancetest.Scripted) bool { return !m.Closed() }); i >= 0 {
		t.Errorf("model %d was not closed", i)
	}
}
