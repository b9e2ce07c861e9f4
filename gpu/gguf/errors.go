package gguf

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by methods that need the file after Close.
var ErrClosed = errors.New("gguf: file is closed")

// ErrTruncated is wrapped by errors about a file that lost bytes after it was opened.
var ErrTruncated = errors.New("file was truncated while in use")

// FormatError says why a file is not a GGUF this package reads.
type FormatError struct {
	Path   string // file, or part of a split file
	Offset int64  // byte where the field begins, from the start of the GGUF
	Field  string // such as `key "general.name": value length`
	Fact   string
}

// Error returns "gguf: PATH: byte OFFSET, FIELD: FACT".
func (e *FormatError) Error() string {
	return fmt.Sprintf("gguf: %s: byte %d, %s: %s", e.Path, e.Offset, e.Field, e.Fact)
}
