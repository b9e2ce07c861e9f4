package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Try takes or changes a lock on a file without waiting. ok is false when
// another process is in the way; an error means that there are no locks here.
func Try(f *os.File, exclusive bool) (ok bool, err error) {
	h := windows.Handle(f.Fd())
	region := new(windows.Overlapped)
	// A lock cannot be changed here, only given up and taken anew. There may be none
	// yet.
	_ = windows.UnlockFileEx(h, 0, 1, 0, region)
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err = windows.LockFileEx(h, flags, 0, 1, 0, region)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}
