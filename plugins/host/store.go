package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

	mu     sync.Mutex
	values map[string]map[string][]byte // by plugin; an inner map is never changed
}

var _ Store = (*FileStore)(nil)

// OpenStore opens a store in a folder, which is made with mode 0700; "" keeps nothing
// beyond the process.
func OpenStore(dir string) (*FileStore, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("host: store: %w", err)
		}
	}
	return &FileStore{dir: dir, values: map[string]map[string][]byte{}}, nil
}

// pair is a value in a file: keys need not be text.
type pair struct{ Key, Value []byte }

// path is the file of a plugin, whose name has a-z, 0-9 and - alone (abi.ParseManifest).
func (s *FileStore) path(plugin string) string { return filepath.Join(s.dir, plugin+".json") }

// Read implements Store. A file that is damaged counts as none.
func (s *FileStore) Read(plugin string) map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(plugin)
}

func (s *FileStore) read(plugin string) map[string][]byte {
	if v, ok := s.values[plugin]; ok {
		return v
	}
	v := map[string][]byte{}
	if s.dir != "" {
		var pairs []pair
		text, err := readBounded(s.path(plugin), 4*MaxStoreBytes)
		if err == nil && json.Unmarshal(text, &pairs) == nil {
			for _, p := range pairs {
				v[string(p.Key)] = p.Value
			}
		}
	}
	s.values[plugin] = v
	return v
}

// Commit implements Store.
func (s *FileStore) Commit(plugin string, writes map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.read(plugin))
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
		return fmt.Errorf("host: store: %s: %d bytes, at most %d", plugin, size, MaxStoreBytes)
	}
	s.values[plugin] = next
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(pairs)
	if err == nil {
		err = writeFile(s.path(plugin), text)
	}
	if err != nil {
		return fmt.Errorf("host: store: %w", err)
	}
	return nil
}

// Clear forgets what a plugin stored.
func (s *FileStore) Clear(plugin string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[plugin] = map[string][]byte{}
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.path(plugin)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("host: store: %w", err)
	}
	return nil
}
