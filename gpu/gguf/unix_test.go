//go:build unix

package gguf

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe is refused without waiting for its other end.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.gguf")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	refused(t, err, path, "is not a regular file")
}

// openFiles returns the number of open file descriptors of the process: of those up to
// 255, which a test does not exceed.
func openFiles(t *testing.T) int {
	t.Helper()
	n := 0
	for fd := range 256 {
		var stat syscall.Stat_t
		if syscall.Fstat(fd, &stat) == nil {
			n++
		}
	}
	return n
}
