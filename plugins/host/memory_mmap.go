//go:build linux || darwin || freebsd

package host

import (
	"math/bits"

	"golang.org/x/sys/unix"
)

// reserve gives zeroed memory that takes no more of the machine than what is touched;
// nil where there is none to be had, or where address space is short itself.
func reserve(size int) []byte {
	if bits.UintSize < 64 || size == 0 {
		return nil
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return b
}

// release gives memory of reserve back.
func release(b []byte) {
	if b != nil {
		_ = unix.Munmap(b) // it was mapped just so
	}
}
