//go:build cgo && (linux || windows)

package gl

// #include "gl.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ganglion/gpu/device"
)

// found is a context that was opened.
type found struct {
	*thread
	*facts
	dialect device.Dialect
	device.Info
}

// try opens a context at a place.
func try(place int, name device.Dialect) (*found, error) {
	d := dialects[name]
	t, err := start(place, d)
	if err != nil {
		return nil, err
	}
	f := &found{thread: t, dialect: name}
	t.call(func(g *C.struct_ggl) { f.facts, err = ask(g, name) })
	if err != nil {
		t.end(patience)
		return nil, err
	}
	f.Info = f.info(d)
	return f, nil
}

// each opens the devices that know a dialect one after another and hands them to use,
// which closes them; it stops when use gives false. A device that is reached in two ways
// is handed over once.
func each(name device.Dialect, use func(*found) bool) error {
	n, err := places()
	if err != nil {
		return err
	}
	var failures []error
	seen := map[string]bool{}
	for place := range n {
		f, err := try(place, name)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		// What is no device by number leads to one of them, or to one that is not
		// listed; key tells which, the ID may not.
		again := seen[f.key()] && !strings.HasPrefix(f.place, "device ")
		seen[f.key()] = true
		if again {
			f.end(patience)
			continue
		}
		if !use(f) {
			return nil
		}
	}
	if len(seen) == 0 {
		return fmt.Errorf("no context of %s: %w: %w", dialects[name].name, errors.Join(failures...), device.ErrUnsupported)
	}
	return nil
}

// List gives every device once per language, hardware first: OpenGL 4.3, and the newest
// OpenGL ES it has. It opens each and closes it again; a driver that hangs or crashes
// does so here, which is why it is called in a process that may. Without a library it
// gives an error that wraps device.ErrUnsupported.
func List() ([]device.Info, error) {
	if _, err := places(); err != nil {
		return nil, fmt.Errorf("gl: list: %w", err)
	}
	var infos []device.Info
	newest := map[string]bool{} // hardware whose OpenGL ES 3.2 is listed
	for _, name := range []device.Dialect{device.GLSL430, device.GLSL320ES, device.GLSL310ES} {
		err := each(name, func(f *found) bool {
			if name != device.GLSL310ES || !newest[f.key()] {
				infos = append(infos, f.Info)
			}
			newest[f.key()] = newest[f.key()] || name == device.GLSL320ES
			f.end(patience)
			return true
		})
		if err != nil && !errors.Is(err, device.ErrUnsupported) {
			return nil, fmt.Errorf("gl: list: %w", err)
		}
	}
	slices.SortStableFunc(infos, func(a, b device.Info) int { return rank(a) - rank(b) })
	return infos, nil
}

// rank orders hardware before software.
func rank(i device.Info) int {
	if i.Software {
		return 1
	}
	return 0
}

// Open opens a device. It belongs to one goroutine at a time; several devices may be open
// at once. A device that is not there gives an error that wraps device.ErrUnsupported.
func Open(o Options) (device.Device, error) {
	name, err := o.settle()
	if err != nil {
		return nil, err
	}
	var best *found
	err = each(name, func(f *found) bool {
		suits := o.ID == f.ID || o.ID == ""
		if suits && (best == nil || rank(f.Info) < rank(best.Info)) {
			f, best = best, f
		}
		if f != nil {
			f.end(patience)
		}
		return best == nil || o.ID == "" && best.Software
	})
	if err != nil {
		return nil, fmt.Errorf("gl: open: %w", err)
	}
	if best == nil {
		return nil, fmt.Errorf("gl: open: no device %q: %w", o.ID, device.ErrUnsupported)
	}
	return newContext(best, o), nil
}
