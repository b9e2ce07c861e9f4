package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
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

// Report tells how a request went for a plugin that Open gave out; reason says why it
// failed, "" that it did not.
func (r *Registry) Report(hash, name, version, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.records[hash]
	if rec == nil {
		rec = &record{}
		r.records[hash] = rec
	}
	if rec.add(reason != "") < tolerate || reason == "" {
		return
	}
	if _, already := r.quarantined[hash]; already {
		return
	}
	r.quarantined[hash] = Quarantined{name, version, reason, r.o.Now().UTC()}
	r.o.Log.Warn("plugin quarantined", "plugin", name, "version", version, "reason", reason)
	_ = r.saveQuarantine() // it was logged
}

// Clear takes a file out of quarantine by its hash. It tells whether it was there.
func (r *Registry) Clear(hash string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.quarantined[hash]; !ok {
		return false, nil
	}
	delete(r.quarantined, hash)
	delete(r.records, hash)
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

// saveQuarantine writes the file whole or not at all.
func (r *Registry) saveQuarantine() error {
	if r.o.State == "" {
		return nil
	}
	text, err := json.MarshalIndent(r.quarantined, "", "\t")
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
