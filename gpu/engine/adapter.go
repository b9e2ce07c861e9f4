package engine

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"ganglion/gpu/gguf"
	"ganglion/gpu/model"
)

// MaxAdapters is how many adapters a model may carry: each costs memory, and a look at
// the batch in every operation that it updates.
const MaxAdapters = 16

// AdapterFile names a LoRA file to load with a model.
type AdapterFile struct {
	Path string
	Name string // what requests call it; empty: the file's name without .gguf
}

// AdapterInfo describes a loaded adapter.
type AdapterInfo struct {
	ID      int // place in Config.Adapters, what AdapterScale names
	Name    string
	Path    string
	Hash    string // tells adapter files apart (gguf.File.Hash)
	Bytes   int64  // of the file
	Weights int    // weights of the model that it updates
	Ignored int    // tensors that are not applied (norm weights trained along)
}

// AdapterScale is an adapter and how strongly it acts; a strength of 0 is none.
type AdapterScale struct {
	ID    int
	Scale float32
}

// saltSeed keeps the salts of other processes apart, so that nobody can look for
// strengths whose salts meet.
var saltSeed = maphash.MakeSeed()

// Salt is what Acquire needs to keep sequences with other adapters apart; 0 when no
// adapter acts. The order of the list and strengths of 0 do not count.
func Salt(adapters []AdapterScale) uint64 {
	var acting []AdapterScale
	for _, a := range adapters {
		if a.Scale != 0 {
			acting = append(acting, a)
		}
	}
	if len(acting) == 0 {
		return 0
	}
	slices.SortFunc(acting, func(a, b AdapterScale) int { return a.ID - b.ID })
	var b []byte
	for _, a := range acting {
		b = binary.LittleEndian.AppendUint64(b, uint64(a.ID))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Scale))
	}
	return maphash.Bytes(saltSeed, b) | 1 // never the salt of no adapter
}

// SetAdapters says which adapters act on a slot's rows from now on; others do not.
// It is called after Acquire, before rows are run: the tokens in place were computed
// with the adapters of the salt, so the slot must have been acquired with Salt of the
// same list. Acquire leaves a slot without adapters.
func (e *Engine) SetAdapters(slot int, adapters []AdapterScale) error {
	if slot < 0 || slot >= e.opts.Slots {
		return fmt.Errorf("engine: adapters: slot %d of %d", slot, e.opts.Slots)
	}
	n := len(e.adapters)
	for i, a := range adapters {
		switch f := float64(a.Scale); {
		case a.ID < 0 || a.ID >= n:
			return fmt.Errorf("engine: adapters: no adapter %d, there are %d", a.ID, n)
		case math.IsNaN(f) || math.IsInf(f, 0):
			return fmt.Errorf("engine: adapters: scale of adapter %d is %v", a.ID, a.Scale)
		case slices.ContainsFunc(adapters[:i], func(b AdapterScale) bool { return b.ID == a.ID }):
			return fmt.Errorf("engine: adapters: adapter %d is named twice", a.ID)
		}
	}
	e.clearAdapters(slot)
	for _, a := range adapters {
		e.scales[slot*n+a.ID] = a.Scale
	}
	return nil
}

// clearAdapters leaves a slot without adapters.
func (e *Engine) clearAdapters(slot int) { clear(e.slotScales(slot)) }

// slotScales are the strengths of a slot's rows: [adapters].
func (e *Engine) slotScales(slot int) []float32 {
	n := len(e.adapters)
	return e.scales[slot*n : (slot+1)*n]
}

// openAdapters opens the adapter files; they are closed with the engine.
func (e *Engine) openAdapters(files []AdapterFile) ([]model.Adapter, error) {
	if len(files) > MaxAdapters {
		return nil, fmt.Errorf("engine: %d adapters, at most %d can be loaded", len(files), MaxAdapters)
	}
	var opened []model.Adapter
	for _, a := range files {
		if a.Name == "" {
			a.Name = AdapterName(a.Path)
		}
		if slices.ContainsFunc(opened, func(o model.Adapter) bool { return o.Name == a.Name }) {
			return nil, fmt.Errorf("engine: two adapters are named %q", a.Name)
		}
		f, err := gguf.Open(a.Path)
		if err != nil {
			return nil, fmt.Errorf("engine: adapter %q: %w", a.Name, err)
		}
		e.adapters = append(e.adapters, f)
		opened = append(opened, model.Adapter{Name: a.Name, File: f})
		// A file that loses its end while it is used is an error of the run, as the
		// model's own is.
		step := e.step
		e.step = func() error { return f.Guard(step) }
	}
	return opened, nil
}

// AdapterName is what an adapter is called by its file: the name without ".gguf".
func AdapterName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".gguf") }

// describeAdapters makes the infos of the loaded adapters.
func (e *Engine) describeAdapters(opened []model.Adapter) []AdapterInfo {
	var infos []AdapterInfo
	for i, f := range e.adapters {
		ignored := len(model.IgnoredTensors(f))
		infos = append(infos, AdapterInfo{
			ID: i, Name: opened[i].Name, Path: f.Path(), Hash: f.Hash(), Bytes: f.Size(),
			Weights: (len(f.Tensors()) - ignored) / 2, Ignored: ignored,
		})
	}
	return infos
}

// checkFiles reports a file that was truncated in the meantime.
func (e *Engine) checkFiles() error {
	if err := e.file.Check(); err != nil {
		return err
	}
	for _, f := range e.adapters {
		if err := f.Check(); err != nil {
			return err
		}
	}
	return nil
}
