// Package cachedir tells whether what lies in a folder of compiled kernels can be trusted.
// Drivers check what they are given less carefully than a checksum of it could make up
// for: whoever may write to the folder may write a checksum.
package cachedir

import (
	"errors"
	"os"
)

// errShared is why a folder or file is refused.
var errShared = errors.New("device: cache: not the user's alone")

// Private refuses a folder that others may write to or own, and what is no folder.
func Private(folder string) error {
	s, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !s.IsDir() {
		return errors.New("device: cache: not a folder")
	}
	return ownedAlone(s)
}

// Open opens a file in a private folder. It refuses links, and a file that others may write
// to or own: it may have been moved there, or be older than the folder's permissions.
func Open(folder, path string) (*os.File, error) {
	if err := Private(folder); err != nil {
		return nil, err
	}
	if s, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !s.Mode().IsRegular() {
		return nil, errShared
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := f.Stat()
	if err == nil {
		err = ownedAlone(s)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
