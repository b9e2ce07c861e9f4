package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
)

// F72: 64 writers × 50, a reader running long selects, another connection holding the
// write lock. Every record has its row.
func TestHammer(t *testing.T) {
	const writers, each = 64, 50
	cfg := testConfig(t)
	cfg.BeginWait = 50 * time.Millisecond
	l := open(t, cfg)
	put(t, l, "before", 0, 50)

	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	readers.Go(func() {
		for ctx.Err() == nil {
			_, _, err := l.List(ctx, appliance.RecordQuery{Limit: 500, Text: "nowhere"})
			if err != nil && ctx.Err() == nil {
				t.Errorf("read: %v", err)
			}
		}
	})
	release := holdLock(t, cfg.Path)
	locked := time.Now()
	var clients sync.WaitGroup
	var longest struct {
		sync.Mutex
		d time.Duration
	}
	for w := range writers {
		clients.Go(func() {
			for i := range each {
				id := fmt.Sprintf("w%02d-%02d", w, i)
				start := time.Now()
				l.Begin(t.Context(), begun(id))
				l.End(ended(id))
				took := time.Since(start)
				longest.Lock()
				longest.d = max(longest.d, took)
				longest.Unlock()
			}
		})
	}
	clients.Wait() // no answer waits for the lock
	if took := time.Since(locked); took > 30*time.Second {
		t.Errorf("the clients took %v", took)
	}
	waitFor(t, "the lock to be noticed", func() bool { return l.Stats().State == StateLocked })
	time.Sleep(max(0, 3*time.Second-time.Since(locked))) // the case is a lock of three seconds
	release()
	settle(t, l)
	stop()
	readers.Wait()
	s := l.Stats()
	if s.Dropped != 0 || s.State != StateOK || s.Rows != writers*each+50 {
		t.Errorf("stats %+v", s)
	}
	if s.Late == 0 {
		t.Error("no row was late though the log was locked")
	}
	t.Logf("longest Begin and End together: %v", longest.d)
	if n := len(all(t, l, appliance.RecordQuery{Outcome: appliance.OutcomeStop})); n != writers*each+50 {
		t.Errorf("%d closed rows, want %d", n, writers*each+50)
	}
}

// Begin waits no longer than it is told to, and not at all once the log is known to be
// locked.
func TestBeginIsBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.BeginWait = 500 * time.Millisecond
	l := open(t, cfg)
	l.writing.Lock() // the writer stands still, and does not know of the lock
	release := holdLock(t, cfg.Path)
	start := time.Now()
	l.Begin(t.Context(), begun("a")) // does not return before that, or never
	if took := time.Since(start); took < cfg.BeginWait {
		t.Errorf("the first Begin took %v, want %v", took, cfg.BeginWait)
	}
	l.writing.Unlock()
	waitForLock(t, l)
	start = time.Now()
	for i := range 100 {
		l.Begin(t.Context(), begun(fmt.Sprint("b", i)))
	}
	if took := time.Since(start); took > 100*cfg.BeginWait/2 {
		t.Errorf("100 calls of Begin took %v while the log is locked", took)
	}
	if s := l.Stats(); s.Late != 101 || s.LastError == "" {
		t.Errorf("stats %+v", s)
	}
	release()
	settle(t, l)
	if s := l.Stats(); s.Rows != 101 || s.State != StateOK {
		t.Errorf("stats %+v", s)
	}
}

// A queue that is full gives records up, counts them, and bounds the memory.
func TestFullQueueDrops(t *testing.T) {
	cfg := testConfig(t)
	cfg.QueueSize, cfg.BeginWait = 10, time.Millisecond
	l := open(t, cfg)
	release := holdLock(t, cfg.Path)
	l.End(ended("first"))
	waitForLock(t, l)
	for i := range 30 {
		l.End(ended(fmt.Sprint("r", i)))
	}
	if s := l.Stats(); s.Dropped != 20 || s.Waiting != 10 {
		t.Errorf("stats %+v", s)
	}
	release()
	settle(t, l)
	if s := l.Stats(); s.Rows != 11 {
		t.Errorf("stats %+v", s)
	}

	release = holdLock(t, cfg.Path)
	defer release()
	l.End(ended("again"))
	waitForLock(t, l)
	dropped := l.Stats().Dropped
	big := ended("big")
	big.Body = make([]byte, 40<<20)
	l.End(big)
	l.End(big)
	if s := l.Stats(); s.Dropped != dropped+1 || s.Waiting != 1 {
		t.Errorf("stats %+v, want one more dropped than %d", s, dropped)
	}
}

// Close gives up on a log that stays locked, and says what was lost.
func TestCloseWhileLocked(t *testing.T) {
	cfg := testConfig(t)
	book := new(logBook)
	cfg.Logger, cfg.closeWait = book.logger(), 200*time.Millisecond
	l := open(t, cfg)
	put(t, l, "r", 0, 1)
	release := holdLock(t, cfg.Path)
	l.End(ended("a"))
	l.End(ended("b"))
	start := time.Now()
	l.Close()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
	if s := l.Stats(); s.Dropped != 2 {
		t.Errorf("stats %+v", s)
	}
	if book.count("records were lost") != 1 {
		t.Errorf("logged:\n%s", book)
	}
	release()
	integrity(t, cfg.Path)
}

// F74: full after some rows, then there is room again.
func TestFullDisk(t *testing.T) {
	cfg := testConfig(t)
	book := new(logBook)
	cfg.Logger = book.logger()
	cfg.maxPages, cfg.BeginWait = 40, 2*time.Second
	l := open(t, cfg)
	ctx := context.Background()
	n := 0
	for ; l.Stats().State == StateOK && n < 1000; n++ {
		r := ended(fmt.Sprintf("r%04d", n))
		r.Body = make([]byte, 3000)
		l.Begin(ctx, r)
		l.End(r)
	}
	if s := l.Stats(); s.State != StateFull || s.Rows < 20 {
		t.Fatalf("after %d records: %+v", n, s)
	}
	rows := l.Stats().Rows
	start := time.Now()
	for i := range 50 {
		r := ended(fmt.Sprintf("s%04d", i))
		l.Begin(ctx, r)
		l.End(r)
	}
	if took := time.Since(start); took > 50*cfg.BeginWait/2 {
		t.Errorf("50 answers took %v", took)
	}
	if got, err := l.Get(ctx, "r0000"); got == nil || err != nil {
		t.Errorf("a full log cannot be read: %v, %v", got, err)
	}
	l.writing.Lock()
	_, err := l.write.Exec("PRAGMA max_page_count = 100000")
	l.writing.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the log to be written again", func() bool { return l.Stats().State == StateOK && l.Stats().Waiting == 0 })
	put(t, l, "t", 0, 5)
	if s := l.Stats(); s.Dropped != 0 || s.Rows != int64(n+50+5) {
		t.Errorf("stats %+v after %d rows, want %d", s, rows, n+55)
	}
	if book.count("cannot be written") == 0 || book.count("written again") == 0 {
		t.Errorf("logged:\n%s", book)
	}
	l.Close()
	integrity(t, cfg.Path)
}

// One record that cannot be written does not hold up the others.
func TestRecordThatCannotBeWritten(t *testing.T) {
	l := open(t, testConfig(t))
	release := holdLock(t, l.cfg.Path) // so that all come into one batch
	bad := ended("bad")
	bad.Params = []appliance.Param{{Name: "f", Value: func() {}}}
	l.End(ended("a"))
	l.End(bad)
	l.End(ended("b"))
	release()
	settle(t, l)
	if s := l.Stats(); s.Rows != 2 || s.Dropped != 1 || s.State != StateOK || s.LastError == "" {
		t.Errorf("stats %+v", s)
	}
}

// A log that is locked at start opens late, and loses nothing.
func TestOpenWhileLocked(t *testing.T) {
	cfg := testConfig(t)
	l := open(t, cfg)
	put(t, l, "r", 0, 1)
	l.Begin(t.Context(), begun("left open"))
	l.Close()

	cfg.openWait, cfg.BeginWait = 100*time.Millisecond, time.Second
	release := holdLock(t, cfg.Path)
	defer release()
	l = open(t, cfg)
	if s := l.Stats(); s.State != StateLocked {
		t.Errorf("stats %+v", s)
	}
	l.Begin(t.Context(), begun("a"))
	l.End(ended("a"))
	if _, _, err := l.List(t.Context(), appliance.RecordQuery{Limit: 1}); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("List while the log is not open: %v", err)
	}
	release()
	settle(t, l)
	if got := all(t, l, appliance.RecordQuery{Outcome: appliance.OutcomeStop}); len(got) != 2 {
		t.Errorf("closed rows: %v", got)
	}
	if got := all(t, l, appliance.RecordQuery{Outcome: appliance.OutcomeInterrupted}); len(got) != 1 {
		t.Errorf("interrupted rows: %v", got)
	}
}

// Another process that gives the lock up in time is waited for.
func TestOpenWaitsForALock(t *testing.T) {
	cfg := testConfig(t)
	open(t, cfg).Close()
	cfg.openWait = time.Minute
	release := holdLock(t, cfg.Path)
	opened := make(chan *Log)
	go func() {
		l, err := Open(cfg)
		if err != nil {
			t.Error(err)
		}
		opened <- l
	}()
	select {
	case <-opened:
		t.Error("it did not wait")
	case <-time.After(300 * time.Millisecond):
	}
	release()
	l := <-opened
	defer l.Close()
	if s := l.Stats(); s.State != StateOK {
		t.Errorf("stats %+v", s)
	}
}

// A disk that is full at start is no error either.
func TestOpenOnAFullDisk(t *testing.T) {
	cfg := testConfig(t)
	cfg.maxPages, cfg.closeWait = 2, 10*time.Millisecond
	l := open(t, cfg)
	start := time.Now()
	for i := range 20 {
		l.Begin(t.Context(), begun(fmt.Sprint(i)))
	}
	if took := time.Since(start); took > cfg.BeginWait {
		t.Errorf("20 answers waited %v", took)
	}
	if s := l.Stats(); s.State != StateFull {
		t.Errorf("stats %+v", s)
	}
	l.Close()
	if s := l.Stats(); s.Dropped != 20 {
		t.Errorf("stats %+v", s)
	}
}
