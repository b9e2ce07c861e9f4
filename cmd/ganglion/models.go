package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"ganglion/appliance"
	"ganglion/gpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
)

// models finds model files and loads them into the service. It is safe for
// concurrent use; it owns the backend of the models it loads.
type models struct {
	e       *env
	s       *settings
	service *appliance.Service

	mu      sync.Mutex
	ctx     context.Context // life of the process; loads end with it
	backend ops.Backend
}

// start loads the model that the settings name, or the first one found.
func (m *models) start(ctx context.Context) {
	m.mu.Lock()
	m.ctx = ctx
	m.mu.Unlock()
	found := m.Found(ctx)
	i := slices.IndexFunc(found, func(f appliance.Found) bool { return f.Available })
	if m.s.Model != "" {
		i = slices.IndexFunc(found, func(f appliance.Found) bool { return f.Source == "flag" })
		if i < 0 {
			m.load(appliance.Found{Name: filepath.Base(m.s.Model), Path: m.s.Model, Source: "flag"})
			return
		}
	}
	if i < 0 {
		m.e.note("ganglion: no model was found; put a .gguf file into %s or name one with --model", m.s.modelsDir())
		return
	}
	m.load(found[i])
}

// Found lists the models of this machine.
func (m *models) Found(ctx context.Context) []appliance.Found { return m.s.discover(ctx) }

// Load begins to load a found model.
func (m *models) Load(ctx context.Context, id string) error {
	for _, f := range m.Found(ctx) {
		if f.ID == id {
			m.load(f)
			return nil
		}
	}
	return appliance.Errorf(appliance.CodeNotFound, "id", "no model with this id is on the machine now")
}

func (m *models) load(f appliance.Found) {
	m.mu.Lock()
	ctx := m.ctx
	m.mu.Unlock()
	update, end := m.e.progress("loading " + f.Name)
	m.service.Load(ctx, func(ctx context.Context, progress func(done, total int64)) (appliance.Model, error) {
		defer end()
		b, err := m.open()
		if err != nil {
			return nil, err
		}
		c := m.s.engine(b)
		c.Path = f.Path
		if c.Offset, c.Size, err = m.s.place(f); err != nil {
			return nil, err
		}
		c.Progress = func(done, total int64) {
			progress(done, total)
			if update != nil {
				update(done, total)
			}
		}
		loaded, err := engine.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		return appliance.FromEngine(loaded), nil
	}, f.Name)
}

// open opens the backend once.
func (m *models) open() (ops.Backend, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.backend != nil {
		return m.backend, nil
	}
	b, err := gpu.Open(m.s.Backend)
	if err != nil {
		return nil, err
	}
	m.backend = b
	return b, nil
}

// close closes the backend; the service must have closed its models before.
func (m *models) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.backend == nil {
		return nil
	}
	err := m.backend.Close()
	m.backend = nil
	return err
}

// engine is the configuration that the settings describe.
func (s *settings) engine(b ops.Backend) engine.Config {
	c := engine.Config{Backend: b, Context: s.Context, Slots: s.Slots, Threads: s.Threads, Available: engine.AvailableMemory}
	if s.Numerics == "exact" {
		c.Numerics = ops.Exact
	}
	if s.KV == "f32" {
		kv := ops.KVF32
		c.KV = &kv
	}
	return c
}

// open loads the model for a verb that runs in this process.
func (s *settings) open(ctx context.Context, slots int) (*closingEngine, error) {
	path, offset, size, err := s.modelFile(ctx)
	if err != nil {
		return nil, err
	}
	b, err := gpu.Open(s.Backend)
	if err != nil {
		return nil, err
	}
	c := s.engine(b)
	c.Path, c.Offset, c.Size, c.Slots = path, offset, size, slots
	update, end := s.e.progress("loading " + filepath.Base(path))
	c.Progress = update
	m, err := engine.Open(ctx, c)
	end()
	if err != nil {
		return nil, errors.Join(modelError(err), b.Close())
	}
	return &closingEngine{Engine: m, backend: b}, nil
}

// closingEngine closes its backend too.
type closingEngine struct {
	*engine.Engine
	backend ops.Backend
}

// model is the engine as the service drives it; closing it closes the backend too.
func (c *closingEngine) model() appliance.Model {
	return closingModel{appliance.FromEngine(c.Engine), c}
}

type closingModel struct {
	appliance.Model
	engine *closingEngine
}

func (m closingModel) Close() error { return m.engine.Close() }

func (c *closingEngine) Close() error { return errors.Join(c.Engine.Close(), c.backend.Close()) }

// modelFile is the file that --model names, the embedded one, or the first found.
func (s *settings) modelFile(ctx context.Context) (path string, offset, size int64, err error) {
	if s.Model != "" {
		return s.Model, 0, 0, nil
	}
	for _, f := range s.discover(ctx) {
		if f.Available {
			s.e.note("ganglion: using %s (%s)", f.Path, f.Source)
			offset, size, err := s.place(f)
			return f.Path, offset, size, err
		}
	}
	return "", 0, 0, fail(exitModel, "name a file with --model, or put one into "+s.modelsDir(), "no model was found on this machine")
}

// vocabulary opens the tokenizer of the model file alone.
func (s *settings) vocabulary() (*tokenizer.Tokenizer, error) {
	path, offset, size, err := s.modelFile(context.Background())
	if err != nil {
		return nil, err
	}
	var f *gguf.File
	if size > 0 {
		f, err = gguf.OpenAt(path, offset, size)
	} else {
		f, err = gguf.Open(path)
	}
	if err != nil {
		return nil, modelError(err)
	}
	v, err := tokenizer.New(f)
	if err != nil {
		return nil, modelError(errors.Join(err, f.Close()))
	}
	return v, f.Close()
}

// modelError marks an error as one of the model file.
func modelError(err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) || errors.Is(err, engine.ErrTooLarge) || errors.Is(err, context.Canceled) {
		return err
	}
	return &failure{err: fmt.Errorf("%w", err), code: exitModel}
}
