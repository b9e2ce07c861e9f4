package wasm

import (
	"errors"
	"fmt"
)

// Every error of this package wraps one of these.
var (
	// ErrMalformed: the bytes are not a module in the binary format.
	ErrMalformed = errors.New("malformed module")
	// ErrUnsupported: the module uses a feature outside WebAssembly 2.0.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrInvalid: the module is well formed, but not valid.
	ErrInvalid = errors.New("invalid module")
	// ErrLimit: the module is refused for its size or for what a plugin may not do.
	ErrLimit = errors.New("not allowed in a plugin")
)

// fault makes the error "wasm: place: fact" that wraps a kind.
func fault(kind error, place, format string, args ...any) error {
	return &moduleError{kind, "wasm: " + place + ": " + fmt.Sprintf(format, args...)}
}

type moduleError struct {
	kind error
	text string
}

func (e *moduleError) Error() string { return e.text }
func (e *moduleError) Unwrap() error { return e.kind }
