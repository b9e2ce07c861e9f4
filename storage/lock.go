package storage

import (
	"fmt"
	"os"
	"time"

	"ganglion/storage/filelock"
)

// processLock tells processes that have the log open apart from dead ones. Each holds
// a shared lock on a small file beside the log as long as it has the log open, and
// the system takes it away when the process dies, however it dies. Whoever gets it
// exclusively is alone: open rows are then of dead processes, and a damaged file may
// be moved. Process numbers in the rows would not do: they are used again.
type processLock struct {
	file  *os.File
	alone bool // holds the lock exclusively
}

// lockPatience is longer than Open takes: the check of the file and the wait for locks.
const lockPatience = 15 * time.Second

// lockProcess takes the lock: exclusively when nobody else has the log open. Where
// the file system knows no locks the process counts as alone.
func lockProcess(path string) (*processLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &processLock{file: f}
	// Another process holds it exclusively only while it opens the log.
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		ok, err := filelock.Try(f, true)
		if ok || err != nil {
			l.alone = true
			return l, nil
		}
		if ok, _ := filelock.Try(f, false); ok {
			return l, nil
		}
		if time.Now().After(deadline) {
			f.Close()
			return nil, fmt.Errorf("%s: another process has been opening the log for %v", path, lockPatience)
		}
	}
}

// share lets other processes in. It cannot fail for long: a process that gets in
// between finds nothing of ours to mark.
func (l *processLock) share() {
	if !l.alone {
		return
	}
	l.alone = false
	for range 100 {
		if ok, err := filelock.Try(l.file, false); ok || err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// exclude tries to be alone again.
func (l *processLock) exclude() bool {
	if !l.alone {
		ok, err := filelock.Try(l.file, true)
		if l.alone = ok || err != nil; !l.alone {
			// Some systems give the shared lock up in the attempt.
			_, _ = filelock.Try(l.file, false)
		}
	}
	return l.alone
}

func (l *processLock) release() { l.file.Close() }
