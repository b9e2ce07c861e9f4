package host

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
)

// cacheStore is the folder of compiled plugins. wazero keeps one file a module there,
// checks no more of it than a CRC, and maps it as code. So each entry has an
// authentication code of ours beside it, under a key that only this user can read, and
// nothing is handed to wazero before the code is right.
type cacheStore struct {
	dir string
	key []byte
}

const (
	keyFile      = "key"
	keyBytes     = 32
	macSuffix    = ".mac"
	buildPattern = "build-*"
	maxEntry     = 64 << 20            // bytes of code
	keepEntries  = 90 * 24 * time.Hour // since it was used last
)

// entryName is the name of a file of wazero's.
var entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// openCache opens a cache folder, makes it and its key where they are missing, and takes
// out what nobody has used for long. A folder that others may enter is closed to them.
func openCache(dir string) (*cacheStore, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("host: cache: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("host: cache: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("host: cache: %w", err)
	}
	c := &cacheStore{dir: dir}
	if c.key, err = c.readKey(); err != nil {
		return nil, fmt.Errorf("host: cache: %w", err)
	}
	c.prune(time.Now())
	return c, nil
}

// readKey reads the key, or makes one. Another process may do the same just now: the key
// that got its name first counts.
func (c *cacheStore) readKey() ([]byte, error) {
	path := filepath.Join(c.dir, keyFile)
	for range 3 {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() == keyBytes && (info.Mode().Perm() == 0o600 || runtime.GOOS == "windows") {
			return os.ReadFile(path)
		}
		if err == nil { // cut, or readable by others: its codes are worth nothing
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
		f, err := os.CreateTemp(c.dir, buildPattern) // mode 0600
		if err != nil {
			return nil, err
		}
		key := make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		_, err = f.Write(key)
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Link(f.Name(), path)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				err = os.Rename(f.Name(), path) // a file system without links
			}
		}
		_ = os.Remove(f.Name())
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, errors.New("no key can be made")
}

// versionDir is the folder that wazero makes in a cache for its version and this machine.
// Other versions leave folders of their own beside it. "" where none can be made.
var versionDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "ganglion-cache-")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(dir)
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return ""
	}
	defer cache.Close(context.Background())
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		return ""
	}
	return entries[0].Name()
})

// code authenticates an entry for a module.
func (c *cacheStore) code(module [sha256.Size]byte, version, name string, content []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	sum := sha256.Sum256(content)
	fmt.Fprintf(h, "ganglion compiled plugin 1\n%s\n%s\n%x\n%x\n", version, name, module, sum)
	return h.Sum(nil)
}

// macFile is where the name of a module's entry and its code are kept.
func (c *cacheStore) macFile(version string, module [sha256.Size]byte) string {
	return filepath.Join(c.dir, version, hex.EncodeToString(module[:])+macSuffix)
}

// good tells whether there is an entry for a module and it is as we left it.
func (c *cacheStore) good(module [sha256.Size]byte) bool {
	version := versionDir()
	if version == "" {
		return false
	}
	mac := c.macFile(version, module)
	text, err := readBounded(mac, 1<<10)
	if err != nil || len(text) != sha256.Size+64 || !entryName.Match(text[sha256.Size:]) {
		return false
	}
	name := string(text[sha256.Size:])
	path := filepath.Join(c.dir, version, name)
	content, err := readBounded(path, maxEntry)
	if err != nil || !hmac.Equal(text[:sha256.Size], c.code(module, version, name, content)) {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(mac, now, now) // how long it was not used, for prune
	return true
}

// take moves what a child built into the cache. The folder is the child's, made by us.
func (c *cacheStore) take(module [sha256.Size]byte, built string) error {
	version := versionDir()
	if version == "" {
		return errors.New("the child left no entry")
	}
	files, err := os.ReadDir(filepath.Join(built, version))
	if err != nil {
		return err
	}
	if len(files) != 1 || !entryName.MatchString(files[0].Name()) {
		return errors.New("the child left no entry")
	}
	name := files[0].Name()
	from := filepath.Join(built, version, name)
	content, err := readBounded(from, maxEntry)
	if err != nil {
		return err
	}
	if err := os.Rename(from, filepath.Join(c.dir, version, name)); err != nil {
		return err
	}
	return writeFile(c.macFile(version, module), append(c.code(module, version, name, content), name...))
}

// drop takes a module's entry out, whatever it is.
func (c *cacheStore) drop(module [sha256.Size]byte) {
	version := versionDir()
	if version == "" {
		return
	}
	mac := c.macFile(version, module)
	if text, err := readBounded(mac, 1<<10); err == nil && len(text) == sha256.Size+64 && entryName.Match(text[sha256.Size:]) {
		_ = os.Remove(filepath.Join(c.dir, version, string(text[sha256.Size:])))
	}
	_ = os.Remove(mac)
}

// prune takes out folders of children that ended badly and entries that were not used for
// long. What cannot be removed stays.
func (c *cacheStore) prune(now time.Time) {
	builds, _ := filepath.Glob(filepath.Join(c.dir, buildPattern))
	for _, b := range builds {
		if info, err := os.Lstat(b); err == nil && now.Sub(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(b)
		}
	}
	version := versionDir()
	if version == "" {
		return
	}
	macs, _ := filepath.Glob(filepath.Join(c.dir, version, "*"+macSuffix))
	for _, m := range macs {
		info, err := os.Lstat(m)
		if err != nil || now.Sub(info.ModTime()) < keepEntries {
			continue
		}
		var module [sha256.Size]byte
		if n, err := hex.Decode(module[:], []byte(filepath.Base(m)[:len(filepath.Base(m))-len(macSuffix)])); err == nil && n == len(module) {
			c.drop(module)
		}
	}
}

// readBounded reads a regular file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("host: %s: no file of at most %d bytes", path, most)
	}
	return os.ReadFile(path)
}

// writeFile writes a file whole or not at all.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
