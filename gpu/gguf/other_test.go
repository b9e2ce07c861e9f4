//go:build !unix

package gguf

import "testing"

// openFiles cannot count here; the tests then compare equal numbers.
func openFiles(*testing.T) int { return 0 }
