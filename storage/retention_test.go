package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ganglion/appliance"
)

func TestRetentionByAge(t *testing.T) {
	var now atomic.Int64
	now.Store(testTime.UnixMicro())
	cfg := testConfig(t)
	cfg.MaxAge = 24 * time.Hour
	cfg.Now = func() time.Time { return fromMicros(now.Load()) }
	l := open(t, cfg)
	add := func(id string, at time.Time, end bool) {
		r := ended(id)
		r.CreatedAt = at
		if end {
			l.End(r)
		} else {
			l.Begin(context.Background(), r)
		}
	}
	add("old", testTime.Add(-23*time.Hour), true)
	add("old but running", testTime.Add(-23*time.Hour), false)
	add("young", testTime, true)
	settle(t, l)
	if err := l.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(all(t, l, appliance.RecordQuery{})); got != "[young old but running old]" {
		t.Errorf("before its time: %s", got)
	}
	now.Add((2 * time.Hour).Microseconds())
	if err := l.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(all(t, l, appliance.RecordQuery{})); got != "[young old but running]" {
		t.Errorf("after its time: %s", got)
	}
	// A start sweeps by itself.
	now.Add((48 * time.Hour).Microseconds())
	l.Close()
	l = open(t, cfg)
	waitFor(t, "the sweep at start", func() bool { return len(all(t, l, appliance.RecordQuery{})) == 0 })
}

// The file with its write-ahead log stays below its limit at every moment, keeps the
// newest rows, and most of the limit is used.
func TestRetentionBySize(t *testing.T) {
	const limit = 4 << 20
	cfg := testConfig(t)
	cfg.MaxBytes = limit
	l := open(t, cfg)
	most := int64(0)
	const n = 1200
	for i := range n {
		r := ended(fmt.Sprintf("r%04d", i))
		r.Body = make([]byte, 100+(i*7919)%30000)
		rand.Read(r.Body)
		if i == n/2 {
			r.Text = string(bytes.Repeat([]byte("t"), limit/8-50000)) // nearly the largest there is
		}
		l.Begin(t.Context(), r)
		l.End(r)
		most = max(most, l.Stats().Bytes)
	}
	settle(t, l)
	if most > limit {
		t.Errorf("the log had %d bytes, its limit is %d", most, limit)
	}
	if most < limit/2 {
		t.Errorf("the log never had more than %d of %d bytes", most, limit)
	}
	ids := all(t, l, appliance.RecordQuery{})
	if len(ids) < 50 || ids[0] != fmt.Sprintf("r%04d", n-1) {
		t.Fatalf("%d rows, newest %q", len(ids), ids[0])
	}
	for i, id := range ids {
		if want := fmt.Sprintf("r%04d", n-1-i); id != want {
			t.Fatalf("row %d is %q, want %q: there is a gap", i, id, want)
		}
	}
	if s := l.Stats(); s.Dropped != 0 || s.State != StateOK || s.Rows != int64(len(ids)) {
		t.Errorf("stats %+v, %d rows", s, len(ids))
	}
	l.Close()
	integrity(t, cfg.Path)
}

// A record whose text is beyond reason keeps its row and loses its text.
func TestTooLargeRecord(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxBytes = 1 << 20
	l := open(t, cfg)
	r := ended("a")
	r.Body = make([]byte, 1<<20)
	l.Begin(t.Context(), r)
	l.End(r)
	settle(t, l)
	got, err := l.Get(t.Context(), "a")
	if err != nil || got == nil || got.Body != nil || got.Prompt != "" || got.PromptTokens != 7 {
		t.Fatalf("%+v, %v", got, err)
	}
	var kept string
	var bytes int
	if err := l.read.QueryRow("SELECT kept, body_bytes FROM requests").Scan(&kept, &bytes); err != nil || kept != keptTooLarge || bytes != 1<<20 {
		t.Errorf("kept %q, body_bytes %d, %v", kept, bytes, err)
	}
	if s := l.Stats(); s.Bytes > 1<<20 {
		t.Errorf("%d bytes", s.Bytes)
	}
}

// Purge gives the room back to the file system.
func TestPurgeShrinksTheFile(t *testing.T) {
	l := open(t, testConfig(t))
	for i := range 200 {
		r := ended(fmt.Sprint(i))
		r.Body = make([]byte, 10000)
		l.End(r)
	}
	settle(t, l)
	before := l.Stats().Bytes
	if _, err := l.Purge(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if after := l.Stats().Bytes; before < 2<<20 || after > 100<<10 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}
