//go:build !windows && (!unix || solaris || aix)

package filelock

import (
	"errors"
	"os"
)

// Try knows no locks on this system.
func Try(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }
