package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/web/api"
)

const (
	uploadPattern = ".upload-*.part"
	// staleUpload is the age of a part file whose writer was killed.
	staleUpload = 24 * time.Hour
)

// uploadModel streams a model file to disk. The file has its name only when it is
// whole; on any failure nothing of it stays.
func (s *Server) uploadModel(w *response, r *http.Request, p httprouter.Params) error {
	name := p.ByName("name")
	switch {
	case s.cfg.ModelsDir == "":
		return appliance.Errorf(appliance.CodeNotFound, "", "this server keeps no models")
	case !fileName(name):
		return appliance.Errorf(appliance.CodeInvalid, "name", "the name must be a plain file name that ends in .gguf")
	case r.ContentLength > s.cfg.MaxModel:
		return tooLarge(w, s.cfg.MaxModel)
	}
	if err := checkEncoding(r); err != nil {
		return err
	}
	path := filepath.Join(s.cfg.ModelsDir, name)
	if _, err := os.Lstat(path); err == nil {
		return exists(w)
	}
	removeStale(s.cfg.ModelsDir)
	if err := s.writeModel(w, r, path); err != nil {
		w.Header().Set("Connection", "close") // the rest of the body will not be read
		return err
	}
	id := name
	for _, f := range s.found(r) {
		if f.Path == path {
			id = f.ID
		}
	}
	w.json(http.StatusCreated, encode(api.Uploaded{ID: id}))
	return nil
}

func exists(w *response) error {
	w.Header().Set("Connection", "close")
	return appliance.Errorf(appliance.CodeExists, "name", "there is a model of this name already")
}

// fileName tells whether a name is one for a model on every system.
func fileName(name string) bool {
	if len(name) > 200 || !utf8.ValidString(name) || !strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, ".") {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune(`/\:*?"<>|`, r)
	})
}

// writeModel writes the body to a file beside path and then gives it its name.
func (s *Server) writeModel(w *response, r *http.Request, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return diskError(err)
	}
	src := s.body(w, r)
	magic := make([]byte, 4)
	if _, err := io.ReadFull(src, magic); errors.Is(err, os.ErrDeadlineExceeded) {
		return bodyError(w, err)
	} else if err != nil || string(magic) != "GGUF" {
		return appliance.Errorf(appliance.CodeModelFile, "", "the file is no GGUF model: it does not begin with GGUF")
	}
	f, err := os.CreateTemp(filepath.Dir(path), uploadPattern)
	if err != nil {
		return diskError(err)
	}
	defer func() {
		f.Close()           // closed already when all went well
		os.Remove(f.Name()) // a second name of the same file, or a part
	}()
	n, err := io.Copy(struct{ io.Writer }{f}, io.MultiReader(bytes.NewReader(magic), io.LimitReader(src, s.cfg.MaxModel)))
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk):
		return diskError(err)
	case err != nil:
		return bodyError(w, err)
	case n > s.cfg.MaxModel:
		return tooLarge(w, s.cfg.MaxModel)
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return diskError(err)
	}
	// A link never replaces a file, as a rename would. Where a file system has no
	// links the name was free a moment ago.
	err = os.Link(f.Name(), path)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return exists(w)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return diskError(err)
	}
	return nil
}

func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return appliance.Errorf(codeDisk, "", "the disk is full")
	}
	return fmt.Errorf("web: upload: %w", err)
}

// removeStale removes what an upload left behind whose process was killed.
func removeStale(dir string) {
	parts, _ := filepath.Glob(filepath.Join(dir, uploadPattern)) // the pattern is well-formed
	for _, p := range parts {
		if info, err := os.Stat(p); err == nil && time.Since(info.ModTime()) > staleUpload {
			os.Remove(p)
		}
	}
}
