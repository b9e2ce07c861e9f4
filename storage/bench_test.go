package storage

import (
	"fmt"
	"testing"
)

// What a request pays before its first byte, and at its end.
func BenchmarkBeginEnd(b *testing.B) {
	l := open(b, testConfig(b))
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i)
		l.Begin(b.Context(), begun(id))
		l.End(ended(id))
	}
}
