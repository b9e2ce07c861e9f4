package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
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

// Whatever of a record is large, its facts are kept, few others make room for it, and what
// comes later is written.
func TestNoRecordHoldsUpTheOthers(t *testing.T) {
	long := strings.Repeat("a long text ", 1<<18)
	for name, change := range map[string]func(*appliance.Record){
		"nothing":      func(*appliance.Record) {},
		"body":         func(r *appliance.Record) { r.Body = []byte(long) },
		"prompt":       func(r *appliance.Record) { r.Prompt = long },
		"text":         func(r *appliance.Record) { r.Text = long },
		"tokens":       func(r *appliance.Record) { r.Tokens = make([]appliance.Token, 1<<18) },
		"alternatives": func(r *appliance.Record) { r.Tokens[0].Top = make([]appliance.Alternative, 1<<18) },
		"token text":   func(r *appliance.Record) { r.Tokens[0].Top = []appliance.Alternative{{Text: long}} },
		"stop":         func(r *appliance.Record) { r.Params[2].Value = []string{long} },
		"error":        func(r *appliance.Record) { r.ErrorMessage = long },
		"plugin":       func(r *appliance.Record) { r.Plugins[0].Error = long },
		"choices":      func(r *appliance.Record) { r.Plugins[2].Choices = []appliance.ShadowChoice{{Text: long}} },
		"meta":         func(r *appliance.Record) { r.PluginMeta = map[string]string{"a": long} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.MaxBytes = minMaxBytes
			l := open(t, cfg)
			put(t, l, "before", 0, 20)
			r := ended("large")
			change(r)
			l.Begin(t.Context(), r)
			l.End(r)
			put(t, l, "after", 0, 20)
			got, err := l.Get(t.Context(), "large")
			if err != nil || got == nil || got.Outcome != r.Outcome || got.PromptTokens != 7 || len(got.Plugins) != 3 {
				t.Fatalf("%+v, %v", got, err)
			}
			if whole := got.Text != "" && got.Prompt != "" && len(got.Tokens) > 0; whole != (name == "nothing") {
				t.Errorf("the text is there: %v", whole)
			}
			if s := l.Stats(); s.Rows != 41 || s.Dropped != 0 || s.State != StateOK || s.Bytes > minMaxBytes {
				t.Errorf("%+v", s)
			}
		})
	}
}

// An estimate that was too low costs the record its text and nothing else: the writer
// neither waits for room that never comes nor does it give other records up.
func TestEstimateTooLow(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxBytes = minMaxBytes
	l := open(t, cfg)
	put(t, l, "before", 0, 5)
	o := l.newOp(ended("large"), true)
	o.record.Text = strings.Repeat("a", 2*minMaxBytes) // o.bytes is what it was
	if !l.queue.add(o) {
		t.Fatal("the queue is full")
	}
	put(t, l, "after", 0, 5)
	got, err := l.Get(t.Context(), "large")
	if err != nil || got == nil || got.Text != "" || got.PromptTokens != 7 {
		t.Fatalf("%+v, %v", got, err)
	}
	if s := l.Stats(); s.Dropped != 0 || s.State != StateOK || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// A record that has no text to lose and fits nowhere is given up, and it alone.
func TestRecordThatFitsNowhere(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxBytes, cfg.NoText = minMaxBytes, true
	l := open(t, cfg)
	r := ended("large")
	r.Media = make([]appliance.MediaNote, 1<<15)
	l.End(r)
	put(t, l, "after", 0, 5)
	if s := l.Stats(); s.Rows != 5 || s.Dropped != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
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
