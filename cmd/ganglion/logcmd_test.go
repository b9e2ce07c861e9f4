package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// What is deleted is gone from the log and from its files, and nothing else is.
func TestDeletingFromTheLog(t *testing.T) {
	data := t.TempDir()
	path := filepath.Join(data, "ganglion.db")
	log, err := storage.Open(storage.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for i, age := range []time.Duration{90 * 24 * time.Hour, 40 * 24 * time.Hour, time.Hour, time.Minute} {
		r := &appliance.Record{ID: fmt.Sprintf("cmpl-%d", i), CreatedAt: time.Now().Add(-age), Route: "test", Prompt: fmt.Sprintf("secret-%d", i)}
		log.Begin(t.Context(), r)
		r.Outcome, r.EndedAt = appliance.OutcomeStop, r.CreatedAt
		log.End(r)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words string
		code  int
		left  string // the secrets that are still in the files
		said  string
	}{
		{"", exitOK, "0 1 2 3", ""},
		{"purge", exitUsage, "0 1 2 3", "either --older AGE or --all"},
		{"purge --all --older 1d", exitUsage, "0 1 2 3", "either --older AGE or --all"},
		{"purge --older soon", exitUsage, "0 1 2 3", "--older"},
		{"delete", exitUsage, "0 1 2 3", "takes the ids"},
		{"delete nobody", exitUsage, "0 1 2 3", "no request \"nobody\""},
		{"purge --older 100d", exitOK, "0 1 2 3", "0 requests deleted"},
		{"purge --older 30d", exitOK, "2 3", "2 requests deleted"},
		{"delete cmpl-2", exitOK, "3", "1 request deleted"},
		{"purge --all", exitOK, "", "1 request deleted"},
	} {
		var said strings.Builder
		e := &env{stdout: io.Discard, stderr: &said, getenv: func(string) string { return "" }}
		code := run(context.Background(), e, append(append([]string{"log"}, strings.Fields(c.words)...), "--data", data))
		if code != c.code || !strings.Contains(said.String(), c.said) {
			t.Errorf("%q: code %d, %s", c.words, code, said.String())
		}
		if left := secrets(t, data); left != c.left {
			t.Errorf("%q: %q are left, want %q", c.words, left, c.left)
		}
	}
	if code := run(context.Background(), &env{stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }},
		[]string{"log", "purge", "--all", "--data", t.TempDir()}); code != exitOK {
		t.Errorf("no log yet: code %d", code)
	}
}

// secrets are the numbers n of the words secret-n in any file of a folder, in order.
func secrets(t *testing.T, dir string) string {
	t.Helper()
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`secret-(\d)`).FindAllSubmatch(b, -1) {
			found[string(m[1])] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " ")
}
