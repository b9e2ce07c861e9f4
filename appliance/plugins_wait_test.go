package appliance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

func isCancelled(err error) bool {
	var e *appliance.Error
	return errors.As(err, &e) && e.Code == appliance.CodeCancelled
}

// TestCancelWhileAPluginWaitsToOpen: the request ends, as one that was cancelled, and the
// plugin is not blamed, whatever its policy.
func TestCancelWhileAPluginWaitsToOpen(t *testing.T) {
	for _, onError := range []string{"fail", "skip", "restart"} {
		b, p := with(t, noise(), appliance.Config{}, noE())
		waits := make(chan struct{}, 1)
		p.Wait = func(ctx context.Context, _ string) error {
			waits <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(within(t))
		go func() {
			<-waits
			cancel()
		}()
		r := asking("x", 20, "no-e")
		r.Plugins[0].OnError = onError
		c, err := b.Start(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(within(t)); !isCancelled(err) {
			t.Errorf("%s: ended with %v", onError, err)
		}
		rec := b.log.Ended()[0]
		if rec.Outcome != appliance.OutcomeCancelled || len(rec.Plugins) != 1 || rec.Plugins[0].Error != "" || len(p.Failures()) != 0 {
			t.Errorf("%s: %s, %+v; failures %v", onError, rec.Outcome, rec.Plugins, p.Failures())
		}
		// The partner: one that waits and gets its seat makes the text.
		p.Wait = func(ctx context.Context, _ string) error { return ctx.Err() }
		if got := b.complete(t, asking("x", 20, "no-e")); len(p.Failures()) != 1 || len(got.Tokens) == 0 {
			t.Errorf("%s: %d tokens, failures %v", onError, len(got.Tokens), p.Failures())
		}
	}
}

// TestCloseWhileAPluginStartsAgain: a completion that is closed does not wait for the seat of
// a plugin that failed and opens again.
func TestCloseWhileAPluginStartsAgain(t *testing.T) {
	bad := coded("bad", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
		if f.U(abi.OffStep) == 3 {
			panic(&pipelinetest.Error{Code: "trap"})
		}
		return 0
	})
	b, p := with(t, endlessModel(), appliance.Config{}, bad)
	opened, waits := false, make(chan struct{})
	p.Wait = func(ctx context.Context, _ string) error {
		if !opened {
			opened = true
			return nil
		}
		close(waits)
		<-ctx.Done() // of the test, at the latest
		return ctx.Err()
	}
	r := asking("x", 1000, "bad")
	r.Plugins[0].OnError = "restart"
	c, err := b.Start(within(t), r)
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	from := time.Now()
	c.Close()
	if _, err := c.Wait(within(t)); err == nil || time.Since(from) > patience/2 {
		t.Errorf("%v after %v", err, time.Since(from))
	}
	if got := b.log.Ended()[0].Plugins[0]; got.Code() != "trap" {
		t.Errorf("%+v", got)
	}
}

// TestShadowsAreNotBlamedForACancellation: one that waits to open when the request ends is
// in no report.
func TestShadowsAreNotBlamedForACancellation(t *testing.T) {
	b, p := with(t, noise(), appliance.Config{ShadowPlugins: []appliance.PluginChoice{{Name: "no-e", At: "shadow-plugins"}}}, noE())
	ctx, cancel := context.WithCancel(within(t))
	p.Wait = func(ctx context.Context, _ string) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	c, err := b.Start(ctx, asking("x", 1000))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(within(t)); !isCancelled(err) {
		t.Errorf("ended with %v", err)
	}
	if rec := b.log.Ended()[0]; len(rec.Plugins) != 0 {
		t.Errorf("%+v", rec.Plugins)
	}
}
