package appliance

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DiscoverOptions say where to look for models. Empty fields are places not looked at.
type DiscoverOptions struct {
	Flag       string // the file that --model names
	Executable string // the running binary: it may hold a model, its folder others
	DataDir    string // Ganglion's own models
	WorkDir    string
	Home       string
	Getenv     func(string) string // nil: an empty environment
	Extra      []string            // more folders, from the settings
	GOOS       string
}

// Limits of one scan, so that a folder such as a whole disk cannot hold it up.
const (
	maxScanDepth   = 8       // folders below a place
	maxScanEntries = 100_000 // directory entries of a place
	maxManifest    = 1 << 20 // bytes of an Ollama manifest
)

// Discover lists the model files of this machine in the order of preference: the
// named one, the embedded one, Ganglion's own, those beside the binary and in the
// working folder, those of other programs, those of extra folders. It only reads, and
// uses files where they are. A file that is reached twice, or has a copy, is listed
// once; so is a model split into several files. A place that exists and cannot be read
// is an entry that is not available; it never hides the others. A cancelled ctx ends
// the scan with what was found.
func Discover(ctx context.Context, o DiscoverOptions) []Found {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	s := &scan{ctx: ctx, readDir: readDirBounded, walked: map[string]int{}}
	s.flag(o.Flag)
	s.embedded(o.Executable)
	for _, p := range places(o) {
		if p.ollama {
			s.ollama(p)
		} else {
			s.place(p)
		}
	}
	return s.found
}

// foundID is the stable name of a model: it depends on its path alone, so that it
// survives restarts, and on nothing that would tell the path.
func foundID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// scan collects what one Discover finds.
type scan struct {
	ctx     context.Context
	readDir func(string) ([]fs.DirEntry, error)
	found   []Found
	seen    []seenFile
	walked  map[string]int // real paths of folders that were read -> how deep
}

// seenFile remembers a listed file for comparisons.
type seenFile struct {
	path  string
	info  fs.FileInfo
	print string // fingerprint, made when another file has the same size
}

func (s *scan) add(f Found) {
	f.ID = foundID(f.Path)
	if f.Source == "embedded" {
		f.ID = foundID(f.Path + "#embedded")
	}
	s.found = append(s.found, f)
}

// unavailable lists a place or file that cannot be read.
func (s *scan) unavailable(path, source string, err error) {
	for _, f := range s.found {
		if f.Path == path && f.Source != "embedded" {
			return
		}
	}
	s.add(Found{Name: modelName(path), Path: path, Source: source, Note: "cannot be read: " + plainCause(err)})
}

// plainCause is an error without the path that the entry shows already.
func plainCause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func modelName(path string) string {
	name := filepath.Base(path)
	if strings.EqualFold(filepath.Ext(name), ".gguf") {
		name = name[:len(name)-len(".gguf")]
	}
	return name
}

// flag lists the named file whatever it is: the user shall see what is wrong with it.
func (s *scan) flag(path string) {
	if path == "" {
		return
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	s.file(path, modelName(path), "flag", true)
}

func (s *scan) embedded(exe string) {
	if exe == "" {
		return
	}
	offset, size, ok, err := Embedded(exe)
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread):
		// Nothing says that there is a model inside.
	case err != nil:
		s.add(Found{Name: modelName(exe), Path: exe, Source: "embedded", Note: err.Error()})
	case ok:
		f := Found{Name: modelName(exe), Path: exe, Source: "embedded", Bytes: size, Available: true}
		if err := peekModel(exe, offset, size, false); err != nil {
			f.Available, f.Note = false, "is not a text model"
		}
		s.add(f)
	}
}

// file lists a model file once. Files that are no text models are left out unless the
// user named them.
func (s *scan) file(path, name, source string, named bool) {
	info, err := os.Stat(path)
	if err != nil {
		// A dangling link in a cache is no model; one that was named is missed.
		if named || !errors.Is(err, fs.ErrNotExist) {
			s.unavailable(path, source, err)
		}
		return
	}
	if !info.Mode().IsRegular() {
		if named {
			s.unavailable(path, source, errors.New("is not a regular file"))
		}
		return
	}
	f := Found{Name: name, Path: path, Source: source, Bytes: info.Size(), Available: true}
	part, split := splitPart(path)
	if split {
		if f = part.join(f); f.Path != path && !named {
			return // the first part that is there stands for all
		}
		if first, err := os.Stat(f.Path); err == nil {
			path, info = f.Path, first
		}
	}
	if err := peekModel(path, 0, info.Size(), split); errors.Is(err, errNoModel) {
		if !named {
			return
		}
		f.Note = "is not a text model in GGUF"
	} else if err != nil {
		s.unavailable(path, source, err)
		return
	}
	if s.duplicate(path, info) {
		return
	}
	s.add(f)
}

// duplicate tells whether the file was listed before, and remembers it. Links and hard
// links are the same file; a copy has the same size and fingerprint.
func (s *scan) duplicate(path string, info fs.FileInfo) bool {
	me := seenFile{path: path, info: info}
	for i := range s.seen {
		other := &s.seen[i]
		if os.SameFile(other.info, info) {
			return true
		}
		if other.info.Size() == info.Size() && me.sameContent(other) {
			return true
		}
	}
	s.seen = append(s.seen, me)
	return false
}

// sameContent compares fingerprints; a file that cannot be read equals none.
func (f *seenFile) sameContent(other *seenFile) bool {
	for _, p := range []*seenFile{f, other} {
		if p.print == "" {
			var err error
			if p.print, err = fingerprint(p.path, p.info.Size()); err != nil {
				p.print = "unreadable " + p.path
			}
		}
	}
	return f.print == other.print
}
