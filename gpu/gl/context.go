//go:build cgo && (linux || windows)

package gl

// #include "gl.h"
import "C"

import (
	"fmt"
	"sync/atomic"
	"time"

	"ganglion/gpu/device"
)

var (
	_ device.Device  = (*context)(nil)
	_ device.Buffer  = (*buffer)(nil)
	_ device.Kernel  = (*kernel)(nil)
	_ device.Program = (*program)(nil)
	_ device.Fence   = (*fence)(nil)
)

// patience is how long Close waits for what runs, and Submit for a thread that has more
// to do already than it can queue; a submission is bounded to a fraction of it by whoever
// makes programs. A renderer on the processor compiles a kernel when it first runs and
// shares the processor with everything else: Submit waits longer for it.
const (
	patience         = 10 * time.Second
	softwarePatience = 2 * time.Minute
)

// context is an open device.
type context struct {
	*found
	cache   cache
	kernels map[string]*compiled // by text
	closed  bool
	// closings counts the buffers and kernels that were closed, so that a program looks
	// for its own only after one was.
	closings int
	// fate is why the device is of no use any more. A timeout is taken back when the
	// fence passes after all.
	fate atomic.Pointer[error]
}

func newContext(f *found, o Options) *context {
	return &context{
		found:   f,
		cache:   newCache(o.CacheDir, f.identity, f.binaries),
		kernels: map[string]*compiled{},
	}
}

func (c *context) Info() device.Info     { return c.found.Info }
func (c *context) Limits() device.Limits { return c.limits }
func (c *context) Caps() device.Caps     { return c.caps }

// Health is nil, or why the device is lost.
func (c *context) Health() error {
	if err := c.fate.Load(); err != nil {
		return *err
	}
	return nil
}

// usable says why nothing more can be asked of the device.
func (c *context) usable(place string) error {
	if c.closed {
		return fmt.Errorf("gl: %s: %w", place, device.ErrClosed)
	}
	if err := c.Health(); err != nil {
		return fmt.Errorf("gl: %s: %w", place, err)
	}
	return nil
}

// check turns a result of C into an error and remembers a loss.
func (c *context) check(g *C.struct_ggl, place string, result C.int, code C.GLenum) error {
	err := failure(place, result, code)
	if err != nil && result != C.GGL_OUT_OF_MEMORY && C.ggl_reset_status(g) != 0 {
		result, err = C.GGL_LOST, failure(place, C.GGL_LOST, code)
	}
	if result == C.GGL_LOST {
		c.fate.Store(&err)
	}
	return err
}

// free runs f where the device is still there to free things on; a lost or hanging one
// takes them along.
func (c *context) free(f func(g *C.struct_ggl)) {
	if !c.closed && c.Health() == nil {
		c.call(f)
	}
}

// Close waits for what runs and frees everything. A driver that hangs keeps its thread,
// and Close says so.
func (c *context) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	wait := patience
	if c.Health() != nil {
		wait = time.Second
	}
	if !c.end(wait) {
		return fmt.Errorf("gl: close: the driver does not come back: %w", device.ErrTimeout)
	}
	return nil
}
