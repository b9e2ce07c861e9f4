// Package archtest holds golden models of the reference's architectures for tests:
// tiny models with random weights and their logits. It is imported by tests only and
// knows nothing of the engine.
//
// A set lies in the repository as one compressed archive, because its models share
// most of their weights; it is unpacked once per machine. Setting GANGLION_ARCH_DIR
// puts another folder of the same form in the place of the set of plain models.
package archtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

//go:embed testdata/arch.tar.zst
var archive []byte

//go:embed testdata/variants.tar.zst
var variantArchive []byte

// Set is a folder of models with their golden logits.
type Set struct {
	Dir     string  `json:"-"`
	Tokens  []int32 // run at positions 0 … n−1 in one causal pass
	Vocab   int     `json:"n_vocab"`
	Entries []Entry
}

// Entry is one model of a set.
type Entry struct {
	Name, Arch, File, Logits string
	Tier                     int
	MaxExact                 float64 `json:"max_nmse_exact"` // bounds of NMSE over all positions
	MaxFast                  float64 `json:"max_nmse_fast"`
}

// Golden returns the set of the architectures' plain models, unpacked. It fails the
// test when that is not possible.
func Golden(t testing.TB) *Set {
	t.Helper()
	return must(t, golden)
}

// Variants returns the set of models that differ from the plain ones in what real files
// differ in: head counts, depths, experts, tied or fused matrices, optional keys and
// tensors. It fails the test when that is not possible.
func Variants(t testing.TB) *Set {
	t.Helper()
	return must(t, variants)
}

func must(t testing.TB, get func() (*Set, error)) *Set {
	t.Helper()
	s, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	golden   = sync.OnceValues(func() (*Set, error) { return load(os.Getenv("GANGLION_ARCH_DIR"), archive) })
	variants = sync.OnceValues(func() (*Set, error) { return load("", variantArchive) })
)

// load reads the set in a folder, or in an archive when dir is empty.
func load(dir string, archive []byte) (*Set, error) {
	if dir == "" {
		var err error
		if dir, err = unpacked(archive); err != nil {
			return nil, fmt.Errorf("archtest: unpack the golden models: %w", err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, fmt.Errorf("archtest: %w", err)
	}
	s := &Set{Dir: dir}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("archtest: %s: manifest.json: %w", dir, err)
	}
	if len(s.Entries) == 0 || len(s.Tokens) == 0 {
		return nil, fmt.Errorf("archtest: %s: manifest.json has %d entries and %d tokens", dir, len(s.Entries), len(s.Tokens))
	}
	return s, nil
}

// Find returns the entry of a name.
func (s *Set) Find(t testing.TB, name string) Entry {
	t.Helper()
	for _, e := range s.Entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("archtest: the set has no model %q", name)
	return Entry{}
}

// Path is the model file of a name.
func (s *Set) Path(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(s.Dir, s.Find(t, name).File)
}

// Want reads the golden logits of an entry: [len(Tokens), Vocab].
func (s *Set) Want(t testing.TB, e Entry) []float32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, e.Logits))
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 4*len(s.Tokens)*s.Vocab {
		t.Fatalf("archtest: %s has %d bytes, want %d rows of %d floats", e.Logits, len(b), len(s.Tokens), s.Vocab)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// unpacked gives the folder of the archive's files. It is made in the user's cache
// under the archive's hash, and appears whole or not at all: several test programs
// may want it at once.
func unpacked(archive []byte) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(archive)
	dir := filepath.Join(cache, "ganglion-test", "arch-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := unpack(tmp, archive); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		if _, there := os.Stat(filepath.Join(dir, "manifest.json")); there != nil {
			return "", err
		}
	}
	return dir, nil
}

func unpack(dir string, archive []byte) error {
	z, err := zstd.NewReader(bytes.NewReader(archive), zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		return err
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%q leaves the folder", h.Name)
		}
		f, err := os.Create(filepath.Join(dir, h.Name))
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
