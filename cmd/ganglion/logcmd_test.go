package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/storage"
)

// Looking at the log deletes nothing, whatever the limits of the one who looks are;
// the partner opens it with a limit, as serve does, and the old row goes.
func TestLookingAtTheLogDeletesNothing(t *testing.T) {
	data := t.TempDir()
	path := filepath.Join(data, "ganglion.db")
	log, err := storage.Open(storage.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	old := &appliance.Record{ID: "cmpl-old", CreatedAt: time.Now().Add(-90 * 24 * time.Hour), Route: "test"}
	log.Begin(context.Background(), old)
	old.Outcome, old.EndedAt = appliance.OutcomeStop, old.CreatedAt
	log.End(old)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"log", "doctor"} {
		e := &env{stdin: nil, stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}
		run(context.Background(), e, []string{verb, "--data", data})
		if n := len(logRows(t, path, "")); n != 1 {
			t.Fatalf("after `ganglion %s`: %d rows, want 1", verb, n)
		}
	}
	limited, err := storage.Open(storage.Config{Path: path, MaxAge: 720 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	if err := limited.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := limited.Stats().Rows; n != 0 {
		t.Errorf("with a limit of 30 days %d rows are left, want 0", n)
	}
}
