package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestFileStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	began := s.Read("a")
	if err := s.Commit("a", map[string][]byte{"k\xFF": []byte("v"), "empty": {}, "gone": nil}); err != nil {
		t.Fatal(err)
	}
	if len(began) != 0 {
		t.Error("a request sees what another one wrote")
	}
	again, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	v := again.Read("a")
	if e, ok := v["empty"]; string(v["k\xFF"]) != "v" || len(v) != 2 || !ok || len(e) != 0 {
		t.Errorf("%q", v)
	}
	if len(again.Read("b")) != 0 {
		t.Error("plugins share values")
	}
	if err := again.Commit("a", map[string][]byte{"big": make([]byte, MaxStoreBytes)}); err == nil {
		t.Error("more than the most is stored")
	}
	if len(again.Read("a")) != 2 {
		t.Error("a refused write left something")
	}
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, _ := OpenStore(dir)
	if len(damaged.Read("a")) != 0 {
		t.Error("a damaged file has values")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.json.damaged")); err != nil || string(b) != "[" {
		t.Errorf("the damaged file is %q, %v", b, err)
	}
	if err := damaged.Clear("a"); err != nil {
		t.Error(err)
	}
	if err := damaged.Clear("a"); err != nil {
		t.Error(err)
	}
}

func TestFileStoreTakesWritesSideBySide(t *testing.T) {
	s, _ := OpenStore("")
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			if err := s.Commit("a", map[string][]byte{fmt.Sprint(n): bytes.Repeat([]byte{1}, n)}); err != nil {
				t.Error(err)
			}
			_ = s.Read("a")["7"]
		})
	}
	wg.Wait()
	if n := len(s.Read("a")); n != 50 {
		t.Errorf("%d values", n)
	}
}

// TestFileStoreRemembersWhatTheDiskTook: a write that fails changes nothing.
func TestFileStoreRemembersWhatTheDiskTook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit("a", map[string][]byte{"k": {1}}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit("a", map[string][]byte{"k": {2}}); err == nil || errors.Is(err, errStoreFull) {
		t.Errorf("a write without a folder: %v", err)
	}
	if v := s.Read("a")["k"]; !bytes.Equal(v, []byte{1}) {
		t.Errorf("it remembers %v", v)
	}
}
