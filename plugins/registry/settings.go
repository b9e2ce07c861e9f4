package registry

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// What happens to settings with which a plugin fails as often as a file may before it is
// quarantined. A grammar or a schema is a program that a request brings: one that burns all
// fuel says nothing of the plugin, and were it counted against the file, three requests of
// one client would take the plugin from all others. So the plugin is not run with these
// settings for a while, which spares those who send them again and again three tenths of a
// second of a processor each, and goes on with all others.
const (
	settingsTime = 10 * time.Minute
	settingsKept = 256 // with which something failed, of all plugins
)

// ErrSettings says that a plugin is not run with some settings for a while.
var ErrSettings = errors.New("registry: the plugin failed too often with these settings")

// chosen is a file with settings that a request chose, by their hashes.
type chosen struct{ file, settings string }

// chosenRecord is how requests with them went.
type chosenRecord struct {
	record
	reason string    // of the latest failure
	failed time.Time // then
	until  time.Time // it is not run before
}

// Usable tells whether a plugin is run with settings that a request chose. The error wraps
// ErrSettings.
func (r *Registry) Usable(hash, settings string) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	rec := r.settings[chosen{hash, settings}]
	if rec == nil {
		return nil
	}
	if left := rec.until.Sub(r.o.Now()); left > 0 {
		return fmt.Errorf("%w (%s); it is tried with them again in %d minutes", ErrSettings, rec.reason, (left+time.Minute-1)/time.Minute)
	}
	return nil
}

// countSettings tells whether the plugin is no longer run with its settings.
func (r *Registry) countSettings(e *Ended) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, now := chosen{e.Hash, e.Settings}, r.o.Now()
	rec := r.settings[of]
	switch {
	case rec == nil && e.Reason == "":
		return false // nothing is kept of settings that work
	case rec == nil:
		r.makeRoom()
		rec = &chosenRecord{}
		r.settings[of] = rec
	case now.Before(rec.until):
		return false // it began before
	}
	failures := rec.add(e.Reason != "")
	if e.Reason != "" {
		rec.reason, rec.failed = e.Reason, now
	}
	switch {
	case failures == 0:
		delete(r.settings, of)
		return false
	case e.Reason == "" || failures < tolerate:
		return false
	}
	rec.record, rec.until = record{}, now.Add(settingsTime) // then they begin anew
	return true
}

// makeRoom forgets the settings whose latest failure is longest ago where there are as
// many as are kept; r.mu is held.
func (r *Registry) makeRoom() {
	if len(r.settings) < settingsKept {
		return
	}
	var oldest chosen
	var at time.Time
	for of, rec := range r.settings {
		if oldest.file == "" || rec.failed.Before(at) {
			oldest, at = of, rec.failed
		}
	}
	delete(r.settings, oldest)
}

// forgetSettings forgets those of some files; r.mu is held.
func (r *Registry) forgetSettings(file func(hash string) bool) {
	maps.DeleteFunc(r.settings, func(of chosen, _ *chosenRecord) bool { return file(of.file) })
}
