package storage

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestMain runs the test binary as the program under test where a test starts it so.
func TestMain(m *testing.M) {
	switch path := os.Getenv("STORAGE_TEST_CHILD"); {
	case path == "":
		os.Exit(m.Run())
	default:
		writeForEver(path)
	}
}

// writeForEver writes records, one open and one closed in turn, and prints the id of
// each whose Begin has returned, until it is killed.
func writeForEver(path string) {
	l, err := Open(Config{Path: path, BeginWait: time.Minute})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("r%06d", i)
		l.Begin(context.Background(), begun(id))
		fmt.Println(id)
		if i%2 == 0 {
			l.End(ended(id))
		}
	}
}
