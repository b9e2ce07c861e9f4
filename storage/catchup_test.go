package storage

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
)

// reads are the calls that wait for the writes before them; each tells whether it saw the
// end of record a.
var reads = map[string]func(t *testing.T, l *Log) bool{
	"get": func(t *testing.T, l *Log) bool {
		r, err := l.Get(t.Context(), "a")
		if err != nil || r == nil {
			t.Errorf("the record: %v, %v", r, err)
			return false
		}
		return r.Outcome == appliance.OutcomeStop && len(r.Tokens) > 0
	},
	"list": func(t *testing.T, l *Log) bool {
		r, _, err := l.List(t.Context(), appliance.RecordQuery{Limit: 1, Outcome: appliance.OutcomeStop})
		if err != nil {
			t.Error(err)
		}
		return len(r) == 1
	},
	"delete": func(t *testing.T, l *Log) bool {
		if found, err := l.Delete(t.Context(), "a"); err != nil || !found {
			t.Errorf("deleted: %v, %v", found, err)
		}
		settle(t, l)
		r, err := l.Get(t.Context(), "a")
		return err == nil && r == nil
	},
	"purge": func(t *testing.T, l *Log) bool {
		if n, err := l.Purge(t.Context(), time.Time{}); err != nil || n != 1 {
			t.Errorf("purged: %v, %v", n, err)
		}
		settle(t, l)
		r, err := l.Get(t.Context(), "a")
		return err == nil && r == nil
	},
}

// Who reads the log when an answer has ended finds its row closed, though the writer is
// behind; what is deleted then stays deleted.
func TestReadsSeeTheWritesBeforeThem(t *testing.T) {
	for name, read := range reads {
		// What deletes waits for the same lock as the writer, who may come first by chance.
		for round := range map[bool]int{true: 8, false: 1}[name == "delete" || name == "purge"] {
			t.Run(fmt.Sprint(name, " ", round), func(t *testing.T) { seesTheEnd(t, read) })
		}
	}
}

func seesTheEnd(t *testing.T, read func(t *testing.T, l *Log) bool) {
	cfg := testConfig(t)
	cfg.readWait = time.Minute // the machine may be busy
	l := open(t, cfg)
	l.Begin(t.Context(), begun("a"))
	l.writing.Lock() // the writer stands still
	l.End(ended("a"))
	done := make(chan struct{})
	saw := false
	go func() { defer close(done); saw = read(t, l) }()
	select {
	case <-done:
		t.Error("it did not wait for the write before it")
	case <-time.After(50 * time.Millisecond):
	}
	l.writing.Unlock()
	<-done
	if !saw {
		t.Error("it did not see the end of the record")
	}
}

// A reader does not wait for a log that cannot be written, whatever stands in the queue.
func TestReadsDoNotWaitForALockedLog(t *testing.T) {
	cfg := testConfig(t)
	cfg.readWait = time.Minute
	l := open(t, cfg)
	put(t, l, "a", 0, 1)
	release := holdLock(t, cfg.Path)
	defer release()
	l.End(ended("b"))
	waitForLock(t, l)
	before := l.queue.total()
	if behind, _ := l.queue.behind(before); !behind {
		t.Fatal("nothing waits")
	}
	start := time.Now()
	if _, err := l.Get(t.Context(), "a-0000"); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took >= cfg.readWait {
		t.Errorf("the read waited %v for a log that is locked", took)
	}
}

// The wait is bounded, and ends with the reader.
func TestCatchingUpIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readWait = 2 * time.Second
		l := &Log{cfg: Config{readWait: readWait}}
		l.queue.init(4)
		l.queue.add(&op{end: true})
		start := time.Now()
		l.catchUp(t.Context())
		if took := time.Since(start); took != readWait {
			t.Errorf("it waited %v, want %v", took, readWait)
		}
		ctx, cancel := context.WithTimeout(t.Context(), readWait/4)
		defer cancel()
		start = time.Now()
		l.catchUp(ctx)
		if took := time.Since(start); took != readWait/4 {
			t.Errorf("it waited %v for a reader that left after %v", took, readWait/4)
		}
		go func() {
			time.Sleep(time.Millisecond)
			l.queue.take(4, 1<<20)
			l.queue.settled(1) // one of it is left
			time.Sleep(time.Millisecond)
			l.queue.settled(0)
		}()
		start = time.Now()
		l.catchUp(t.Context())
		if took := time.Since(start); took != 2*time.Millisecond {
			t.Errorf("it waited %v for a write of 2 ms", took)
		}
	})
}
