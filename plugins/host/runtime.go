package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"ganglion/plugins/abi"
)

// Runtime loads plugins and owns what they share. It is safe for concurrent use.
type Runtime struct {
	o           Options
	wasm        wazero.Runtime
	cache       wazero.CompilationCache // nil: none
	store       *cacheStore             // nil: none
	interpreter bool
	codeTime    time.Duration // see codeTime
	vocab       vocabCache
	closing     sync.Once

	// seats bounds how many plugins open at a time: a guest that opens may run for a
	// tenth of a second, nothing interrupts it, and a processor is to be left for tokens.
	seats     seats
	compiling seats  // one compilation at a time
	memory    budget // of all guests

	mu     sync.Mutex
	loaded map[*Plugin]bool
}

// seats bound how many do something at a time.
type seats chan struct{}

// take waits for a seat until ctx ends, whose error it returns then.
func (s seats) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives a seat back.
func (s seats) leave() { <-s }

// New makes a runtime.
func New(o Options) (*Runtime, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ctx := context.Background()
	r := &Runtime{
		o: o, interpreter: o.Interpreter || !compilerWorks(), loaded: map[*Plugin]bool{}, codeTime: codeTime,
		seats: make(seats, max(1, runtime.GOMAXPROCS(0)-1)), compiling: make(seats, 1),
	}
	r.memory.limit = o.memory()
	cfg := runtimeConfig(r.interpreter)
	if o.Cache != "" && !r.interpreter {
		var err error
		if r.store, err = openCache(o.Cache); err != nil {
			return nil, err
		}
		if r.cache, err = wazero.NewCompilationCacheWithDir(r.store.dir); err != nil {
			return nil, fmt.Errorf("host: cache: %w", err)
		}
		cfg = cfg.WithCompilationCache(r.cache)
	}
	r.wasm = wazero.NewRuntimeWithConfig(ctx, cfg)
	for _, m := range []struct {
		name      string
		functions []hostFunction
	}{{"ganglion", hostFunctions}, {"wasi_snapshot_preview1", wasiFunctions()}} {
		if err := instantiateHost(ctx, r.wasm, m.name, m.functions); err != nil {
			return nil, errors.Join(fmt.Errorf("host: module %s: %w", m.name, err), r.Close())
		}
	}
	return r, nil
}

// runtimeConfig is the one configuration of guests: WebAssembly 2.0 and nothing else. The
// file cache is keyed by it too. Closing on a context's end is off: it would cost each
// loop a check, and fuel ends every call.
func runtimeConfig(interpreter bool) wazero.RuntimeConfig {
	cfg := wazero.NewRuntimeConfigCompiler()
	if interpreter {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	return cfg.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(abi.HardMemoryPages).WithDebugInfoEnabled(false)
}

// emptyFunction is a module of one function that returns 7, exported as "f".
var emptyFunction = []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x06\x01\x04\x00\x41\x07\x0b")

// compilerWorks tells whether this machine can run compiled guests: wazero has no
// compiler for some processors, and some systems refuse memory that holds code.
var compilerWorks = sync.OnceValue(func() (ok bool) {
	defer func() { ok = ok && recover() == nil }() // wazero panics where it has no compiler
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false))
	defer func() { _ = r.Close(ctx) }()
	m, err := r.Instantiate(ctx, emptyFunction)
	if err != nil {
		return false
	}
	got, err := m.ExportedFunction("f").Call(ctx)
	return err == nil && got[0] == 7
})

// Interpreter tells whether guests are interpreted: ten to a hundred times slower.
// Plugins with full and mask views are refused then unless the options allow them.
func (r *Runtime) Interpreter() bool { return r.interpreter }

// purge closes all unused guests.
func (r *Runtime) purge() {
	r.mu.Lock()
	plugins := slices.Collect(maps.Keys(r.loaded))
	r.mu.Unlock()
	for _, p := range plugins {
		p.drop(time.Time{})
	}
}

// Close ends the runtime. All instances must be closed before. It may be called twice.
func (r *Runtime) Close() (err error) {
	r.closing.Do(func() {
		ctx := context.Background()
		err = r.wasm.Close(ctx)
		if r.cache != nil {
			err = errors.Join(err, r.cache.Close(ctx))
		}
	})
	return err
}
