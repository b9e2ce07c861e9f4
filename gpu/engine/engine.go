package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"ganglion/gpu/gguf"
	"ganglion/gpu/kvcache"
	"ganglion/gpu/model"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
)

// KernelSet names the set of kernels and reduction orders; it is part of every
// record, for a logged answer replays to the same bytes only on the same set.
const KernelSet = "3"

// Config says what to load and how to run it. Zero values of Context, Slots,
// MaxRows and Threads take the defaults below.
type Config struct {
	Path         string // model file
	Offset, Size int64  // the file inside another one (an appended model); Size 0 = all of Path
	Backend      ops.Backend
	Numerics     ops.Numerics
	KV           ops.KVType // the zero value is f16
	Context      int        // default min(trained, 4096)
	Slots        int        // default 4
	MaxRows      int        // default 512
	Threads      int        // default 1
	// CacheTokens is how many positions of finished sequences are kept for reuse even
	// while every slot is full (slots that are not full keep more); default
	// DefaultCacheTokens, negative for none.
	CacheTokens int
	// SnapshotBytes bounds the snapshots of recurrent state that are kept for reuse;
	// default DefaultSnapshots of them, at most DefaultSnapshotBytes; negative for none.
	SnapshotBytes int64
	// Adapters are LoRA files to load along, in the order of their ids; see SetAdapters.
	Adapters []AdapterFile
	// Available returns the free memory of the machine in bytes, 0 for unknown.
	Available func() int64
	Progress  func(done, total int64)
	// Recover, when not nil, is asked for the backend to go on with when one has failed,
	// in a run or when the plan was loaded; failures counts those of this engine from 1.
	// nil says that there is none. The backend belongs to who gave it, as Backend does, and
	// must stay open as long as the engine.
	Recover func(failure error, failures int) (ops.Backend, error)
}

// DefaultContext is the context length when none is asked for.
const DefaultContext = 4096

// The defaults of what is kept of finished sequences.
const (
	DefaultCacheTokens   = 1024
	DefaultSnapshots     = 32
	DefaultSnapshotBytes = 256 << 20
)

// ErrTooLarge is wrapped when the memory forecast exceeds what is free.
var ErrTooLarge = errors.New("not enough memory")

// Engine is a loaded model. Acquire, Release, SetAdapters, Mark, Truncate, Run and
// ScratchBytes belong to one goroutine at a time; the other methods may be called from
// any.
type Engine struct {
	config Config
	file   *gguf.File
	vocab  *tokenizer.Tokenizer
	plan   *ops.Plan
	opts   ops.Options
	train  int   // positions the model was trained for
	seat   *seat // where it runs
	cache  *kvcache.Cache

	failures int              // of backends so far
	lost     error            // why nothing can be run any more
	leaving  sync.WaitGroup   // seats that are being closed
	undo     kvcache.Sequence // of a slot before tokens are taken back

	adapters []*gguf.File
	scales   []float32 // strengths: [slots][adapters]
	loaded   []AdapterInfo
	info     atomic.Pointer[Info]

	rebuild func(slot, pos int, token int32) Row // see Rebuild
	media   media

	batch   ops.Batch
	result  ops.Result
	touched []int     // slots of the running batch
	whole   bool      // the batch ran to its end
	stop    *ops.Stop // of the next batch
	current ops.Program
	step    func() error // runs current; made once, for a closure costs an allocation

	closing sync.Once
	closed  error
}

// Open loads a model. Everything that can be refused is refused before weights are
// read; on error nothing stays open.
func Open(ctx context.Context, c Config) (*Engine, error) {
	f, err := openFile(c)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: c, file: f, seat: &seat{backend: c.Backend}}
	e.step = func() error { return e.current.Run(&e.batch, &e.result) }
	if err := e.load(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func openFile(c Config) (*gguf.File, error) {
	if c.Size > 0 {
		return gguf.OpenAt(c.Path, c.Offset, c.Size)
	}
	return gguf.Open(c.Path)
}

func (e *Engine) load(ctx context.Context) error {
	c, err := e.config, error(nil)
	if e.vocab, err = tokenizer.New(e.file); err != nil {
		return err
	}
	if e.train, err = trainContext(e.file); err != nil {
		return err
	}
	e.opts = options(c, e.train)
	adapters, err := e.openAdapters(c.Adapters)
	if err != nil {
		return err
	}
	if e.plan, err = model.New(e.file, model.Options{Context: e.opts.Context, Adapters: adapters}); err != nil {
		return err
	}
	if n := e.vocab.VocabSize(); n > e.plan.Vocab {
		return fmt.Errorf("engine: the tokenizer has %d tokens, the embedding table %d", n, e.plan.Vocab)
	}
	e.opts.Snapshots = snapshots(c.SnapshotBytes, e.plan.StateBytes())
	if err := e.forecast(c.Backend); err != nil {
		return err
	}
	moved := ""
	if err := e.take(ctx, c.Backend, c.Progress); err != nil {
		if !e.recoverable(err) {
			return err
		}
		from, cause := e.place(), err
		if err := e.next(ctx, err, c.Progress); err != nil {
			return err
		}
		moved = e.movedText(from, cause)
	}
	e.cache = kvcache.New(e.plan, e.opts, e.seat.runtime)
	e.scales = make([]float32, e.opts.Slots*len(e.adapters))
	e.loaded = e.describeAdapters(adapters)
	info := e.describe()
	info.Moved = moved
	e.info.Store(&info)
	return nil
}

// PlanOf is the plan of a model file and the options that a configuration gives it, as
// Open makes them; the plan is valid as long as the file is open. Adapters are left out.
func PlanOf(f *gguf.File, c Config) (*ops.Plan, ops.Options, error) {
	train, err := trainContext(f)
	if err != nil {
		return nil, ops.Options{}, err
	}
	o := options(c, train)
	p, err := model.New(f, model.Options{Context: o.Context})
	if err != nil {
		return nil, o, err
	}
	o.Snapshots = snapshots(c.SnapshotBytes, p.StateBytes())
	return p, o, nil
}

// options fills the defaults in.
func options(c Config, train int) ops.Options {
	o := ops.Options{Slots: c.Slots, Context: c.Context, MaxRows: c.MaxRows, Numerics: c.Numerics, Threads: max(c.Threads, 1)}
	if o.Context <= 0 {
		o.Context = min(train, DefaultContext)
	}
	if o.Slots <= 0 {
		o.Slots = 4
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 512
	}
	o.MaxRows = min(o.MaxRows, o.Context)
	o.KV = c.KV
	tokens := c.CacheTokens
	if tokens == 0 {
		tokens = DefaultCacheTokens
	}
	o.Spare = (max(tokens, 0) + ops.PageSize - 1) / ops.PageSize
	return o
}

// snapshots is how many snapshots of a state of some bytes are kept.
func snapshots(limit, state int64) int {
	switch {
	case state == 0 || limit < 0:
		return 0
	case limit == 0:
		return int(min(DefaultSnapshots, DefaultSnapshotBytes/state))
	}
	return int(min(limit/state, 1<<20))
}

func trainContext(f *gguf.File) (int, error) {
	key := f.Architecture() + ".context_length"
	n, ok := f.Uint(key)
	if !ok || n == 0 || n >= 1<<31 {
		return 0, fmt.Errorf("engine: key %q is missing or out of range", key)
	}
	return int(n), nil
}

// Forecast is what a plan needs in bytes beside the mapping of the file.
type Forecast struct{ Weights, KV, Scratch int64 }

// Total is the sum.
func (f Forecast) Total() int64 { return f.Weights + f.KV + f.Scratch }

// NewForecast computes the need of a plan; repacked weights are taken to be as
// large as the file's.
func NewForecast(p *ops.Plan, o ops.Options) Forecast {
	return Forecast{Weights: p.WeightBytes(), KV: p.KVBytes(o), Scratch: p.ScratchBytes(o, maxOuts)}
}

// Times is the need of a plan that lies in memory some times over (ops.Copied).
func (f Forecast) Times(n int) Forecast {
	return Forecast{f.Weights * int64(n), f.KV * int64(n), f.Scratch * int64(n)}
}

// Forecast is what the loaded plan needs where it runs.
func (e *Engine) Forecast() Forecast {
	return NewForecast(e.plan, e.opts).Times(ops.Copies(e.seat.backend))
}

// forecast refuses a backend for which the machine has too little memory.
func (e *Engine) forecast(b ops.Backend) error {
	if e.config.Available == nil {
		return nil
	}
	free := e.config.Available()
	need := NewForecast(e.plan, e.opts).Times(ops.Copies(b)).Total()
	if free > 0 && need > free {
		return fmt.Errorf("engine: %w: the model needs %d MiB at context %d with %d slots, %d MiB are free",
			ErrTooLarge, need>>20, e.opts.Context, e.opts.Slots, free>>20)
	}
	return nil
}

func (e *Engine) describe() Info {
	c, b, m := e.config, e.seat.backend, e.seat.runtime.Memory()
	info := Info{
		Name: strings.TrimSuffix(filepath.Base(c.Path), ".gguf"), Path: c.Path, Hash: e.file.Hash(),
		Architecture: e.file.Architecture(), FileBytes: e.file.Size(),
		Vocab: e.plan.Vocab, EmbedWidth: e.plan.EmbedWidth(), Context: e.opts.Context, TrainContext: e.train, Slots: e.opts.Slots, MaxRows: e.opts.MaxRows,
		Backend: b.Name(), Device: b.Caps().Device, Numerics: e.opts.Numerics.String(), KV: e.opts.KV.String(),
		Kernels: KernelSet, Threads: e.opts.Threads,
		WeightBytes: m.Weights, KVBytes: m.KV + e.cache.Reserved(e.plan), ScratchBytes: m.Scratch,
		Adapters: e.loaded, Sampling: samplingDefaults(e.file),
	}
	info.Parts = []ops.Part{{Backend: info.Backend, Device: info.Device, Holds: "everything", Memory: m}}
	if p, ok := e.seat.runtime.(ops.Parted); ok {
		if info.Parts = p.Parts(); len(info.Parts) == 1 { // it might have been divided, but is not
			info.Backend, info.Device = info.Parts[0].Backend, info.Parts[0].Device
		}
	}
	info.Parts[0].Memory.KV = info.KVBytes - m.KV + info.Parts[0].Memory.KV // page tables are the host's
	info.Quantization, info.Parameters = weightStats(e.file)
	if form, ok := e.file.FileType(); ok {
		info.Quantization = form
	}
	if name, ok := e.file.String("general.name"); ok && c.Size > 0 && name != "" {
		info.Name = name
	}
	return info
}

// weightStats counts parameters and finds the type that holds most of the matrix
// weights beside the embedding.
func weightStats(f *gguf.File) (string, int64) {
	var total, most int64
	best := ""
	byType := map[string]int64{}
	for _, t := range f.Tensors() {
		n := int64(t.Rows()) * int64(t.Cols())
		total += n
		if len(t.Dims) < 2 || t.Name == "token_embd.weight" {
			continue
		}
		name := t.Type.String()
		byType[name] += n
		if byType[name] > most {
			most, best = byType[name], name
		}
	}
	return best, total
}

// samplingDefaults reads general.sampling.*.
func samplingDefaults(f *gguf.File) Defaults {
	num := func(key string) *float64 {
		if v, ok := f.Float("general.sampling." + key); ok {
			return &v
		}
		return nil
	}
	d := Defaults{Temperature: num("temp"), TopP: num("top_p"), MinP: num("min_p")}
	if v, ok := f.Int("general.sampling.top_k"); ok {
		d.TopK = &v
	}
	return d
}

// Info describes the model and where it runs now, which changes when a device fails.
func (e *Engine) Info() Info { return *e.info.Load() }

// ScratchBytes is what activations take now; it grows with the largest batch so far.
func (e *Engine) ScratchBytes() int64 {
	if e.seat.runtime == nil {
		return 0
	}
	return e.seat.runtime.Memory().Scratch
}

// Recurrent tells whether the model has recurrent state, which can go back only to the
// lengths that Mark or the cache has kept.
func (e *Engine) Recurrent() bool { return len(e.plan.States) > 0 }

// Tokenizer is the model's tokenizer.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.vocab }

// Close frees everything; it may be called twice.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		errs := []error{e.seat.close(), e.leave()}
		for _, f := range e.adapters {
			errs = append(errs, f.Close())
		}
		errs = append(errs, e.file.Close())
		e.closed = errors.Join(errs...)
	})
	return e.closed
}
