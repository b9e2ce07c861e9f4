// Package gl runs kernels on OpenGL 4.3 core and OpenGL ES 3.1 and 3.2: a device.Device
// whose context has no window (EGL on Linux, a hidden window on Windows).
//
// It imports nothing but gpu/device. It links nothing that may be missing and builds
// without headers, pkg-config or build tags: libEGL and opengl32.dll are opened when a
// device is looked for, and a machine without them is told so. The bindings of
// github.com/go-gl/gl cannot be had on these terms: each of its packages carries
// "#cgo linux pkg-config: gl" (or egl), so that the mere import fails to build where the
// development files are not installed, and a binary built elsewhere does not start where
// libGL is missing. Going round that needs a static stand-in for the library and an
// environment variable for every go command; the 45 entry points used here (gl.h) are
// less than that.
//
// # One thread
//
// A context belongs to one goroutine that is locked to its thread (thread.go). Whatever
// calls OpenGL is sent to it as a job; a submission is one job and one call into C, which
// replays the commands from an array. A job that hangs in the driver takes down nothing
// but that thread: waiting for a fence has its own clock, and who waits for the other calls
// can go on without them (gpu/device/watch).
//
// # Memory
//
// Upload and Readback buffers stay mapped where the driver can (ARB_buffer_storage,
// EXT_buffer_storage): reading and writing them calls nothing. All parameter blocks of a
// program stand in one uniform buffer that is written when the program is recorded.
package gl

import (
	"fmt"
	"strings"

	"ganglion/gpu/device"
)

// Options says which device to open.
type Options struct {
	// ID is the ID of an Info that List gave. Without it the first device that knows
	// the dialect is opened, hardware before software.
	ID string
	// Dialect is the shading language; an ID that is given settles it instead.
	Dialect device.Dialect
	// CacheDir keeps compiled kernels from one start to the next, in a folder "gl" that is
	// made when needed and may be removed at any time; "" keeps none.
	CacheDir string
}

// dialect is what opening a context needs to know of a shading language.
type dialect struct {
	name             string // the prefix of an ID
	api              device.API
	es, major, minor int
}

var dialects = map[device.Dialect]dialect{
	device.GLSL430:   {"gl43", device.OpenGL, 0, 4, 3},
	device.GLSL320ES: {"es32", device.OpenGLES, 1, 3, 2},
	device.GLSL310ES: {"es31", device.OpenGLES, 1, 3, 1},
}

// settle gives the dialect of the options.
func (o Options) settle() (device.Dialect, error) {
	if o.ID == "" {
		if _, ok := dialects[o.Dialect]; !ok {
			return 0, fmt.Errorf("gl: open: dialect %d: %w", o.Dialect, device.ErrUnsupported)
		}
		return o.Dialect, nil
	}
	for d, x := range dialects {
		if strings.HasPrefix(o.ID, x.name+"-") {
			return d, nil
		}
	}
	return 0, fmt.Errorf("gl: open: %q is not the ID of an OpenGL device: %w", o.ID, device.ErrUnsupported)
}
