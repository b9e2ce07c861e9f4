package appliance_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

func saying(text string, o appliancetest.Options) *appliancetest.Scripted {
	o.Name = text
	return appliancetest.NewScripted(appliancetest.Script{Pieces: []string{text}}, o)
}

func TestUseKeepsRunningRequests(t *testing.T) {
	gate := make(chan struct{})
	old := saying("old", appliancetest.Options{Slots: 1, Gate: gate})
	b := serve(t, old, appliance.Config{})
	ctx := within(t)
	running, queued := start(t, ctx, b, greedy("x", 9)), start(t, ctx, b, greedy("x", 9))
	fresh := saying("new", appliancetest.Options{})
	b.Use(fresh)
	if a := b.complete(t, greedy("x", 9)); a.Text != "new" || a.Model != "new" {
		t.Errorf("a new request gets %q from %q", a.Text, a.Model)
	}
	if old.Closed() {
		t.Error("the old model is closed while it has requests")
	}
	close(gate)
	for _, c := range []*appliance.Completion{running, queued} {
		if res, err := c.Wait(ctx); err != nil || res.Text != "old" {
			t.Errorf("an old request: %v, %v", res, err)
		}
	}
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
	if !old.Closed() || !fresh.Closed() {
		t.Error("a model is open after Close")
	}
}

func TestLoad(t *testing.T) {
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Service: s, log: &appliancetest.Recorder{}}
	ctx := within(t)
	t.Cleanup(func() { s.Close(ctx) })
	b.refuse(t, greedy("x", 4), appliance.CodeNoModel, "")
	if st := s.Status(); st.State != appliance.StateNoModel || st.Model != nil {
		t.Errorf("status %+v without a model", st)
	}
	if _, ok := s.Vocabulary(); ok {
		t.Error("a vocabulary without a model")
	}

	// load starts one that stops half way until it is let go.
	load := func(name string, m appliance.Model, fault error) (finish func()) {
		half, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s.Load(ctx, func(ctx context.Context, progress func(done, total int64)) (appliance.Model, error) {
			progress(50, 100)
			close(half)
			<-goOn
			defer close(over)
			if m == nil {
				return nil, fault
			}
			return m, nil
		}, name)
		<-half
		return func() { close(goOn); <-over; settle(t, s) }
	}

	finish := load("first", saying("first", appliancetest.Options{}), nil)
	st := s.Status()
	if st.State != appliance.StateLoading || st.Loading == nil || *st.Loading != (appliance.Progress{Name: "first", Done: 50, Total: 100}) {
		t.Errorf("status %+v while loading", st)
	}
	if e := b.refuse(t, greedy("x", 4), appliance.CodeLoading, ""); e.RetryAfter == 0 {
		t.Error("no hint when to try again")
	}
	finish()
	if st := s.Status(); st.State != appliance.StateReady || st.Model.Name != "first" || st.Loading != nil || st.Error != "" {
		t.Errorf("status %+v after loading", st)
	}
	if a := b.complete(t, greedy("x", 4)); a.Text != "first" {
		t.Errorf("got %q", a.Text)
	}

	finish = load("broken", nil, errors.New("gguf: offset 8: version 1"))
	if st := s.Status(); st.State != appliance.StateReady || st.Loading.Name != "broken" {
		t.Errorf("status %+v: the previous model serves while another loads", st)
	}
	finish()
	if st := s.Status(); st.State != appliance.StateReady || st.Model.Name != "first" || st.Error != "gguf: offset 8: version 1" {
		t.Errorf("status %+v after a failed load", st)
	}
	if a := b.complete(t, greedy("x", 4)); a.Text != "first" {
		t.Errorf("got %q: the previous model serves on", a.Text)
	}

	load("good", saying("second", appliancetest.Options{}), nil)()
	if st := s.Status(); st.Error != "" || st.Model.Name != "second" {
		t.Errorf("status %+v: a success clears the error", st)
	}
}

// settle waits until no load is in progress.
func settle(t testing.TB, s *appliance.Service) {
	t.Helper()
	until(t, "the load to end", func() bool { return s.Status().Loading == nil })
}

func TestLoadPanicsAndEmptyLoads(t *testing.T) {
	b := serve(t, saying("x", appliancetest.Options{}), appliance.Config{Logger: slog.New(slog.DiscardHandler)})
	for want, open := range map[string]func(context.Context, func(int64, int64)) (appliance.Model, error){
		"panic": func(context.Context, func(int64, int64)) (appliance.Model, error) { panic("bad file") },
		"no model": func(context.Context, func(int64, int64)) (appliance.Model, error) {
			return nil, nil
		},
	} {
		b.Load(within(t), open, want)
		settle(t, b.Service)
		if got := b.Status().Error; !strings.Contains(got, want) {
			t.Errorf("error %q, want it to name %q", got, want)
		}
		b.complete(t, greedy("x", 4))
	}
}

func TestLaterLoadCancelsEarlier(t *testing.T) {
	b := pieces(t, "x")
	ctx := within(t)
	late := saying("late", appliancetest.Options{})
	seen := make(chan struct{})
	b.Load(ctx, func(ctx context.Context, _ func(int64, int64)) (appliance.Model, error) {
		<-ctx.Done()
		close(seen)
		return late, nil // too late
	}, "late")
	b.Load(ctx, func(context.Context, func(int64, int64)) (appliance.Model, error) {
		<-seen
		return saying("winner", appliancetest.Options{}), nil
	}, "winner")
	settle(t, b.Service)
	if got := b.Status().Model.Name; got != "winner" {
		t.Errorf("%q serves, want winner", got)
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if !late.Closed() {
		t.Error("the model that came too late is open")
	}
}

func TestCloseDrainsOrCancels(t *testing.T) {
	t.Run("drains", func(t *testing.T) {
		b := endless(t, appliancetest.Options{Slots: 1})
		ctx := within(t)
		one, two := start(t, ctx, b, greedy("x", 50)), start(t, ctx, b, greedy("x", 50))
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
		for _, c := range []*appliance.Completion{one, two} {
			if res, err := c.Wait(ctx); err != nil || len(res.Tokens) != 50 {
				t.Errorf("got %v, %v", res, err)
			}
		}
		b.refuse(t, greedy("x", 4), appliance.CodeShutdown, "")
		if st := b.Status(); st.State != appliance.StateNoModel {
			t.Errorf("state %s after Close", st.State)
		}
	})
	t.Run("cancels", func(t *testing.T) {
		gate := make(chan struct{})
		m := appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a"}, Endless: true}, appliancetest.Options{Slots: 1, Gate: gate})
		b := serve(t, m, appliance.Config{})
		ctx := within(t)
		one, two := start(t, ctx, b, greedy("x", 4000)), start(t, ctx, b, greedy("x", 4000))
		gate <- struct{}{}
		if _, err := one.Next(ctx); err != nil {
			t.Fatal(err)
		}
		impatient, cancel := context.WithCancel(context.Background())
		cancel()
		closed := make(chan error)
		go func() { closed <- b.Close(impatient) }()
		var err error
		for waiting := true; waiting; {
			select {
			case gate <- struct{}{}: // batches that begin before the cancel
			case err = <-closed:
				waiting = false
			}
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v, want context.Canceled", err)
		}
		cancelled(t, one)
		cancelled(t, two)
	})
	t.Run("stops a load", func(t *testing.T) {
		b := pieces(t, "x")
		begun := make(chan struct{})
		b.Load(within(t), func(ctx context.Context, _ func(int64, int64)) (appliance.Model, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}, "slow")
		<-begun
		if err := b.Close(within(t)); err != nil {
			t.Error(err)
		}
		late := saying("late", appliancetest.Options{})
		b.Use(late)
		if !late.Closed() {
			t.Error("a model given to a closed service is open")
		}
	})
}
