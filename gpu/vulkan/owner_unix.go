//go:build cgo && unix

package vulkan

import (
	"errors"
	"os"
	"syscall"
)

func ownedAlone(s os.FileInfo) error {
	if s.Mode().Perm()&0o022 != 0 {
		return errors.New("vulkan: cache: others may write to the folder")
	}
	if t, ok := s.Sys().(*syscall.Stat_t); !ok || int(t.Uid) != os.Geteuid() {
		return errors.New("vulkan: cache: the folder is another user's")
	}
	return nil
}
