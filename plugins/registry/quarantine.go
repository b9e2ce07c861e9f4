package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ganglion/plugins/host"
)

// When a plugin is quarantined.
const (
	watched  = 20 // requests
	tolerate = 3  // failures among them
)

// Quarantined is why a file is not given out.
type Quarantined struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
}

// record is the latest requests of one file: bit set = failed, the latest lowest.
type record struct{ failed uint32 }

func (r *record) add(failed bool) (failures int) {
	r.failed <<= 1
	if failed {
		r.failed |= 1
	}
	r.failed &= 1<<watched - 1
	for b := r.failed; b != 0; b &= b - 1 {
		failures++
	}
	return failures
}

// excused are failures that those who send requests can bring about with a plugin that
// works: a configuration that it refuses, a text too long for its memory or its buffers.
// They do not count, or three such requests would take a plugin from everybody.
var excused = map[string]bool{
	string(host.CodeOpen): true, string(host.CodeMemory): true, string(host.CodeQuota): true, string(host.CodeLivelock): true,
}

// Ended is how a request went for a plugin that Open gave out.
type Ended struct {
	Hash, Name, Version string
	// Settings is the hash of those that the request chose; empty: it ran with the
	// plugin's own, or with the operator's.
	Settings string
	Reason   string // code of its failure; empty: it did not fail
}

// Report takes in how a request went. A failure with settings of a request counts against
// these (settings.go), any other one against the file: what is not installed by the
// operator is no evidence against what is. The plugins of the binary are not quarantined:
// no other file will ever take their place, and their tests are ours.
func (r *Registry) Report(e Ended) {
	if excused[e.Reason] {
		return
	}
	if e.Settings != "" {
		if r.countSettings(&e) {
			r.o.Log.Warn("plugin is not run with some settings for a while", "plugin", e.Name, "version", e.Version, "settings", e.Settings, "reason", e.Reason)
		}
		return
	}
	if r.count(&e) {
		r.o.Log.Warn("plugin quarantined", "plugin", e.Name, "version", e.Version, "reason", e.Reason)
		_ = r.saveQuarantine() // it was logged
	}
}

// count tells whether the plugin is quarantined now.
func (r *Registry) count(e *Ended) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if owner, ok := r.owners[e.Hash]; ok && owner == "" {
		return false
	}
	rec := r.records[e.Hash]
	if rec == nil {
		rec = &record{}
		r.records[e.Hash] = rec
	}
	if rec.add(e.Reason != "") < tolerate || e.Reason == "" {
		return false
	}
	if _, already := r.quarantined[e.Hash]; already {
		return false
	}
	r.quarantined[e.Hash] = Quarantined{e.Name, e.Version, e.Reason, r.o.Now().UTC()}
	return true
}

// Clear takes a file out of quarantine by its hash, and all settings with it. It tells
// whether the file was there.
func (r *Registry) Clear(hash string) (bool, error) {
	r.mu.Lock()
	_, ok := r.quarantined[hash]
	delete(r.quarantined, hash)
	delete(r.records, hash)
	r.forgetSettings(func(of string) bool { return of == hash })
	r.mu.Unlock()
	if !ok {
		return false, nil
	}
	return true, r.saveQuarantine()
}

// loadQuarantine reads the file. One that is damaged counts as none: plugins that fail
// get there again soon enough.
func (r *Registry) loadQuarantine() {
	if r.o.State == "" {
		return
	}
	text, err := os.ReadFile(r.o.State)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &r.quarantined)
	}
	if err != nil || r.quarantined == nil {
		r.quarantined = map[string]Quarantined{}
		r.o.Log.Warn("the list of quarantined plugins cannot be read", "error", err)
	}
}

// saveQuarantine writes the file whole or not at all. Nobody waits for the disk but who
// changed the list.
func (r *Registry) saveQuarantine() error {
	if r.o.State == "" {
		return nil
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.RLock()
	text, err := json.MarshalIndent(r.quarantined, "", "\t")
	r.mu.RUnlock()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.o.State), 0o700)
	}
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(filepath.Dir(r.o.State), "."+filepath.Base(r.o.State)+"-*")
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(f.Name(), r.o.State)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		err = fmt.Errorf("registry: quarantine: %w", err)
		r.o.Log.Warn("the list of quarantined plugins cannot be written", "error", err)
	}
	return err
}
