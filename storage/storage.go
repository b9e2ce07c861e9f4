package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ganglion/appliance"
)

// Defaults of Config.
const (
	DefaultQueueSize = 8192
	DefaultBeginWait = 250 * time.Millisecond

	minMaxBytes = 1 << 20
)

// Config says where the log is and what it keeps. Zero values take the defaults
// named. It is checked once, by Open, and not changed afterwards.
type Config struct {
	Path   string           // of the file; its folder is made, readable by its owner alone
	Now    func() time.Time // default time.Now; safe for concurrent use
	Logger *slog.Logger     // state of the log, never text of a request; default slog.Default()

	// NoText leaves out prompts, bodies, answers, tokens (ids are text in another
	// spelling), the words of error messages, and every parameter that is not a
	// number or a yes/no.
	NoText bool

	// Media keeps the files of pictures and sounds, where text is kept.
	Media bool

	// Limits; 0 sets none, so that whoever opens the log only to read it deletes nothing.
	MaxAge   time.Duration // rows older than this are deleted
	MaxBytes int64         // of the file with its write-ahead log; the oldest rows make room. At least 1 MiB

	QueueSize int           // writes that may wait; default DefaultQueueSize
	BeginWait time.Duration // how long Begin waits for its row; default DefaultBeginWait

	// maxPages, when not 0, is where the file counts as full, so that tests have a
	// full disk.
	maxPages int64
	// openWait is how long Open waits for a lock of another process.
	openWait time.Duration
	// closeWait is how long Close goes on trying to write what waits.
	closeWait time.Duration
	// readWait bounds how long a reader waits for the writes before it.
	readWait time.Duration
}

// Validate reports the first value that is out of range, naming it.
func (c *Config) Validate() error {
	switch {
	case c.Path == "":
		return errors.New("storage: config: path is empty")
	case c.MaxAge < 0:
		return fmt.Errorf("storage: config: max age %v is negative", c.MaxAge)
	case c.MaxBytes < 0 || (c.MaxBytes > 0 && c.MaxBytes < minMaxBytes):
		return fmt.Errorf("storage: config: max bytes %d: must be 0 (no limit) or at least %d", c.MaxBytes, minMaxBytes)
	case c.QueueSize < 0:
		return fmt.Errorf("storage: config: queue size %d is negative", c.QueueSize)
	case c.BeginWait < 0:
		return fmt.Errorf("storage: config: begin wait %v is negative", c.BeginWait)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.QueueSize == 0 {
		c.QueueSize = DefaultQueueSize
	}
	if c.BeginWait == 0 {
		c.BeginWait = DefaultBeginWait
	}
	if c.openWait == 0 {
		c.openWait = 4 * time.Second
	}
	if c.closeWait == 0 {
		c.closeWait = 5 * time.Second
	}
	if c.readWait == 0 {
		c.readWait = 2 * time.Second
	}
	return c
}

// Log is the request log. Its methods are safe for concurrent use.
type Log struct {
	cfg    Config
	size   sizes
	steps  []migration
	lock   *processLock
	queue  queue
	state  state
	done   chan struct{} // closed when the writer has ended
	closer sync.Once

	// pools guards the two pools: held for writing while a damaged file is replaced.
	pools sync.RWMutex
	read  *sql.DB
	// writing serialises what writes: the writer's batches, Delete, Purge, Sweep.
	writing     sync.Mutex
	write       *sql.DB
	application uint32 // the file's application id
}

var _ appliance.Recorder = (*Log)(nil)

// Open opens or makes the log. A damaged file is set aside with one warning; rows
// that a dead process left open become interrupted. A log that is locked or full is
// no error: records wait for it in memory, and Stats tells. The caller must Close it.
func Open(cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	cfg.Path = path
	steps, err := readMigrations(migrationFiles)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	lock, err := lockProcess(path + "-lock")
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	l := &Log{cfg: cfg, size: newSizes(&cfg), steps: steps, lock: lock, done: make(chan struct{})}
	l.queue.init(cfg.QueueSize)
	if err := l.openFile(cfg.openWait); isPassing(err) {
		l.noteWrite(err)
	} else if err != nil {
		lock.release()
		return nil, fmt.Errorf("storage: %s: %w", path, err)
	}
	// Nobody else needs to be kept away from here on.
	lock.share()
	go l.run()
	return l, nil
}

// openFile sets damaged files aside and opens the pools, waiting for locks a while.
// When the file proves to be damaged only now, it is set aside too and a new one begun.
func (l *Log) openFile(wait time.Duration) error {
	if l.lock.alone {
		if err := l.setDamagedAside(); err != nil {
			return err
		}
	}
	err := l.connect(wait)
	if err != nil && isDamaged(err) && l.lock.alone {
		if err := l.setAside(err.Error(), l.cfg.Path, l.cfg.Path+"-wal", l.cfg.Path+"-journal"); err != nil {
			return err
		}
		err = l.connect(wait)
	}
	return err
}

// connect opens the pools, brings the schema up to date and closes what a dead
// process left open.
func (l *Log) connect(wait time.Duration) error {
	if err := createPrivate(l.cfg.Path); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	write := openPool(l.cfg.Path, "rw", 1, writerPragmas(size(l.cfg.Path) == 0, l.size.maxPages, l.size.checkpointPages))
	err := patiently(ctx, func() error {
		if err := migrate(ctx, write, l.steps); err != nil {
			return err
		}
		var err error
		if l.application, err = identify(ctx, write); err != nil {
			return err
		}
		return l.prepareRows(ctx, write)
	})
	if err != nil {
		write.Close()
		return err
	}
	l.write = write
	l.read = openPool(l.cfg.Path, "ro", readers, readerPragmas)
	return nil
}

// createPrivate makes the file, where it is missing, for its owner alone: SQLite would
// make it readable for everybody. Its companions get its permissions. A file that is
// there is not even opened: closing it would drop the locks that this process holds
// on it (POSIX locks belong to the process and file, not to the descriptor).
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// readers is how many reads run at a time: a few browsers and a long search.
const readers = 4

// prepareRows marks the open rows of dead processes and counts the rows.
func (l *Log) prepareRows(ctx context.Context, db *sql.DB) error {
	if l.lock.alone {
		if _, err := db.ExecContext(ctx, "UPDATE requests SET outcome = ? WHERE outcome = ?",
			appliance.OutcomeInterrupted, appliance.OutcomeOpen); err != nil {
			return err
		}
	}
	var n int64
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM requests").Scan(&n); err != nil {
		return err
	}
	l.state.setRows(n)
	return nil
}

// patiently repeats what another process's lock prevents.
func patiently(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyTimeoutMS * time.Millisecond / 2):
		}
	}
}

// Close writes what waits and closes the file; when the file cannot be written for
// some seconds it gives up and counts what is left as dropped. It may be called
// twice. Later calls of Begin and End are counted as dropped.
func (l *Log) Close() error {
	l.closer.Do(func() {
		l.queue.close()
		<-l.done
		l.pools.Lock()
		defer l.pools.Unlock()
		l.writing.Lock()
		defer l.writing.Unlock()
		l.closePools()
		l.lock.release()
	})
	return nil
}

// closePools closes the pools; the writer is last, so that it moves the write-ahead
// log into the file and removes it.
func (l *Log) closePools() {
	if l.read != nil {
		l.read.Close()
	}
	if l.write != nil {
		l.write.Close()
	}
	l.read, l.write = nil, nil
}
