package gl

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Files that nothing asked for in a long time go; those that were loaded stay.
func TestCachePrunes(t *testing.T) {
	dir := t.TempDir()
	c := newCache(dir, identity{version: "1"}, true)
	for _, text := range []string{"used", "unused", "new"} {
		c.save(text, []byte(text), 7)
	}
	old := time.Now().Add(-cacheAge - time.Hour)
	for _, text := range []string{"used", "unused"} {
		if err := os.Chtimes(c.path(text), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if data, format, ok := c.load("used"); !ok || string(data) != "used" || format != 7 {
		t.Errorf("loaded %q of format %d, %v", data, format, ok)
	}
	if err := os.Chmod(c.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := c.load("used"); ok && runtime.GOOS != "windows" {
		t.Error("a program from a folder of everyone was loaded")
	}
	c.save("shared", []byte("shared"), 7)
	if err := os.Chmod(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := c.load("shared"); ok && runtime.GOOS != "windows" {
		t.Error("a program was kept in a folder of everyone")
	}
	other := filepath.Join(dir, "other")
	os.WriteFile(other, nil, 0o600)
	os.Chtimes(other, old, old)
	c = newCache(dir, identity{version: "1"}, true)
	for text, want := range map[string]bool{"used": true, "unused": false, "new": true} {
		if _, _, ok := c.load(text); ok != want {
			t.Errorf("%s: %v, want %v", text, ok, want)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("a file outside the cache's folder is gone")
	}
	if _, _, ok := newCache(dir, identity{version: "2"}, true).load("new"); ok {
		t.Error("a driver met another's program")
	}
	if newCache("", identity{}, true).on() || newCache(dir, identity{}, false).on() {
		t.Error("a cache without a folder, or without binaries, is on")
	}
}
