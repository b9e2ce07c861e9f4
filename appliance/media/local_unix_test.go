//go:build unix

package media

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe, which would wait for its writer, is not opened.
func TestPipesOfAFolder(t *testing.T) {
	l := DefaultLimits()
	l.Folder = t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(l.Folder, "pipe.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		r := reader{limits: l}
		_, err := r.local(item{param: "images[0]"}, "pipe.png")
		done <- err
	}()
	select {
	case err := <-done:
		wantCode(t, "a pipe", err, CodeBroken, "images[0]")
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits for the pipe")
	}
}
