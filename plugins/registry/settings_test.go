package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// withOne makes a registry of one file, at a clock that the test sets.
func withOne(t *testing.T, builtIn bool) (r *Registry, report func(settings, reason string), now *time.Time) {
	t.Helper()
	now = new(time.Time)
	*now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := Options{Now: func() time.Time { return *now }}
	file := plugin("x", "1.0.0", 0)
	if builtIn {
		o.BuiltIn = fstest.MapFS{"x.wasm": {Data: file}}
	} else {
		o.Dir = t.TempDir()
		put(t, o.Dir, "x.wasm", file)
	}
	r = newRegistry(t, o)
	r.Scan(context.Background())
	plugins, _ := r.List()
	return r, func(settings, reason string) {
		r.Report(Ended{Hash: plugins[0].Hash, Name: "x", Version: "1.0.0", Settings: settings, Reason: reason})
	}, now
}

// usable tells whether x is run with settings.
func usable(t *testing.T, r *Registry, settings string, want bool) {
	t.Helper()
	plugins, _ := r.List()
	if err := r.Usable(plugins[0].Hash, settings); (err == nil) != want || err != nil && !errors.Is(err, ErrSettings) {
		t.Errorf("settings %q: %v, want usable: %v", settings, err, want)
	}
}

// TestSettingsOfRequestsTakeNoPluginFromOthers: however many requests fail with settings of
// their own, the plugin is there for all others; with its own settings, three failures
// quarantine it as ever.
func TestSettingsOfRequestsTakeNoPluginFromOthers(t *testing.T) {
	r, report, _ := withOne(t, false)
	for n := range 10 * settingsKept {
		report(fmt.Sprint(n), "fuel")
	}
	for range 3 * tolerate {
		report("bad", "fuel")
	}
	want(t, r, "x", "", "1.0.0", nil)
	usable(t, r, "good", true)
	usable(t, r, "bad", false)
	if len(r.settings) != settingsKept {
		t.Errorf("%d settings are kept, at most %d are", len(r.settings), settingsKept)
	}
	// The partner: the same failures without settings of a request.
	for range tolerate {
		want(t, r, "x", "", "1.0.0", nil)
		report("", "fuel")
	}
	want(t, r, "x", "", "", ErrQuarantined)
}

// TestThePluginsOfTheBinaryAreNotQuarantined: no file would ever take their place.
func TestThePluginsOfTheBinaryAreNotQuarantined(t *testing.T) {
	r, report, _ := withOne(t, true)
	for range 3 * tolerate {
		report("", "fuel")
		report("bad", "trap")
	}
	want(t, r, "x", "", "1.0.0", nil)
	usable(t, r, "bad", false)
}

// TestSettingsAreTriedAgain: after a while, and after somebody cleared the file; and what
// works now and then is run.
func TestSettingsAreTriedAgain(t *testing.T) {
	r, report, now := withOne(t, false)
	fail := func(times int) {
		for range times {
			report("s", "fuel")
		}
	}
	fail(tolerate - 1)
	usable(t, r, "s", true)
	fail(1)
	usable(t, r, "s", false)
	plugins, _ := r.List()
	if err := r.Usable(plugins[0].Hash, "s"); !strings.Contains(err.Error(), "(fuel)") || !strings.Contains(err.Error(), "in 10 minutes") {
		t.Errorf("%v", err)
	}
	report("s", "") // one that began before
	usable(t, r, "s", false)
	*now = now.Add(settingsTime)
	usable(t, r, "s", true)
	fail(tolerate - 1)
	usable(t, r, "s", true)
	for range watched {
		report("s", "")
	}
	if len(r.settings) != 0 {
		t.Errorf("%d settings that work are kept", len(r.settings))
	}
	fail(tolerate - 1)
	usable(t, r, "s", true)
	fail(1)
	usable(t, r, "s", false)
	if ok, err := r.Clear(plugins[0].Hash); ok || err != nil { // the file was not in quarantine
		t.Error(ok, err)
	}
	usable(t, r, "s", true)
}

// TestSettingsOfAnotherFile: an update begins with a clean record.
func TestSettingsOfAnotherFile(t *testing.T) {
	r, report, _ := withOne(t, false)
	for range tolerate {
		report("s", "trap")
	}
	usable(t, r, "s", false)
	put(t, r.o.Dir, "x.wasm", plugin("x", "1.0.1", 0))
	r.Scan(context.Background())
	usable(t, r, "s", true)
	if len(r.settings) != 0 {
		t.Errorf("%d settings of a file that is gone", len(r.settings))
	}
}
