package appliance_test

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
)

// TestAuxiliaryIsKept: the slot that a request was promised is not given to another one.
func TestAuxiliaryIsKept(t *testing.T) {
	most := 0
	o := appliancetest.Options{Slots: 2, Before: func(_ int, rows []engine.Row) error {
		slots := map[int]bool{}
		for _, r := range rows {
			slots[r.Slot] = true
		}
		most = max(most, len(slots))
		return nil
	}}
	g := guide(t, 0, "other")
	open, goOn := make(chan struct{}), make(chan struct{})
	g.begun = func() { close(open); <-goOn }
	b := guiding(t, appliancetest.NewHashed(o), appliance.Config{}, g)
	done := make(chan error)
	go func() {
		c, err := b.Start(within(t), asking("x", 20, "guide"))
		if err == nil {
			_, err = c.Wait(within(t))
		}
		done <- err
	}()
	<-open
	var plain []*appliance.Completion
	for range 3 {
		c, err := b.Start(within(t), asking("y", 20))
		if err != nil {
			t.Fatal(err)
		}
		plain = append(plain, c)
	}
	for _, c := range plain {
		if _, err := c.Wait(within(t)); err != nil {
			t.Error(err)
		}
	}
	if most != 1 {
		t.Errorf("%d slots were in use beside the one that is promised, of two", most)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// leaky is a model that keeps the slots that it is given back as the second one.
type leaky struct {
	*appliancetest.Scripted
	releases int
}

func (l *leaky) Release(slot int) {
	if l.releases++; l.releases%2 == 1 {
		l.Scripted.Release(slot)
	}
}

// TestAuxiliaryEnds: however a request ends, its slots are free and its claims are gone.
func TestAuxiliaryEnds(t *testing.T) {
	at := func(step int) func(*frame) {
		return func(f *frame) {
			if f.U(abi.OffStep) == step {
				panic(&pipelinetest.Error{Code: "trap"})
			}
		}
	}
	boom := errors.New("boom")
	for _, tt := range []struct {
		name string
		o    appliancetest.Options
		set  func(*guided, *appliance.Request)
		end  func(*testing.T, *appliance.Completion) error
		ok   bool
	}{
		{name: "complete", ok: true},
		{name: "fail", set: func(g *guided, r *appliance.Request) { g.fail = at(4) }},
		{name: "skip", ok: true, set: func(g *guided, r *appliance.Request) { g.fail = at(4); r.Plugins[0].OnError = "skip" }},
		{name: "restart", set: func(g *guided, r *appliance.Request) { g.fail = at(4); r.Plugins[0].OnError = "restart" }},
		{name: "panic", set: func(g *guided, r *appliance.Request) { g.fail = func(f *frame) { panic("not a plugin's error") } }},
		{name: "batch fails", o: appliancetest.Options{Before: func(run int, rows []engine.Row) error {
			if run == 6 {
				return boom
			}
			return nil
		}}},
		{name: "cancel", end: func(t *testing.T, c *appliance.Completion) error {
			if _, err := c.Next(within(t)); err != nil {
				t.Error(err)
			}
			c.Close()
			_, err := c.Wait(within(t))
			return err
		}},
		{name: "cancel before", end: func(t *testing.T, c *appliance.Completion) error {
			c.Close()
			_, err := c.Wait(within(t))
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Slots = 2
			g := guide(t, 0, "other")
			b := guiding(t, appliancetest.NewHashed(tt.o), appliance.Config{Logger: slog.New(slog.DiscardHandler)}, g)
			for range 3 { // a slot that leaks is missing the next time
				g.refused.Store(0)
				r := asking("a text of some length", 1000, "guide")
				if tt.end == nil {
					r.MaxTokens = ptr(int64(30))
				}
				if tt.set != nil {
					tt.set(g, r)
				}
				c, err := b.Start(within(t), r)
				if err != nil {
					t.Fatal(err)
				}
				if tt.end != nil {
					err = tt.end(t, c)
				} else {
					_, err = c.Wait(within(t))
				}
				if tt.ok != (err == nil) && tt.name != "batch fails" {
					t.Errorf("ended with %v", err)
				}
				if n := b.model.Busy(); n != 0 {
					t.Fatalf("%d slots are in use", n)
				}
				if g.refused.Load() != 0 {
					t.Fatal("there was no slot for the other sequence")
				}
			}
		})
	}
	t.Run("partner", func(t *testing.T) {
		g := guide(t, 0, "other")
		p := (&appliancetest.Plugins{}).Add(g.Plugin, "", g.opened)
		s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Plugins: p, Recorder: &appliancetest.Recorder{}})
		if err != nil {
			t.Fatal(err)
		}
		m := &leaky{Scripted: noise()}
		s.Use(m)
		defer s.Close(within(t))
		b := &bench{Service: s, model: m.Scripted}
		b.complete(t, asking("x", 10, "guide"))
		if m.Busy() != 1 {
			t.Errorf("%d slots are in use where one leaked: the test sees nothing", m.Busy())
		}
	})
}

// TestAuxiliaryOfAPluginThatLeft: its sequence is no longer run.
func TestAuxiliaryOfAPluginThatLeft(t *testing.T) {
	var rows []int
	o := appliancetest.Options{Before: func(_ int, r []engine.Row) error { rows = append(rows, len(r)); return nil }}
	g := guide(t, 0, "other")
	g.fail = func(f *frame) {
		if f.U(abi.OffStep) == 5 {
			panic(&pipelinetest.Error{Code: "trap"})
		}
	}
	b := guiding(t, appliancetest.NewHashed(o), appliance.Config{Speculate: appliance.SpeculateOff}, g)
	r := asking("x", 12, "guide")
	r.Plugins[0].OnError = "skip"
	got := b.complete(t, r)
	if got.Plugins[0].Outcome != "skipped" || len(got.Tokens) != 12 {
		t.Errorf("%+v, %d tokens", got.Plugins, len(got.Tokens))
	}
	// The prompt of the other sequence, six steps of two rows, six of one.
	if want := []int{4, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1}; !slices.Equal(rows, want) {
		t.Errorf("batches of %d rows, want %d", rows, want)
	}
	if want := b.complete(t, asking("x", 12)); got.Text != want.Text {
		t.Errorf("text %q, want %q", got.Text, want.Text)
	}
}

// TestAuxiliaryAfterARestart: a new instance is shown the prompt again and goes on with
// the sequences of the one before it.
func TestAuxiliaryAfterARestart(t *testing.T) {
	g := guide(t, 0.5, "other", "and one more")
	failed := false
	g.fail = func(f *frame) {
		if f.U(abi.OffStep) == 5 && !failed {
			failed = true
			panic(&pipelinetest.Error{Code: "trap"})
		}
	}
	b := guiding(t, noise(), appliance.Config{}, g)
	r := asking("x", 20, "guide")
	r.Plugins[0].OnError = "restart"
	got := b.complete(t, r)
	if want := b.complete(t, asking("x", 20, "guide")); got.Text != want.Text || got.Plugins[0].Outcome != string(pipeline.OutcomeRestarted) || g.replayed.Load() != 1 {
		t.Errorf("text %q, want %q; %+v, %d replays", got.Text, want.Text, got.Plugins, g.replayed.Load())
	}
}

// stingy is a model that panics, or has no slot, where a slot is taken for a prompt.
type stingy struct {
	*appliancetest.Scripted
	prompt string
	panics bool
}

func (s *stingy) Acquire(prompt []int32, salt uint64) (int, int, bool) {
	if slices.Equal(prompt, tokensOf(s.prompt)) {
		if s.panics {
			panic("no more")
		}
		return 0, 0, false
	}
	return s.Scripted.Acquire(prompt, salt)
}

// TestAuxiliaryGetsNoSlot: a request whose slots cannot all be taken keeps none of them.
func TestAuxiliaryGetsNoSlot(t *testing.T) {
	for _, panics := range []bool{false, true} {
		g := guide(t, 0, "first", "second")
		p := (&appliancetest.Plugins{}).Add(g.Plugin, "", g.opened)
		s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Plugins: p, Recorder: &appliancetest.Recorder{}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		m := &stingy{noise(), "second", panics}
		s.Use(m)
		defer s.Close(within(t))
		b := &bench{Service: s, model: m.Scripted}
		var e *appliance.Error
		if _, err := b.try(t, asking("x", 5, "guide")); !errors.As(err, &e) || e.Code != appliance.CodeInternal {
			t.Errorf("ended with %v", err)
		}
		if n := len(m.Prompts()); n != 2 || m.Busy() != 0 {
			t.Errorf("%d slots were taken, %d are in use", n, m.Busy())
		}
		b.complete(t, asking("x", 5))
	}
}

// spoiling is a model whose second head of a batch is, once, in error.
type spoiling struct {
	*appliancetest.Scripted
	batches, slots int
}

func (s *spoiling) Run(rows []engine.Row) ([]engine.Head, error) {
	heads, err := s.Scripted.Run(rows)
	if s.batches++; s.batches == 4 && len(heads) == 2 {
		heads[1].Err = errors.New("not finite")
	}
	if s.batches > 4 {
		s.slots = len(rows)
	}
	return heads, err
}

// TestAuxiliaryWithoutNumbers: a sequence whose logits are not finite ends, and the text
// need not.
func TestAuxiliaryWithoutNumbers(t *testing.T) {
	g := guide(t, 0, "other")
	p := (&appliancetest.Plugins{}).Add(g.Plugin, "", g.opened)
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Plugins: p, Recorder: &appliancetest.Recorder{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Speculate: appliance.SpeculateOff})
	if err != nil {
		t.Fatal(err)
	}
	m := &spoiling{Scripted: noise()}
	s.Use(m)
	defer s.Close(within(t))
	b := &bench{Service: s, model: m.Scripted}
	r := asking("x", 12, "guide")
	r.Plugins[0].OnError = "skip"
	got := b.complete(t, r)
	if want := b.complete(t, asking("x", 12)); got.Text != want.Text || got.Plugins[0].Code() != "gone" {
		t.Errorf("text %q, want %q; %+v", got.Text, want.Text, got.Plugins)
	}
	if m.slots != 1 || m.Busy() != 0 {
		t.Errorf("%d rows in the batches after it, %d slots in use", m.slots, m.Busy())
	}
}
