package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/media/film"
	"ganglion/gpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
)

// models finds model files and loads them into the service. It is safe for
// concurrent use; it owns the machine whose backends the models run on.
type models struct {
	e       *env
	s       *settings
	service *appliance.Service
	life    context.Context // of the process: loads outlive the requests that ask for them

	machine *gpu.Machine
	films   *film.Engine
}

// start loads the model that the settings name, or the first one found.
func (m *models) start(ctx context.Context) {
	if f, ok := m.s.named(ctx); ok {
		m.load(f)
		return
	}
	found := m.Found(ctx)
	if i := slices.IndexFunc(found, func(f appliance.Found) bool { return f.Available }); i >= 0 {
		m.load(found[i])
		return
	}
	m.e.note("no model was found; put a .gguf file into %s or name one with --model", m.s.modelsDir())
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
	update, end := m.e.progress("loading " + f.Name)
	m.service.Load(m.life, func(ctx context.Context, progress func(done, total int64)) (appliance.Model, error) {
		began := time.Now()
		b, err := m.s.openBackend(ctx, m.machine, f)
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
		end() // before anything is printed on its line
		if err != nil {
			return nil, err
		}
		info := loaded.Info()
		m.e.note("loaded %s in %.1f s: %s, %s numerics, %d slots of %d tokens", info.Name, time.Since(began).Seconds(), info.Device, info.Numerics, info.Slots, info.Context)
		m.s.noteMoved(info)
		m.s.noteDivided(info)
		m.s.noteAdapters(info)
		guessed, err := m.s.withDraft(ctx, appliance.FromEngine(loaded), b, info.Slots)
		if err != nil {
			return nil, errors.Join(err, loaded.Close())
		}
		seeing, err := m.s.withEncoder(ctx, guessed, f, b)
		if err != nil {
			return nil, errors.Join(err, guessed.Close())
		}
		if _, ok := seeing.(appliance.Seeing); ok {
			go m.warmFilms()
		}
		return seeing, nil
	}, f.Name)
}

// warmFilms compiles the decoder of films, which the first start of this version does, so
// that the first film need not wait for it.
func (m *models) warmFilms() {
	if m.films.Status().State == film.Absent {
		return
	}
	slow := time.AfterFunc(2*time.Second, func() {
		m.e.note("compiling the decoder of films in the background; later starts find it compiled")
	})
	defer slow.Stop()
	began := time.Now()
	if err := m.films.Prepare(m.life); err != nil {
		if m.life.Err() == nil {
			m.e.note("the decoder of films was not compiled: %v", err)
		}
		return
	}
	if !slow.Stop() {
		m.e.note("compiled the decoder of films in %.1f s", time.Since(began).Seconds())
	}
}

// engine is the configuration that the settings describe.
func (s *settings) engine(b ops.Backend) engine.Config {
	c := engine.Config{Backend: b, Adapters: appliance.AdapterFiles(s.LoRA), Context: s.Context, Slots: s.Slots, Threads: s.Threads, Available: engine.AvailableMemory,
		CacheTokens: s.CacheTokens, SnapshotBytes: s.SnapshotBytes, MaxRows: max(512, s.ImageTokens)} // a picture may have to be read at once
	if s.CacheTokens == 0 {
		c.CacheTokens = -1 // 0 would be the engine's default
	}
	if s.Numerics == "exact" {
		c.Numerics = ops.Exact
	}
	if kv, err := ops.ParseKVType(s.KV); err == nil { // Validate has refused other names
		c.KV = kv
	}
	if o, ok := b.(*gpu.Opened); ok {
		c.Recover = o.Recovery()
	}
	return c
}

// withDraft joins a model with the smaller one that the settings name, if they do. After
// an error the model still belongs to the caller.
func (s *settings) withDraft(ctx context.Context, m appliance.Model, b ops.Backend, slots int) (appliance.Model, error) {
	if s.Speculation() != appliance.SpeculateDraft {
		return m, nil
	}
	c := s.engine(b)
	c.Path, c.Slots, c.Context = s.DraftModel, slots, m.Info().Context
	c.Adapters = nil // they are the model's; the draft only guesses what it says
	e, err := engine.Open(ctx, c)
	if err != nil {
		return nil, modelError(fmt.Errorf("draft model: %w", err))
	}
	joined, err := appliance.WithDraft(m, appliance.FromEngine(e))
	if err != nil {
		return nil, errors.Join(modelError(err), e.Close())
	}
	return joined, nil
}

// open loads the model for a verb that runs in this process.
func (s *settings) open(ctx context.Context, slots int) (*closingEngine, error) {
	f, err := s.modelFile(ctx)
	if err != nil {
		return nil, err
	}
	machine := s.machine()
	b, err := s.openBackend(ctx, machine, f)
	if err != nil {
		return nil, errors.Join(err, machine.Close())
	}
	c := s.engine(b)
	c.Path, c.Slots = f.Path, slots
	if s.alone {
		c.Recover = nil
	}
	if c.Offset, c.Size, err = s.place(f); err != nil {
		return nil, errors.Join(modelError(err), machine.Close())
	}
	update, end := s.e.progress("loading " + f.Name)
	c.Progress = update
	m, err := engine.Open(ctx, c)
	end()
	if err != nil {
		return nil, errors.Join(modelError(err), machine.Close())
	}
	s.noteMoved(m.Info())
	s.noteDivided(m.Info())
	s.noteAdapters(m.Info())
	return &closingEngine{Engine: m, found: f, backend: b, machine: machine, adapters: appliance.DefaultAdapters(s.LoRA)}, nil
}

// closingEngine closes its machine too.
type closingEngine struct {
	*engine.Engine
	found    appliance.Found
	backend  *gpu.Opened
	machine  *gpu.Machine
	adapters []engine.AdapterScale // what acts by default
}

// model is the engine as the service drives it; closing it closes the machine too.
func (c *closingEngine) model() appliance.Model {
	return closingModel{appliance.FromEngine(c.Engine), c}
}

type closingModel struct {
	appliance.Model
	engine *closingEngine
}

func (m closingModel) Close() error { return m.engine.Close() }

func (c *closingEngine) Close() error { return errors.Join(c.Engine.Close(), c.machine.Close()) }

// modelFile is the file that --model names, the embedded one, or the first found.
func (s *settings) modelFile(ctx context.Context) (appliance.Found, error) {
	if f, ok := s.named(ctx); ok {
		return f, nil
	}
	for _, f := range s.discover(ctx) {
		if f.Available {
			s.e.note("using %s (%s)", f.Path, f.Source)
			return f, nil
		}
	}
	return appliance.Found{}, fail(exitModel, "name a file with --model, or put one into "+s.modelsDir(), "no model was found on this machine")
}

// openFile opens a found model's file alone. The caller closes it.
func (s *settings) openFile(f appliance.Found) (*gguf.File, error) {
	offset, size, err := s.place(f)
	if err != nil {
		return nil, modelError(err)
	}
	var file *gguf.File
	if size > 0 {
		file, err = gguf.OpenAt(f.Path, offset, size)
	} else {
		file, err = gguf.Open(f.Path)
	}
	return file, modelError(err)
}

// checkNamed opens the files that --model, --lora and --draft-model name and closes them:
// what somebody named by hand and is no model file is told at once, not by a server that
// never gets ready.
func (s *settings) checkNamed(ctx context.Context) error {
	if err := s.checkAdapters(); err != nil {
		return err
	}
	if s.Speculation() == appliance.SpeculateDraft {
		draft, err := gguf.Open(s.DraftModel)
		if err != nil {
			return modelError(fmt.Errorf("draft model: %w", err))
		}
		if err := draft.Close(); err != nil {
			return err
		}
	}
	f, ok := s.named(ctx)
	if !ok {
		return nil
	}
	file, err := s.openFile(f)
	if err != nil {
		return err
	}
	return file.Close()
}

// vocabulary opens the tokenizer of the model file alone.
func (s *settings) vocabulary(ctx context.Context) (*tokenizer.Tokenizer, error) {
	found, err := s.modelFile(ctx)
	if err != nil {
		return nil, err
	}
	f, err := s.openFile(found)
	if err != nil {
		return nil, err
	}
	v, err := tokenizer.New(f)
	if err != nil {
		return nil, modelError(errors.Join(err, f.Close()))
	}
	return v, f.Close()
}

// modelError marks an error as one of the model file, unless it has a kind already.
func modelError(err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) || errors.Is(err, engine.ErrTooLarge) || errors.Is(err, context.Canceled) {
		return err
	}
	hint := "`ganglion inspect FILE` shows what a model file holds"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "`ganglion list` shows the models found on this machine"
	}
	return &failure{err: fmt.Errorf("%w", err), code: exitModel, hint: hint}
}
