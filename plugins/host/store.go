package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// FileStore keeps what plugins remember, a file for each plugin. A request reads the
// values as they were when it began; writes of requests that end at the same time come one
// after another, and the last one counts.
type FileStore struct {
	dir string // "" keeps everything in memory

	mu      sync.Mutex
	shelves map[string]*shelf // by plugin
}

// shelf is what one plugin stored.
type shelf struct {
	mu     sync.Mutex
	values map[string][]byte // never changed; nil: not read yet
}

var _ Store = (*FileStore)(nil)

// errStoreFull says that a plugin would store more than it may.
var errStoreFull = errors.New("host: a plugin's store is full")

// OpenStore opens a store in a folder, which is made with mode 0700; "" keeps nothing
// beyond the process.
func OpenStore(dir string) (*FileStore, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("host: store: %w", err)
		}
	}
	return &FileStore{dir: dir, shelves: map[string]*shelf{}}, nil
}

// pair is a value in a file: keys need not be text.
type pair struct{ Key, Value []byte }

// path is the file of a plugin, whose name has a-z, 0-9 and - alone (abi.ParseManifest).
func (s *FileStore) path(plugin string) string { return filepath.Join(s.dir, plugin+".json") }

// shelf returns a plugin's shelf, so that none waits for the disk of another.
func (s *FileStore) shelf(plugin string) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.shelves[plugin]
	if h == nil {
		h = &shelf{}
		s.shelves[plugin] = h
	}
	return h
}

// Read implements Store. A file that is damaged counts as none, and is kept beside the one
// that takes its place.
func (s *FileStore) Read(plugin string) map[string][]byte {
	h := s.shelf(plugin)
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.read(h, plugin)
}

func (s *FileStore) read(h *shelf, plugin string) map[string][]byte {
	if h.values != nil {
		return h.values
	}
	h.values = map[string][]byte{}
	if s.dir == "" {
		return h.values
	}
	var pairs []pair
	text, err := readBounded(s.path(plugin), 4*MaxStoreBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h.values
	case err == nil:
		err = json.Unmarshal(text, &pairs)
	}
	if err != nil {
		slog.Warn("what a plugin stored cannot be read", "plugin", plugin, "file", s.path(plugin), "error", err)
		_ = os.Rename(s.path(plugin), s.path(plugin)+".damaged") // where that fails too it is written over
		return h.values
	}
	for _, p := range pairs {
		h.values[string(p.Key)] = p.Value
	}
	return h.values
}

// Commit implements Store. What cannot be written is not remembered either.
func (s *FileStore) Commit(plugin string, writes map[string][]byte) error {
	h := s.shelf(plugin)
	h.mu.Lock()
	defer h.mu.Unlock()
	next := maps.Clone(s.read(h, plugin))
	for k, v := range writes {
		if v == nil {
			delete(next, k)
		} else {
			next[k] = v
		}
	}
	size := 0
	pairs := make([]pair, 0, len(next))
	for k, v := range next {
		size += len(k) + len(v)
		pairs = append(pairs, pair{[]byte(k), v})
	}
	if size > MaxStoreBytes { // requests that ran side by side
		return fmt.Errorf("%w: %s: %d bytes, at most %d", errStoreFull, plugin, size, MaxStoreBytes)
	}
	if s.dir != "" {
		text, err := json.Marshal(pairs)
		if err == nil {
			err = writeFile(s.path(plugin), text)
		}
		if err != nil {
			return fmt.Errorf("host: store: %w", err)
		}
	}
	h.values = next
	return nil
}

// Clear forgets what a plugin stored.
func (s *FileStore) Clear(plugin string) error {
	h := s.shelf(plugin)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.values = map[string][]byte{}
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.path(plugin)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("host: store: %w", err)
	}
	return nil
}
