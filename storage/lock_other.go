//go:build !windows && (!unix || solaris || aix)

package storage

import (
	"errors"
	"os"
)

// lockFile knows no locks on this system.
func lockFile(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }
