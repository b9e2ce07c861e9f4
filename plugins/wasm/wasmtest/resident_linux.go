package wasmtest

import (
	"fmt"
	"os"
	"testing"
)

// Resident is how much memory of the machine the process takes (proc_pid_statm(5)).
func Resident(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Skip(err)
	}
	return resident * os.Getpagesize()
}
