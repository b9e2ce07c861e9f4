package storage

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"ganglion/appliance"
)

// A process that is killed in the middle of writing leaves a sound file with every row
// whose Begin had returned; the open ones are marked at the next start.
func TestKilledProcess(t *testing.T) {
	cfg := testConfig(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "STORAGE_TEST_CHILD="+cfg.Path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var begun []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		begun = append(begun, lines.Text())
		if len(begun) == 501 {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	child.Wait() // it was killed
	if len(begun) < 501 {
		t.Fatalf("the child wrote %d rows: %v", len(begun), begun)
	}

	book := new(logBook)
	cfg.Logger = book.logger()
	l := open(t, cfg)
	ids := map[string]bool{}
	for _, id := range all(t, l, appliance.RecordQuery{}) {
		ids[id] = true
	}
	lost := 0
	for _, id := range begun {
		if !ids[id] {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d rows are lost", lost, len(begun))
	}
	if n := len(all(t, l, appliance.RecordQuery{Outcome: appliance.OutcomeOpen})); n != 0 {
		t.Errorf("%d rows are still open", n)
	}
	if n := len(all(t, l, appliance.RecordQuery{Outcome: appliance.OutcomeInterrupted})); n < len(begun)/2 {
		t.Errorf("%d rows are marked interrupted, want at least %d", n, len(begun)/2)
	}
	if book.count("set aside") != 0 {
		t.Errorf("the file counts as damaged:\n%s", book)
	}
	l.Close()
	integrity(t, cfg.Path)
}

// A second process, or a command beside the server, leaves the open rows of a living
// one alone.
func TestSecondLogLeavesOpenRowsAlone(t *testing.T) {
	cfg := testConfig(t)
	first := open(t, cfg)
	first.Begin(t.Context(), begun("running"))
	second := open(t, cfg)
	if got := all(t, second, appliance.RecordQuery{Outcome: appliance.OutcomeOpen}); len(got) != 1 {
		t.Errorf("open rows: %v", got)
	}
	put(t, second, "other", 0, 3)
	first.End(ended("running"))
	settle(t, first)
	second.Close()
	if got := all(t, first, appliance.RecordQuery{Outcome: appliance.OutcomeStop}); len(got) != 4 {
		t.Errorf("closed rows: %v", got)
	}
	// The partner: the row of one that is gone is marked.
	first.Begin(t.Context(), begun("left open"))
	first.Close()
	third := open(t, cfg)
	if got := all(t, third, appliance.RecordQuery{Outcome: appliance.OutcomeInterrupted}); len(got) != 1 || got[0] != "left open" {
		t.Errorf("interrupted rows: %v", got)
	}
}
