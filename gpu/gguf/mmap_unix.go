//go:build unix

package gguf

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mmapFile maps n bytes from offset, a multiple of the page size, read-only.
func mmapFile(f *os.File, offset int64, n int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), offset, n, syscall.PROT_READ, syscall.MAP_SHARED)
}

// forgetFile tells the system that the mapped pages are not needed for now: they
// leave the process and are read again at the next touch. b starts at a page.
func forgetFile(b []byte) error { return unix.Madvise(b, unix.MADV_DONTNEED) }

func munmapFile(b []byte) error { return syscall.Munmap(b) }

// sizeOf is the file's size now. It allocates nothing, for it is asked before every
// run of a model.
func sizeOf(f *os.File) (int64, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return 0, err
	}
	return st.Size, nil
}
