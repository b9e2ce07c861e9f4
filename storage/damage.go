package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// checkTime bounds the check of the whole file at start, so that a start takes less
// than five seconds however large the file is. What it does not reach is noticed
// when it is used (see replaceDamaged).
const checkTime = 2 * time.Second

// setDamagedAside looks at the files before SQLite does, which would take a
// write-ahead log or journal of another file for its own and write it into this one.
// What cannot be used is renamed; nothing is deleted but the index of a write-ahead
// log that was set aside, which holds no rows.
func (l *Log) setDamagedAside() error {
	path := l.cfg.Path
	wal, journal := path+"-wal", path+"-journal"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.setAside("there is no log it could belong to", wal, journal)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case info.Size() == 0:
		return l.setAside("it is empty", path, wal, journal)
	}
	head, err := readHeader(path)
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err != nil {
		return l.setAside(err.Error(), path, wal, journal)
	}
	if size(journal) > 0 {
		// A log that works with a write-ahead log never has a journal: it is from
		// another file. One that does not is in the middle of being made, or not ours.
		if !head.wal {
			return l.setAside("it was left unfinished, or is not a request log", path, wal, journal)
		}
		if err := l.setAside("the request log has no journal", journal); err != nil {
			return err
		}
	}
	if size(wal) > 0 {
		why, err := foreignWAL(wal, head.application)
		if err != nil {
			return err
		}
		if why != "" {
			if err := l.setAside(why, wal); err != nil {
				return err
			}
		}
	}
	return l.setUnsoundAside()
}

// setUnsoundAside checks the pages of the file.
func (l *Log) setUnsoundAside() error {
	path, wal := l.cfg.Path, l.cfg.Path+"-wal"
	why := quickCheck(path)
	if why == "" {
		return nil
	}
	// Perhaps the file is sound and the write-ahead log is not. "immutable" reads the
	// file as it is.
	if size(wal) > 0 && quickCheck(path, "immutable=1") == "" {
		return l.setAside(why, wal)
	}
	return l.setAside(why, path, wal)
}

// quickCheck tells, in words, what is wrong with a file; empty when nothing was found
// in the time there is, or when it cannot be told.
func quickCheck(path string, options ...string) string {
	db := openPool(path, "ro", 1, readerPragmas, options...)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	var result string
	err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result)
	switch {
	case isDamaged(err):
		return err.Error()
	case err != nil || result == "ok":
		return "" // the time is over, or the file cannot be read now
	}
	return result
}

// setAside renames files of the log that are there, with the date in their names, and
// warns once. They keep their endings, so that SQLite's tools find a write-ahead log
// beside its file.
func (l *Log) setAside(why string, paths ...string) error {
	base := l.cfg.Path + ".damaged-" + l.cfg.Now().UTC().Format("2006-01-02T150405Z")
	for n := 1; taken(base); n++ {
		base = fmt.Sprintf("%s.damaged-%s-%d", l.cfg.Path, l.cfg.Now().UTC().Format("2006-01-02T150405Z"), n)
	}
	var moved []string
	for _, p := range paths {
		if p != l.cfg.Path && size(p) == 0 {
			continue // an empty companion holds nothing and harms nothing
		}
		to := base + p[len(l.cfg.Path):]
		err := os.Rename(p, to)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		moved = append(moved, to)
	}
	if len(moved) == 0 {
		return nil
	}
	if err := os.Remove(l.cfg.Path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.cfg.Logger.Warn("request log: a damaged file was set aside", "path", l.cfg.Path, "reason", why, "kept_as", moved)
	return nil
}

// taken tells whether a name, alone or with an ending of the log's files, is in use.
func taken(base string) bool {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if _, err := os.Lstat(base + suffix); err == nil {
			return true
		}
	}
	return false
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// replaceDamaged sets the file aside while the log is in use and goes on with a new
// one. It returns the cause where another process has the log open too.
func (l *Log) replaceDamaged(cause error) error {
	l.pools.Lock()
	defer l.pools.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.lock.exclude() {
		return cause
	}
	defer l.lock.share()
	l.closePools()
	path := l.cfg.Path
	if err := l.setAside(cause.Error(), path, path+"-wal", path+"-journal"); err != nil {
		return errors.Join(cause, err)
	}
	if err := l.connect(reopenWait); err != nil {
		return errors.Join(cause, err)
	}
	return nil
}

// reopenWait is how long the writer waits for a lock while it opens the file. It holds
// up reads for that time.
const reopenWait = 500 * time.Millisecond

// reopen opens what could not be opened at start, or after a damaged file was set
// aside.
func (l *Log) reopen() error {
	l.pools.Lock()
	defer l.pools.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.lock.exclude()
	defer l.lock.share()
	return l.openFile(reopenWait)
}
