package film

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// livesAsParent is the life of a process of TestChildEndsWithItsParent: the parent starts
// the child, which says so, and both stay.
func livesAsParent(role string) {
	if role == "child" {
		go endWith(os.Getppid(), 10*time.Millisecond)
		_, _ = os.Stdout.WriteString("here\n")
	} else {
		child := exec.Command(os.Args[0], "film-parent", "child")
		child.Stdout = os.Stdout
		if child.Start() != nil {
			os.Exit(1)
		}
	}
	time.Sleep(3 * time.Minute)
	os.Exit(0)
}

// A child whose parent is killed does not work on.
func TestChildEndsWithItsParent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process keeps the number of its parent there")
	}
	parent := exec.Command(os.Args[0], "film-parent", "parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "here\n" {
		t.Errorf("the child says %q, %v", line, err)
	}
	_ = parent.Process.Kill()
	start := time.Now()
	_, _ = io.Copy(io.Discard, lines) // until the child has let go of the pipe
	_ = parent.Wait()
	if took := time.Since(start); took > time.Minute {
		t.Errorf("the child lived on for %v", took)
	}
}
