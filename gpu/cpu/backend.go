//go:build cgo

package cpu

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -Wall -Wno-psabi
// #cgo linux LDFLAGS: -lpthread
// #include <stdlib.h>
// #include "cpu.h"
import "C"

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"ganglion/gpu/ops"
)

var (
	_ ops.Backend = (*Backend)(nil)
	_ ops.Runtime = (*Runtime)(nil)
	_ ops.Program = (*Program)(nil)
)

// Backend runs plans on the processor. It is safe for concurrent use.
type Backend struct {
	kernels *C.gl_kernels
	closed  atomic.Bool
}

// New picks the kernels for this machine, or those that o names.
func New(o Options) (*Backend, error) {
	name := C.CString(o.Kernels)
	defer C.free(unsafe.Pointer(name))
	k := C.gl_pick(name)
	if k == nil {
		return nil, fmt.Errorf("cpu: kernels %q: %w", o.Kernels, ops.ErrUnsupported)
	}
	return &Backend{kernels: k}, nil
}

// Name is "cpu".
func (b *Backend) Name() string { return "cpu" }

// Caps names the processor and its kernels.
func (b *Backend) Caps() ops.Caps {
	return ops.Caps{Device: fmt.Sprintf("%s (%s)", processor(), C.GoString(b.kernels.name)), Exact: true}
}

// processor is the model name that Linux gives, or the architecture.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Load repacks the weights (in fast mode), starts the thread pool and reserves caches
// and states; their memory is committed when it is first written.
func (b *Backend) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	if b.closed.Load() {
		return nil, fmt.Errorf("cpu: load: %w", ops.ErrClosed)
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	r := &Runtime{kernels: b.kernels, plan: p, opts: o}
	if err := r.load(ctx, progress); err != nil {
		r.Close()
		return nil, fmt.Errorf("cpu: load: %w", err)
	}
	return r, nil
}

// Close makes later loads fail. It may be called twice.
func (b *Backend) Close() error {
	b.closed.Store(true)
	return nil
}
