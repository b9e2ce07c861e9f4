//go:build unix

package cachedir

import (
	"fmt"
	"os"
	"syscall"
)

func ownedAlone(s os.FileInfo) error {
	if s.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s: others may write to it", errShared, s.Name())
	}
	if t, ok := s.Sys().(*syscall.Stat_t); !ok || int(t.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s: it is another user's", errShared, s.Name())
	}
	return nil
}
