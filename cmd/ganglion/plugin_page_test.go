package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/plugins/host"
	"ganglion/plugins/registry"
)

func TestPluginCosts(t *testing.T) {
	var c pluginCosts
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.add(&appliance.PluginReport{Hash: "a", Tokens: 10, MicrosPer: 1, FuelPer: 100, OnceUS: 7, OnceFuel: 1000, Changed: 2}, now)
	c.add(&appliance.PluginReport{Hash: "a", Tokens: 30, MicrosPer: 5, FuelPer: 500, OnceUS: 9, OnceFuel: 3000, Changed: 1, Error: "trap: unreachable"}, now)
	c.add(&appliance.PluginReport{Hash: "b", Tokens: 0, MicrosPer: 7}, now)
	got := c.of("a")
	if got.Requests != 2 || got.Tokens != 40 || got.Changed != 3 || got.MicrosPer != 4 || got.FuelPer != 400 || got.OnceUS != 8 || got.OnceFuel != 2000 ||
		got.Failures != 1 || got.LastError != "trap: unreachable" || !got.LastFailureAt.Equal(now) {
		t.Errorf("%+v", got)
	}
	if got := c.of("b"); got.MicrosPer != 7 || got.Tokens != 0 {
		t.Errorf("%+v", got)
	}
	c.keep(map[string]bool{"b": true})
	if got := c.of("a"); got.Requests != 0 {
		t.Errorf("kept %+v", got)
	}
	if got := c.of("b"); got.Requests != 1 {
		t.Errorf("forgot %+v", got)
	}
}

// TestWaitingForPlugins: a request waits for a plugin that is being loaded no longer than it
// is wanted itself, and no longer than the server's patience; then it may come again.
func TestWaitingForPlugins(t *testing.T) {
	runtime, err := host.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.Close()
	r, err := registry.New(registry.Options{Runtime: runtime}) // it never scans
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := &plugins{registry: r, patience: time.Hour}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	from := time.Now()
	if _, err := p.Find(ctx, "late", ""); !errors.Is(err, context.DeadlineExceeded) || time.Since(from) > patience {
		t.Errorf("cancelled: %v after %v", err, time.Since(from))
	}
	p.patience = 20 * time.Millisecond
	var e *appliance.Error
	if _, err := p.Find(context.Background(), "late", ""); !errors.As(err, &e) || e.Code != appliance.CodeLoading || e.RetryAfter == 0 {
		t.Errorf("out of patience: %v", err)
	}
	r.Scan(context.Background())
	if _, err := p.Find(context.Background(), "late", ""); !errors.Is(err, appliance.ErrNoPlugin) {
		t.Errorf("when all are loaded: %v", err)
	}
}
