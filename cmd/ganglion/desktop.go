package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"ganglion/storage/filelock"
)

// startPatience is how long a start waits for one that was there before it to answer.
const startPatience = 10 * time.Second

// desktop is what a double-click starts: the page in the browser. A second start
// opens the page of the first and ends, also where the first has only just begun.
func desktop(ctx context.Context, e *env, s *settings) error {
	path := instancePath(s.paths.State)
	lock, err := claim(filepath.Join(s.paths.State, "instance.lock"))
	if err == nil {
		defer lock.Close()
	}
	for deadline := time.Now().Add(startPatience); ; time.Sleep(50 * time.Millisecond) {
		first, err := filelock.Try(lock, true)
		if in, ok := running(ctx, path); ok {
			e.note("already running at %s", in.URL)
			return e.openBrowser(ctx, in.page())
		}
		if first || err != nil || ctx.Err() != nil || time.Now().After(deadline) {
			return serve(ctx, e, s, newInstance(path))
		}
	}
}

// claim opens the file that the first start holds a lock on for as long as it runs. Without
// it every start takes itself for the first unless another one answers.
func claim(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
