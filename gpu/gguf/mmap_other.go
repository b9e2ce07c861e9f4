//go:build !unix

package gguf

import (
	"errors"
	"os"
)

// mmapFile refuses: on these systems tensors are read.
func mmapFile(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func forgetFile([]byte) error { return nil }

func munmapFile([]byte) error { return nil }

// sizeOf is the file's size now.
func sizeOf(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
