//go:build linux || darwin || freebsd

package host

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestWipeOnlyReadsZeros: the pages here may not be written.
func TestWipeOnlyReadsZeros(t *testing.T) {
	b := reserve(3 * memoryPage)
	if b == nil {
		t.Skip("no memory can be reserved")
	}
	defer release(b)
	b[memoryPage+5] = 1
	page := unix.Getpagesize()
	for _, zeros := range [][]byte{b[:memoryPage], b[memoryPage+page : 3*memoryPage]} {
		if err := unix.Mprotect(zeros, unix.PROT_READ); err != nil {
			t.Skip(err)
		}
	}
	wipe(b)
	for i, v := range b {
		if v != 0 {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
}
