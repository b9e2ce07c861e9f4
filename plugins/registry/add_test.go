package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugins") // it comes with the first file
	r := newRegistry(t, Options{Dir: dir})
	ctx := context.Background()
	r.Scan(ctx)
	add := func(name string, file []byte, version string, target error) {
		t.Helper()
		m, err := r.Add(ctx, name, file)
		if !errors.Is(err, target) || err == nil && m.Version != version {
			t.Errorf("%s: %v, want %v", name, err, target)
		}
	}
	add("x.wasm", plugin("x", "1.0.0", 0), "1.0.0", nil)
	want(t, r, "x", "", "1.0.0", nil)
	add("x.wasm", plugin("x", "1.1.0", 1), "1.1.0", nil) // an update, at once
	want(t, r, "x", "", "1.1.0", nil)

	add("x.wasm", []byte("no module"), "", ErrRejected)
	add("x.wasm", plugin("y", "1.0.0", 2), "", ErrTaken)
	add("z.wasm", plugin("x", "1.1.0", 1), "", ErrTaken)
	for _, name := range []string{"", "x", "x.txt", ".x.wasm", "../x.wasm", "a/x.wasm", `a\x.wasm`, "a b.wasm", "x.wasm\n", "x.js"} {
		add(name, plugin("n", "1.0.0", 3), "", ErrRejected)
	}
	put(t, dir, "foreign.wasm", []byte("not seen yet"))
	add("foreign.wasm", plugin("f", "1.0.0", 4), "", ErrTaken)
	if err := os.Remove(filepath.Join(dir, "foreign.wasm")); err != nil {
		t.Fatal(err)
	}
	want(t, r, "x", "", "1.1.0", nil)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%v in the folder: %v", files, err)
	}

	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Add(gone, "c.wasm", plugin("c", "1.0.0", 5)); err == nil {
		t.Error("added after its caller left")
	}
	// While a scan runs it waits no longer than its caller; what came before does.
	r.scanning <- struct{}{}
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := r.Add(soon, "c.wasm", plugin("c", "1.0.0", 5)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a scan runs: %v", err)
	}
	r.Scan(soon) // returns
	r.scanning.leave()
	add("c.wasm", plugin("c", "1.0.0", 5), "1.0.0", nil)
	strict := newRegistry(t, Options{Dir: dir, Policy: Require})
	if _, err := strict.Add(ctx, "u.wasm", plugin("u", "1.0.0", 6)); !errors.Is(err, ErrRejected) {
		t.Errorf("unsigned: %v", err)
	}
	nowhere := newRegistry(t, Options{})
	if _, err := nowhere.Add(ctx, "u.wasm", plugin("u", "1.0.0", 6)); !errors.Is(err, ErrRejected) {
		t.Errorf("without a folder: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	add("late.wasm", plugin("l", "1.0.0", 7), "", ErrRejected)
}
