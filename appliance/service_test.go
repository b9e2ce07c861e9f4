package appliance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

func TestF44SlowModelIsNeverCut(t *testing.T) {
	// Each batch takes two seconds of the clock; the service has no limit of time.
	clock := appliancetest.NewClock(time.Unix(1_000_000, 0))
	o := appliancetest.Options{Before: func(int, []engine.Row) error { clock.Advance(2 * time.Second); return nil }}
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"ab"}, Endless: true}, o)
	b := serve(t, m, appliance.Config{Now: clock.Now, Speculate: appliance.SpeculateOff})
	plain, streamed := greedy("x", 150), greedy("x", 150)
	streamed.Stream = true
	p, s := b.complete(t, plain), b.complete(t, streamed)
	if p.Usage.CompletionTokens != 150 || p.Text != s.Text {
		t.Errorf("%d tokens, equal %v, want 150, true", p.Usage.CompletionTokens, p.Text == s.Text)
	}
	if want := 149 * 2 * time.Second; p.Timings.Decode != want {
		t.Errorf("decode took %v, want %v", p.Timings.Decode, want)
	}
}

func TestTimingsAndRecord(t *testing.T) {
	clock := appliancetest.NewClock(time.Unix(1_000_000, 0))
	o := appliancetest.Options{Name: "tiny", MaxRows: 4, Before: func(int, []engine.Row) error { clock.Advance(10 * time.Millisecond); return nil }}
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a", "b", "c"}}, o)
	b := serve(t, m, appliance.Config{Now: clock.Now})
	r := greedy("ten tokens", 9)
	r.Received = clock.Now().Add(-5 * time.Millisecond)
	r.Route, r.Client, r.Body, r.Stream, r.Seed = "POST /v1/completions", "test", []byte(`{"a":1}`), true, ptr[int64](3)
	a := b.complete(t, r)
	want := appliance.Timings{Prefill: 30 * time.Millisecond, Decode: 30 * time.Millisecond, FirstToken: 35 * time.Millisecond}
	if a.Timings != want {
		t.Errorf("timings %+v, want %+v", a.Timings, want)
	}
	begun, ended := b.log.Begun()[0], b.log.Ended()[0]
	if begun.Outcome != appliance.OutcomeOpen || begun.Prompt != r.Prompt || string(begun.Body) != string(r.Body) ||
		begun.Route != r.Route || begun.Client != r.Client || !begun.Stream || begun.Seed != 3 || begun.Model != "tiny" ||
		begun.ModelHash == "" || begun.Backend == "" || begun.Device == "" || begun.Numerics == "" || begun.Kernels == "" ||
		len(begun.Params) != 14 || begun.CreatedAt != a.Created {
		t.Errorf("begun with %+v", begun)
	}
	if ended.ID != r.ID || ended.Outcome != appliance.OutcomeStop || ended.Text != "abc" || len(ended.Tokens) != 3 ||
		ended.PromptTokens != 10 || ended.CompletionTokens != 3 || ended.CachedTokens != 0 ||
		ended.PrefillMS != 30 || ended.DecodeMS != 30 || ended.FirstTokenMS != 35 || ended.EndedAt != clock.Now() {
		t.Errorf("ended with %+v", ended)
	}
	if a.ID != r.ID || a.Model != "tiny" || a.Seed != 3 {
		t.Errorf("result %+v", a.Result)
	}
}

// TestRecordIsClosedBeforeTheEndIsSeen holds the order that a client may rely on.
func TestRecordIsClosedBeforeTheEndIsSeen(t *testing.T) {
	b := pieces(t, "a", "b")
	ctx := within(t)
	for range 50 {
		c := start(t, ctx, b, greedy("x", 9))
		if len(b.log.Begun()) == 0 {
			t.Fatal("started without a record")
		}
		for {
			chunk, err := c.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if chunk.Finish != "" {
				break
			}
		}
		if b, e := len(b.log.Begun()), len(b.log.Ended()); b != e {
			t.Fatalf("%d records begun, %d ended when the last chunk is seen", b, e)
		}
	}
}

func TestQueueFull(t *testing.T) {
	gate := make(chan struct{})
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}}, appliancetest.Options{Slots: 1, Gate: gate})
	b := serve(t, m, appliance.Config{QueueMax: 2})
	ctx := within(t)
	var all []*appliance.Completion
	for range 3 { // one in the slot, two in the queue
		all = append(all, start(t, ctx, b, greedy("x", 9)))
	}
	if e := b.refuse(t, greedy("x", 9), appliance.CodeQueueFull, ""); e.RetryAfter < time.Second {
		t.Errorf("retry after %v, want at least a second", e.RetryAfter)
	}
	if st := b.Status(); st.Running+st.Queued != 3 || st.QueueMax != 2 {
		t.Errorf("%d running, %d queued of %d", st.Running, st.Queued, st.QueueMax)
	}
	all[2].Close() // a cancelled request frees its place, though the model stands still in the first
	close(gate)
	for i, c := range all {
		if _, err := c.Wait(ctx); (err != nil) != (i == 2) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	b.complete(t, greedy("x", 9))
}

func TestFirstComeFirstServed(t *testing.T) {
	gate := make(chan struct{})
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}}, appliancetest.Options{Slots: 1, Gate: gate})
	b := serve(t, m, appliance.Config{Speculate: appliance.SpeculateOff})
	ctx := within(t)
	var want []string
	var all []*appliance.Completion
	for range 10 {
		r := greedy("x", 9)
		want = append(want, r.ID)
		all = append(all, start(t, ctx, b, r))
	}
	close(gate)
	for _, c := range all {
		if _, err := c.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	var got []string
	for _, r := range b.log.Ended() {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("ended in order %v, want %v", got, want)
	}
}

// TestDecodeGoesOnBesidePrompts holds that a sequence gets its token in every batch
// while long prompts are read.
func TestDecodeGoesOnBesidePrompts(t *testing.T) {
	var mu sync.Mutex
	var decoding, batches int
	gate := make(chan struct{})
	clock := appliancetest.NewClock(time.Unix(1_000_000, 0)) // the rows of a batch follow from what others took
	o := appliancetest.Options{Slots: 3, MaxRows: 32, Gate: gate, Before: func(_ int, rows []engine.Row) error {
		clock.Advance(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if len(rows) > 20 { // prompts are being read
			batches++
			if rows[0].Want {
				decoding++
			}
		}
		return nil
	}}
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}, Endless: true}, o)
	b := serve(t, m, appliance.Config{Now: clock.Now, Speculate: appliance.SpeculateOff})
	ctx := within(t)
	first := start(t, ctx, b, greedy("x", 200))
	gate <- struct{}{}
	if _, err := first.Next(ctx); err != nil {
		t.Fatal(err)
	}
	long1 := start(t, ctx, b, greedy(strings.Repeat("l", 400), 3))
	long2 := start(t, ctx, b, greedy(strings.Repeat("m", 400), 3))
	close(gate)
	for _, c := range []*appliance.Completion{first, long1, long2} {
		if _, err := c.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	if batches < 20 || decoding != batches {
		t.Errorf("a token was decoded in %d of %d batches with prompts", decoding, batches)
	}
}

func TestF60HangingUpStopsTheWork(t *testing.T) {
	gate := make(chan struct{})
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}, Endless: true}, appliancetest.Options{Slots: 1, Gate: gate})
	b := serve(t, m, appliance.Config{Speculate: appliance.SpeculateOff})

	t.Run("close after three chunks", func(t *testing.T) {
		ctx := within(t)
		c := start(t, ctx, b, greedy("x", 4000))
		for range 3 {
			gate <- struct{}{}
			if _, err := c.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "the next batch", func() bool { return m.Runs() == 4 })
		c.Close()
		c.Close()
		gate <- struct{}{} // the batch that had begun
		cancelled(t, c)
		rec := b.log.Ended()[0]
		if rec.Outcome != appliance.OutcomeCancelled || rec.CompletionTokens != 4 || rec.Text != "aaaa" || len(rec.Tokens) != 4 {
			t.Errorf("recorded as %s with %d tokens and text %q, want cancelled, 4, aaaa", rec.Outcome, rec.CompletionTokens, rec.Text)
		}
	})
	t.Run("the context of the request ends", func(t *testing.T) {
		ctx, hangUp := context.WithCancel(within(t))
		c := start(t, ctx, b, greedy("x", 4000))
		hangUp()
		for over := done(c); over != nil; {
			select {
			case gate <- struct{}{}: // batches that begin before the cancel
			case <-over:
				over = nil
			}
		}
		cancelled(t, c)
	})
	t.Run("while queued", func(t *testing.T) {
		ctx := within(t)
		running := start(t, ctx, b, greedy("x", 1))
		queued := start(t, ctx, b, greedy("x", 1))
		queued.Close()
		gate <- struct{}{}
		cancelled(t, queued)
		if _, err := running.Wait(ctx); err != nil {
			t.Error(err)
		}
		if rec := b.log.Ended(); rec[len(rec)-1].Outcome == appliance.OutcomeOpen {
			t.Error("the record of a queued request is open")
		}
	})
	close(gate)
	t.Run("1000 times", func(t *testing.T) {
		// Its end is out of reach: the model may run on for as long as the system lets
		// this test wait for a processor.
		o := appliancetest.Options{Slots: 1, Context: 1 << 30}
		b := serve(t, appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}, Endless: true}, o), appliance.Config{Speculate: appliance.SpeculateOff})
		for i := range 1000 {
			ctx := within(t)
			c := start(t, ctx, b, greedy("x", 1<<30))
			if i%2 == 0 {
				c.Next(ctx)
			}
			c.Close()
			cancelled(t, c)
		}
		if st := b.Status(); st.Running != 0 || st.Queued != 0 {
			t.Errorf("%d running, %d queued after all were cancelled", st.Running, st.Queued)
		}
	})
}

// done returns a channel that is closed when the completion has ended.
func done(c *appliance.Completion) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		c.Wait(context.Background())
		close(ch)
	}()
	return ch
}

// cancelled waits for the end and wants it to be a cancellation, in Wait and Next.
func cancelled(t testing.TB, c *appliance.Completion) {
	t.Helper()
	ctx := within(t)
	_, err := c.Wait(ctx)
	var e *appliance.Error
	if !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
		t.Fatalf("got %v, want cancelled", err)
	}
	for {
		if _, err := c.Next(ctx); err != nil {
			if !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
				t.Fatalf("Next: %v, want cancelled", err)
			}
			return
		}
	}
}

// TestWhoIsGoneGetsNothing: a request whose context has ended is cancelled before anything of
// it is run, however late the goroutine comes that would tell.
func TestWhoIsGoneGetsNothing(t *testing.T) {
	b := endless(t, appliancetest.Options{})
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 {
		c, err := b.Start(gone, greedy("x", 1))
		if err != nil {
			t.Fatal(err)
		}
		cancelled(t, c)
	}
	if n := b.model.Runs(); n != 0 {
		t.Errorf("%d batches were run for nobody", n)
	}
}

func TestSlowReaderStallsNobody(t *testing.T) {
	b := endless(t, appliancetest.Options{Slots: 2})
	ctx := within(t)
	slow := start(t, ctx, b, greedy("x", 500))
	for range 20 {
		b.complete(t, greedy("y", 100))
	}
	res, err := slow.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	joined := ""
	for {
		chunk, err := slow.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		joined += chunk.Text
	}
	if joined != res.Text || len(joined) != 500 {
		t.Errorf("%d bytes in chunks, %d in the result, want 500", len(joined), len(res.Text))
	}
	if slow.Result() != res {
		t.Error("Result differs from what Wait returned")
	}
}

func TestNextObeysItsContext(t *testing.T) {
	gate := make(chan struct{})
	m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}}, appliancetest.Options{Gate: gate})
	b := serve(t, m, appliance.Config{})
	c := start(t, within(t), b, greedy("x", 9))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Next(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Next: %v, want context.Canceled", err)
	}
	if _, err := c.Wait(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v, want context.Canceled", err)
	}
	if c.Result() != nil {
		t.Error("a result before the end")
	}
	close(gate)
	if res, err := c.Wait(within(t)); err != nil || res.Text != "a" {
		t.Errorf("got %v, %v: the completion goes on", res, err)
	}
}

// TestFaults holds that a fault ends the requests it touches, with an internal error
// that tells nothing of the inside, and no other.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func() error
		code appliance.Code
	}{
		{"error", func() error { return errors.New("secret path /home/x") }, appliance.CodeInternal},
		{"panic", func() error { panic("secret path /home/x") }, appliance.CodeInternal},
		{"out of memory", func() error { return fmt.Errorf("run: %w", ops.ErrOutOfMemory) }, appliance.CodeOutOfMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			o := appliancetest.Options{Before: func(run int, _ []engine.Row) error {
				if run == 3 {
					return c.do()
				}
				return nil
			}}
			m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a", "b", "c", "d"}}, o)
			b := serve(t, m, appliance.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			r := greedy("stays private", 9)
			a, err := b.try(t, r)
			var e *appliance.Error
			if !errors.As(err, &e) || e.Code != c.code || strings.Contains(e.Message, "secret") {
				t.Fatalf("got %v, want %s and nothing of the inside", err, c.code)
			}
			if len(a.chunks) != 2 {
				t.Errorf("%d chunks before the error, want 2", len(a.chunks))
			}
			rec := b.log.Ended()[0]
			if rec.Outcome != appliance.OutcomeError || rec.ErrorCode != c.code || rec.Text != "ab" {
				t.Errorf("recorded as %s, %s, %q", rec.Outcome, rec.ErrorCode, rec.Text)
			}
			if c.code == appliance.CodeInternal && (!strings.Contains(log.String(), r.ID) || !strings.Contains(log.String(), "secret")) {
				t.Errorf("the log has no cause: %s", log.String())
			}
			if strings.Contains(log.String(), "private") {
				t.Errorf("the log has the prompt: %s", log.String())
			}
			if a := b.complete(t, greedy("x", 9)); a.Text != "abcd" {
				t.Errorf("the next request gives %q", a.Text)
			}
		})
	}
}

// brokenRecorder panics in both methods.
type brokenRecorder struct{}

func (brokenRecorder) Begin(context.Context, *appliance.Record) { panic("log") }
func (brokenRecorder) End(*appliance.Record)                    { panic("log") }

func TestBrokenLogStopsNoAnswer(t *testing.T) {
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Recorder: brokenRecorder{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Use(appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}}, appliancetest.Options{}))
	c, err := s.Start(within(t), greedy("x", 9))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := c.Wait(within(t)); err != nil || res.Text != "a" {
		t.Errorf("got %v, %v", res, err)
	}
	if err := s.Close(within(t)); err != nil {
		t.Error(err)
	}
}

// TestEveryTokenBanned is a sequence whose chain has nothing to choose from.
func TestEveryTokenBanned(t *testing.T) {
	o := appliancetest.Options{}
	for id := range int32(260) {
		o.Vocabulary.Banned = append(o.Vocabulary.Banned, id)
	}
	b := serve(t, appliancetest.NewHashed(o), appliance.Config{Logger: slog.New(slog.DiscardHandler)})
	_, err := b.try(t, greedy("x", 4))
	var e *appliance.Error
	if !errors.As(err, &e) || e.Code != appliance.CodeInternal {
		t.Errorf("got %v, want an internal error", err)
	}
}

// miscounting is a model that gives a head too many.
type miscounting struct{ *appliancetest.Scripted }

func (m miscounting) Run(rows []engine.Row) ([]engine.Head, error) {
	heads, err := m.Scripted.Run(rows)
	return append(heads, engine.Head{}), err
}

func TestModelThatMiscounts(t *testing.T) {
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Use(miscounting{saying("x", appliancetest.Options{})})
	c, err := s.Start(within(t), greedy("x", 9))
	if err != nil {
		t.Fatal(err)
	}
	var e *appliance.Error
	if _, err := c.Wait(within(t)); !errors.As(err, &e) || e.Code != appliance.CodeInternal {
		t.Errorf("got %v, want an internal error", err)
	}
	if err := s.Close(within(t)); err != nil {
		t.Error(err)
	}
}

func TestAlternativesAreShownByThemselves(t *testing.T) {
	for piece, want := range map[string]string{" a": " a", "\xF0\x9F": "\uFFFD"} {
		b := pieces(t, piece)
		r := greedy("x", 1)
		r.TopLogprobs = 1
		if top := b.complete(t, r).Tokens[0].Top; len(top) != 1 || top[0].Text != want {
			t.Errorf("%q is shown as %+v, want %q", piece, top, want)
		}
	}
	m := appliancetest.NewScripted(appliancetest.Script{IDs: []int32{appliancetest.Pad}}, appliancetest.Options{})
	r := greedy("x", 1)
	r.TopLogprobs = 1
	if tok := serve(t, m, appliance.Config{}).complete(t, r).Tokens[0]; tok.Top[0].Text != "<pad>" || tok.Text != "" {
		t.Errorf("a control token is shown as %q and renders %q", tok.Top[0].Text, tok.Text)
	}
}
