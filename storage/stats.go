package storage

import (
	"errors"
	"os"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// The states of a log.
const (
	StateOK      = "ok"
	StateLocked  = "locked by another program"
	StateFull    = "no room: the disk or the log is full"
	StateDamaged = "damaged"
	StateFailing = "cannot be written"
	StateClosed  = "closed"
)

// Stats is a snapshot of the log.
type Stats struct {
	State     string // StateOK, or what is wrong
	Path      string // of the file
	Rows      int64  // of all processes, as last counted
	Bytes     int64  // of the file and its write-ahead log
	Waiting   int    // writes in the queue
	Dropped   int64  // writes that were given up: the queue was full, or Close could not write them
	Late      int64  // rows that were not there when their answer began
	LastError string // the last failure, empty when there was none; no text of a request
}

// Stats returns the state of the log. It does not wait for the writer.
func (l *Log) Stats() Stats {
	s := l.state.snapshot()
	s.Path = l.cfg.Path
	s.Waiting = l.queue.length()
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(l.cfg.Path + suffix); err == nil {
			s.Bytes += info.Size()
		}
	}
	return s
}

// state is what Stats shows of the writer.
type state struct {
	mu sync.Mutex
	s  Stats
}

func (s *state) snapshot() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.s
	if out.State == "" {
		out.State = StateOK
	}
	return out
}

// set notes how the last write went and tells whether that is a change.
func (s *state) set(name string, err error) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.s.LastError = err.Error()
	}
	changed = s.s.State != name && (s.s.State != "" || name != StateOK)
	s.s.State = name
	return changed
}

// ok tells whether writes go through.
func (s *state) ok() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s.State == "" || s.s.State == StateOK
}

func (s *state) drop(n int64) { s.mu.Lock(); s.s.Dropped += n; s.mu.Unlock() }
func (s *state) late()        { s.mu.Lock(); s.s.Late++; s.mu.Unlock() }

func (s *state) setRows(n int64) { s.mu.Lock(); s.s.Rows = n; s.mu.Unlock() }
func (s *state) addRows(n int64) { s.mu.Lock(); s.s.Rows += n; s.mu.Unlock() }

// stateOf names the state that an error of a write means.
func stateOf(err error) string {
	switch {
	case err == nil:
		return StateOK
	case isBusy(err):
		return StateLocked
	case isFull(err):
		return StateFull
	case isDamaged(err):
		return StateDamaged
	default:
		return StateFailing
	}
}

// codeOf returns SQLite's primary code of an error.
func codeOf(err error) (sqlite3.ErrNo, bool) {
	var e sqlite3.Error
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}

func isCode(err error, codes ...sqlite3.ErrNo) bool {
	c, ok := codeOf(err)
	if !ok {
		return false
	}
	for _, want := range codes {
		if c == want {
			return true
		}
	}
	return false
}

// isBusy: another connection holds a lock.
func isBusy(err error) bool { return isCode(err, sqlite3.ErrBusy, sqlite3.ErrLocked) }

// isFull: the disk, or the file by its limit of pages.
func isFull(err error) bool { return isCode(err, sqlite3.ErrFull) }

// isDamaged: the file is not what SQLite wrote.
func isDamaged(err error) bool { return isCode(err, sqlite3.ErrCorrupt, sqlite3.ErrNotADB) }

// isPassing: a failure of the machine, not of what is written.
func isPassing(err error) bool {
	return isCode(err, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrIoErr,
		sqlite3.ErrReadonly, sqlite3.ErrCantOpen, sqlite3.ErrNomem, sqlite3.ErrPerm, sqlite3.ErrProtocol, sqlite3.ErrInterrupt)
}
