//go:build cgo && (linux || windows)

package gl

// #cgo CFLAGS: -std=gnu11 -Wall
// #cgo linux CFLAGS: -pthread
// #cgo linux LDFLAGS: -ldl -lpthread
// #cgo windows LDFLAGS: -lgdi32 -luser32
// #include "gl.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"ganglion/gpu/device"
)

// job is something that calls OpenGL.
type job interface{ run(g *C.struct_ggl) }

// thread is the goroutine that owns a context. It runs jobs in the order in which they
// are sent and ends when jobs is closed.
type thread struct {
	jobs chan job
	gone chan struct{} // closed at its end
}

// start opens a context at a place in a goroutine of its own.
func start(place int, d dialect) (*thread, error) {
	t := &thread{jobs: make(chan job, 16), gone: make(chan struct{})}
	ready := make(chan error, 1)
	go t.own(place, d, ready)
	return t, <-ready
}

func (t *thread) own(place int, d dialect, ready chan<- error) {
	defer close(t.gone)
	// It is never unlocked: what drivers leave behind in a thread goes with it.
	runtime.LockOSThread()
	var why [256]C.char
	v := C.struct_ggl_version{es: C.int(d.es), major: C.int(d.major), minor: C.int(d.minor)}
	g := C.ggl_open(C.int(place), v, &why[0], C.size_t(len(why)))
	if g == nil {
		ready <- errors.New(C.GoString(&why[0]))
		return
	}
	defer C.ggl_close(g)
	ready <- nil
	for j := range t.jobs {
		j.run(g)
		C.ggl_pump(g)
	}
	C.ggl_finish(g)
}

// call is a job that is waited for.
type call struct {
	f    func(g *C.struct_ggl)
	done chan struct{}
}

func (c call) run(g *C.struct_ggl) {
	c.f(g)
	close(c.done)
}

// call runs f on the thread and waits for it.
func (t *thread) call(f func(g *C.struct_ggl)) {
	c := call{f, make(chan struct{})}
	t.jobs <- c
	<-c.done
}

// end stops the thread and waits for it, but not for ever: a driver that hangs keeps it.
func (t *thread) end(patience time.Duration) bool {
	close(t.jobs)
	select {
	case <-t.gone:
		return true
	case <-time.After(patience):
		return false
	}
}

// places counts where contexts may be made.
func places() (int, error) {
	var why [256]C.char
	n := int(C.ggl_places(&why[0], C.size_t(len(why))))
	if n == 0 {
		return 0, fmt.Errorf("%s: %w", C.GoString(&why[0]), device.ErrUnsupported)
	}
	return n, nil
}

// failure turns a result of C into an error.
func failure(place string, result C.int, code C.GLenum) error {
	switch result {
	case C.GGL_OK:
		return nil
	case C.GGL_OUT_OF_MEMORY:
		return fmt.Errorf("gl: %s: %w", place, device.ErrOutOfMemory)
	case C.GGL_LOST:
		return fmt.Errorf("gl: %s: %w", place, device.ErrLost)
	case C.GGL_TIMEOUT:
		return fmt.Errorf("gl: %s: %w", place, device.ErrTimeout)
	}
	return fmt.Errorf("gl: %s: the driver refused it with error 0x%x", place, uint(code))
}

// text gives one of the context's strings.
func text(g *C.struct_ggl, name C.GLenum) string {
	s := C.ggl_string(g, name)
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

// bytesAt gives C the address of data, which the caller keeps alive.
func bytesAt(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }
