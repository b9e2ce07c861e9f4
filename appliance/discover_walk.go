package appliance

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readDirBounded reads at most maxScanEntries of a folder, in the order of names.
func readDirBounded(dir string) ([]fs.DirEntry, error) {
	// Opening a pipe would wait for its other end.
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errors.New("is not a folder")
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxScanEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// place lists the models of a folder. That it is missing is worth a word only where
// the user named it.
func (s *scan) place(p place) {
	real, err := filepath.EvalSymlinks(p.dir)
	if errors.Is(err, fs.ErrNotExist) && p.source != "config" {
		return
	}
	if err != nil {
		s.unavailable(p.dir, p.source, err)
		return
	}
	left := maxScanEntries
	s.walk(p, p.dir, real, p.depth, &left)
}

// walk reads a folder and, while depth lasts, those below it; real is its path without
// links. Links are followed, the hub's cache is made of them: a folder is read again
// only where more levels are wanted than before, so loops end.
func (s *scan) walk(p place, dir, real string, depth int, left *int) {
	if before, ok := s.walked[real]; ok && before >= depth {
		return
	}
	// The hub's top is left open: LLAMA_CACHE may name a folder that is both a hub's
	// cache, whose files lie deeper, and one of the old kind.
	if top := p.source == "Hugging Face" && depth == p.depth; !top {
		s.walked[real] = depth
	}
	entries, err := s.readDir(dir)
	if err != nil {
		s.unavailable(dir, p.source, err) // what was read before the error still counts
	}
	for _, e := range entries {
		if *left--; *left < 0 || s.ctx.Err() != nil {
			return
		}
		path := filepath.Join(dir, e.Name())
		target, isDir := folder(e, path, filepath.Join(real, e.Name()))
		switch {
		case isDir:
			if depth > 0 && (p.source != "Hugging Face" || hubFolder(e.Name())) {
				s.walk(p, path, target, depth-1, left)
			}
		case isModelName(e.Name()) && (p.source != "Hugging Face" || depth < p.depth):
			s.file(path, entryName(path, p.source), p.source, false)
		}
	}
}

// folder tells whether an entry is a folder or a link to one, and its real path.
func folder(e fs.DirEntry, path, real string) (target string, ok bool) {
	if e.Type()&fs.ModeSymlink == 0 {
		return real, e.IsDir()
	}
	if !isDir(path) {
		return "", false
	}
	target, err := filepath.EvalSymlinks(path)
	return target, err == nil
}

// entryName is the file's name, save in Jan's folder, where each is model.gguf in a
// folder that has the name.
func entryName(path, source string) string {
	if name := modelName(path); source != "Jan" || name != "model" {
		return name
	}
	return filepath.Base(filepath.Dir(path))
}

// hubFolder leaves out what the hub's cache keeps besides snapshots.
func hubFolder(name string) bool { return !slices.Contains([]string{"blobs", "refs", ".locks"}, name) }

// ollamaModelLayer is the media type of a layer that is a GGUF file.
const ollamaModelLayer = "application/vnd.ollama.image.model"

// ollama lists the models that manifests name: manifests/HOST/OWNER/NAME/TAG.
func (s *scan) ollama(p place) {
	manifests := filepath.Join(p.dir, "manifests")
	left := maxScanEntries
	s.manifests(p, manifests, "", 6, &left)
}

// manifests reads the manifests of a folder; name is its path below the top.
func (s *scan) manifests(p place, dir, name string, depth int, left *int) {
	entries, err := s.readDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.unavailable(dir, p.source, err)
	}
	for _, e := range entries {
		if *left--; *left < 0 || s.ctx.Err() != nil {
			return
		}
		path, below := filepath.Join(dir, e.Name()), strings.TrimPrefix(name+"/"+e.Name(), "/")
		switch {
		case e.IsDir() && depth > 0:
			s.manifests(p, path, below, depth-1, left)
		case e.Type().IsRegular():
			if blob := ollamaBlob(p.dir, path); blob != "" {
				s.file(blob, ollamaName(below), p.source, false)
			}
		}
	}
}

// ollamaName shortens HOST/OWNER/NAME/TAG to what its users type: NAME:TAG for the
// library, OWNER/NAME:TAG for others.
func ollamaName(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 2 {
		parts = parts[1:]
	}
	if parts[0] == "library" && len(parts) > 2 {
		parts = parts[1:]
	}
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], "/") + ":" + parts[last]
}

// ollamaBlob returns the path of the model that a manifest names, empty where it names
// none.
func ollamaBlob(dir, manifest string) string {
	info, err := os.Stat(manifest)
	if err != nil || info.Size() > maxManifest {
		return ""
	}
	content, err := os.ReadFile(manifest)
	if err != nil {
		return ""
	}
	var m struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	if json.Unmarshal(content, &m) != nil {
		return ""
	}
	for _, l := range m.Layers {
		hash, ok := strings.CutPrefix(l.Digest, "sha256:")
		// Only hex digits: a digest must not lead out of the folder.
		if l.MediaType == ollamaModelLayer && ok && hash != "" && strings.Trim(hash, "0123456789abcdef") == "" {
			return filepath.Join(dir, "blobs", "sha256-"+hash)
		}
	}
	return ""
}
