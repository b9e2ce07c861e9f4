package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"ganglion/plugins/abi"
)

// What Add may answer besides the errors of the disk.
var (
	ErrRejected = errors.New("registry: the file is not taken")
	ErrTaken    = errors.New("registry: the place is taken")
)

// addedName is the names of files that may be added: plain on every system, and none that
// a scan passes over.
var addedName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.(wasm|js)$`)

// AddedName tells whether a file may be added under a name.
func AddedName(name string) bool { return addedName.MatchString(name) }

// Add takes a file into the folder. It is loaded first, as a scan loads it: one that does
// not work, or that the policy refuses, is ErrRejected and leaves no trace. A file of the
// same name is replaced where it holds another version of the same plugin, else that is
// ErrTaken. The plugin is there when Add returns.
func (r *Registry) Add(ctx context.Context, name string, file []byte) (*abi.Manifest, error) {
	switch {
	case r.o.Dir == "":
		return nil, fmt.Errorf("%w: there is no folder", ErrRejected)
	case !AddedName(name), path.Ext(name) == ".js" && r.o.Script == nil:
		return nil, fmt.Errorf("%w: %.100q is no name for it", ErrRejected, name)
	}
	m, err := r.add(ctx, name, file)
	if err != nil {
		return nil, err
	}
	r.Scan(ctx)
	return m, nil
}

// add checks and writes the file. No scan runs meanwhile.
func (r *Registry) add(ctx context.Context, name string, file []byte) (*abi.Manifest, error) {
	if err := r.scanning.take(ctx); err != nil {
		return nil, err
	}
	defer r.scanning.leave()
	if r.closed {
		return nil, fmt.Errorf("%w: the registry is closed", ErrRejected)
	}
	e, err := r.load(ctx, file, name, false)
	if ctx.Err() != nil {
		if err == nil {
			e.plugin.Close()
		}
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRejected, err)
	}
	m := e.plugin.Manifest()
	e.plugin.Close() // the scan loads it again, from the cache
	if err := r.free(name, m); err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(r.o.Dir, name), file); err != nil {
		return nil, err
	}
	if s := r.sources[name]; s != nil {
		s.age = rehash // its time may be that of the file before it
	}
	return m, nil
}

// free tells whether a plugin may go to a place: nothing else is there, and no other file
// of the folder holds this version.
func (r *Registry) free(place string, m *abi.Manifest) error {
	if s := r.sources[place]; s != nil {
		if s.entry == nil || s.entry.plugin.Manifest().Name != m.Name {
			return fmt.Errorf("%w: %s is another file", ErrTaken, place)
		}
	} else if _, err := os.Lstat(filepath.Join(r.o.Dir, place)); err == nil {
		return fmt.Errorf("%w: %s is another file", ErrTaken, place)
	}
	for at, s := range r.sources {
		if at == place || s.builtIn || s.entry == nil {
			continue
		}
		if o := s.entry.plugin.Manifest(); o.Name == m.Name && compare(o.Version, m.Version) == 0 {
			return fmt.Errorf("%w: %s@%s is in %s already", ErrTaken, m.Name, m.Version, at)
		}
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(to string, content []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".upload-*.part")
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is worth nothing
		return fmt.Errorf("registry: %w", err)
	}
	return nil
}
