package opstest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ganglion/gpu/ops"
)

// Call is a call of a backend that can be made to fail.
type Call string

// The calls.
const (
	CallLoad      Call = "load"
	CallCompile   Call = "compile"
	CallRun       Call = "run"
	CallCopyPage  Call = "copy page"
	CallSaveState Call = "save state"
	CallLoadState Call = "load state"
	CallReadPage  Call = "read page"
	CallWritePage Call = "write page"
)

// Faulty is a backend with a fault: call At of a kind, counted from 1 over all that was
// loaded, fails with Err. A device that is lost stays lost: after an error that wraps
// ops.ErrDeviceLost every call fails with it. A run that fails leaves nonsense behind,
// for it is made before the error is returned. It is safe for concurrent use.
type Faulty struct {
	ops.Backend
	Kind Call
	At   int
	Err  error
	// Skip makes call At do nothing and say that all is well, the fault that no error
	// tells of; a run then gives the heads of the one before.
	Skip bool

	mu    sync.Mutex
	calls map[Call]int
	lost  error
}

// Calls is how often a kind of call was made.
func (f *Faulty) Calls(kind Call) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[kind]
}

// count counts a call and tells whether it is left out or fails.
func (f *Faulty) count(kind Call) (skip bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		return false, f.lost
	}
	if f.calls == nil {
		f.calls = map[Call]int{}
	}
	f.calls[kind]++
	if kind != f.Kind || f.calls[kind] != f.At {
		return false, nil
	}
	if f.Skip {
		return true, nil
	}
	err = fmt.Errorf("opstest: %s %d: %w", kind, f.At, f.Err)
	if errors.Is(f.Err, ops.ErrDeviceLost) {
		f.lost = err
	}
	return false, err
}

// Load implements ops.Backend.
func (f *Faulty) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if _, err := f.count(CallLoad); err != nil {
		return nil, err
	}
	rt, err := f.Backend.Load(ctx, p, o, progress)
	if err != nil {
		return nil, err
	}
	return faultyRuntime{rt, f}, nil
}

type faultyRuntime struct {
	ops.Runtime
	f *Faulty
}

func (r faultyRuntime) Compile(s ops.Shape) (ops.Program, error) {
	if _, err := r.f.count(CallCompile); err != nil {
		return nil, err
	}
	p, err := r.Runtime.Compile(s)
	if err != nil {
		return nil, err
	}
	return faultyProgram{p, r.f}, nil
}

func (r faultyRuntime) CopyPage(group, dst, src int) error {
	if skip, err := r.f.count(CallCopyPage); skip || err != nil {
		return err
	}
	return r.Runtime.CopyPage(group, dst, src)
}

func (r faultyRuntime) SaveState(slot int, into []float32) ([]float32, error) {
	if _, err := r.f.count(CallSaveState); err != nil {
		return nil, err
	}
	return r.Runtime.SaveState(slot, into)
}

func (r faultyRuntime) LoadState(slot int, state []float32) error {
	if skip, err := r.f.count(CallLoadState); skip || err != nil {
		return err
	}
	return r.Runtime.LoadState(slot, state)
}

// ReadPage implements ops.Carrier as far as the backend does.
func (r faultyRuntime) ReadPage(group, page int, into []byte) ([]byte, error) {
	if _, err := r.f.count(CallReadPage); err != nil {
		return nil, err
	}
	c, ok := r.Runtime.(ops.Carrier)
	if !ok {
		return nil, ops.ErrUnsupported
	}
	return c.ReadPage(group, page, into)
}

// WritePage implements ops.Carrier as far as the backend does.
func (r faultyRuntime) WritePage(group, page int, data []byte) error {
	if skip, err := r.f.count(CallWritePage); skip || err != nil {
		return err
	}
	c, ok := r.Runtime.(ops.Carrier)
	if !ok {
		return ops.ErrUnsupported
	}
	return c.WritePage(group, page, data)
}

type faultyProgram struct {
	ops.Program
	f *Faulty
}

func (p faultyProgram) Run(b *ops.Batch, r *ops.Result) error {
	skip, err := p.f.count(CallRun)
	if skip {
		return nil
	}
	if err == nil {
		return p.Program.Run(b, r)
	}
	if p.f.Calls(CallRun) == p.f.At {
		_ = p.Program.Run(b, r) // half a run, for what it leaves behind
		for i := range r.Heads {
			r.Heads[i] = ops.Head{}
		}
	}
	return err
}

// Spoiled is a backend whose heads are changed on their way out.
type Spoiled struct {
	ops.Backend
	Spoil func(heads []ops.Head)
}

// Load implements ops.Backend.
func (s Spoiled) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	rt, err := s.Backend.Load(ctx, p, o, progress)
	if err != nil {
		return nil, err
	}
	return spoiledRuntime{rt, s.Spoil}, nil
}

type spoiledRuntime struct {
	ops.Runtime
	spoil func(heads []ops.Head)
}

func (r spoiledRuntime) Compile(s ops.Shape) (ops.Program, error) {
	p, err := r.Runtime.Compile(s)
	if err != nil {
		return nil, err
	}
	return spoiledProgram{p, r.spoil}, nil
}

type spoiledProgram struct {
	ops.Program
	spoil func(heads []ops.Head)
}

func (p spoiledProgram) Run(b *ops.Batch, r *ops.Result) error {
	err := p.Program.Run(b, r)
	if err == nil {
		p.spoil(r.Heads)
	}
	return err
}
