//go:build unix

package gguf

import (
	"os"
	"syscall"
)

// mmapFile maps n bytes from offset, a multiple of the page size, read-only.
func mmapFile(f *os.File, offset int64, n int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), offset, n, syscall.PROT_READ, syscall.MAP_SHARED)
}

func munmapFile(b []byte) error { return syscall.Munmap(b) }
