//go:build unix && !solaris && !aix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Try takes or changes a lock on a file without waiting. ok is false when
// another process is in the way; an error means that there are no locks here.
func Try(f *os.File, exclusive bool) (ok bool, err error) {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
