package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/gpu/cputime"
)

// makeLog writes a log of some rows and returns its bytes.
func makeLog(t *testing.T, name string, rows int) []byte {
	t.Helper()
	cfg := testConfig(t)
	l := open(t, cfg)
	put(t, l, name, 0, rows)
	l.Close()
	return readFile(t, cfg.Path)
}

// makeWAL returns the bytes of a file and its write-ahead log with rows in it, as a
// killed process leaves them.
func makeWAL(t *testing.T, name string) (db, wal []byte, rows int) {
	t.Helper()
	cfg := testConfig(t)
	l := open(t, cfg)
	// The sweep at start may empty the write-ahead log once more.
	for len(wal) < 20*(frameBytes+pageSize) {
		l.Begin(t.Context(), begun(fmt.Sprint(name, rows)))
		rows++
		db, wal = readFile(t, cfg.Path), readFile(t, cfg.Path+"-wal")
	}
	return db, wal, rows
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// F75.
func TestDamagedFiles(t *testing.T) {
	good := makeLog(t, "good", 40)
	_, foreign, _ := makeWAL(t, "foreign")
	ownDB, ownWAL, ownRows := makeWAL(t, "own")
	page2 := append([]byte{}, good...)
	copy(page2[pageSize:2*pageSize], randomBytes(pageSize))
	leaf := append([]byte{}, good...)
	copy(leaf[6*pageSize:7*pageSize], randomBytes(pageSize))
	tornWAL := append([]byte{}, ownWAL...)
	copy(tornWAL[walHeaderBytes+5*(frameBytes+pageSize)+frameBytes:], randomBytes(100))
	halfFrame := halfWritten(ownWAL)

	tests := []struct {
		name             string
		db, wal, journal []byte
		aside            []string // endings of the files set aside
		rows             int      // left in the log; -1: some, at least 0
	}{
		{"sound", good, nil, nil, nil, 40},
		{"random", randomBytes(50000), nil, nil, []string{""}, 0},
		{"empty", []byte{}, nil, nil, []string{""}, 0},
		{"short", []byte("SQLite format 3\x00"), nil, nil, []string{""}, 0},
		{"page 2", page2, nil, nil, []string{""}, 0},
		{"another page", leaf, nil, nil, []string{""}, 0},
		{"cut", good[:len(good)/2], nil, nil, []string{""}, 0},
		{"journal of another file", good, nil, randomBytes(5000), []string{"-journal"}, 40},
		{"empty journal", good, nil, []byte{}, nil, 40},
		{"write-ahead log of another file", good, foreign, nil, []string{"-wal"}, 40},
		{"write-ahead log of another file in use", ownDB, foreign, nil, []string{"-wal"}, -1},
		{"random write-ahead log", good, randomBytes(50000), nil, []string{"-wal"}, 40},
		{"own write-ahead log", ownDB, ownWAL, nil, nil, ownRows},
		{"own write-ahead log, damaged in the middle", ownDB, tornWAL, nil, nil, -1},
		{"own write-ahead log, killed inside a frame", ownDB, halfFrame, nil, nil, ownRows},
		{"write-ahead log alone", nil, ownWAL, nil, []string{"-wal"}, 0},
		{"everything random", randomBytes(9000), randomBytes(9000), randomBytes(9000), []string{"", "-journal", "-wal"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t)
			book := new(logBook)
			cfg.Logger = book.logger()
			cfg.Now = func() time.Time { return testTime }
			folder := filepath.Dir(cfg.Path)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for suffix, b := range map[string][]byte{"": tt.db, "-wal": tt.wal, "-journal": tt.journal} {
				if b == nil {
					continue
				}
				if err := os.WriteFile(cfg.Path+suffix, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			start := cputime.Used() // a disk may be busy
			l, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if took := cputime.Used() - start; took > 5*time.Second {
				t.Errorf("the start took %v", took)
			}
			got, _ := filepath.Glob(filepath.Join(folder, "*damaged-2026-03-04T050607Z*"))
			if len(got) != len(tt.aside) {
				t.Errorf("set aside: %v, want endings %q", got, tt.aside)
			}
			for i, suffix := range tt.aside {
				if i >= len(got) {
					break
				}
				if !strings.HasSuffix(got[i], "Z"+suffix) {
					t.Errorf("set aside: %v, want endings %q", got, tt.aside)
				}
				was := map[string][]byte{"": tt.db, "-wal": tt.wal, "-journal": tt.journal}[suffix]
				if kept := readFile(t, got[i]); string(kept) != string(was) {
					t.Errorf("%s was changed: %d bytes, had %d", got[i], len(kept), len(was))
				}
			}
			if n := book.count("level=WARN"); n != min(len(tt.aside), 1) {
				t.Errorf("%d warnings:\n%s", n, book)
			}
			if rows := len(all(t, l, appliance.RecordQuery{})); rows != tt.rows && tt.rows >= 0 {
				t.Errorf("%d rows, want %d", rows, tt.rows)
			}
			put(t, l, "new", 0, 2)
			l.Close()
			integrity(t, cfg.Path)
		})
	}
}

// halfWritten is a write-ahead log whose writer was killed when it had written the header of
// a further frame, of page 1, and not the page: there stands one of an earlier log.
func halfWritten(wal []byte) []byte {
	// The frames of the log end at the first whose salts are others.
	end := walHeaderBytes
	for end+frameBytes <= len(wal) && bytes.Equal(wal[end+8:end+16], wal[16:24]) {
		end += frameBytes + pageSize
	}
	frame := append([]byte{0, 0, 0, 1, 0, 0, 0, 0}, wal[16:24]...)
	frame = append(frame, randomBytes(8+pageSize)...)
	return append(bytes.Clone(wal[:end]), frame...)
}

// damage overwrites the file of an open log, all but its first page. The writer, whose sweep at
// start may be late, stands still meanwhile.
func damage(t *testing.T, l *Log) {
	t.Helper()
	l.writing.Lock()
	defer l.writing.Unlock()
	if _, err := truncateWAL(t.Context(), l.write); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(l.cfg.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Pages that the connection has cached are not read again, so all of them.
	for at := int64(pageSize); at < size(l.cfg.Path); at += pageSize {
		if _, err := f.WriteAt(randomBytes(pageSize), at); err != nil {
			t.Fatal(err)
		}
	}
	// Closing f drops this process's locks on the file; there is no other process here.
	f.Close()
	if _, err := l.write.Exec("PRAGMA shrink_memory"); err != nil {
		t.Fatal(err)
	}
}

// A file that is damaged while it is in use is set aside too, and no answer notices.
func TestDamageWhileInUse(t *testing.T) {
	cfg := testConfig(t)
	book := new(logBook)
	cfg.Logger = book.logger()
	l := open(t, cfg)
	put(t, l, "old", 0, 200)
	damage(t, l)
	for i := range 20 {
		id := "new" + string(rune('a'+i))
		l.Begin(context.Background(), begun(id))
		l.End(ended(id))
	}
	settle(t, l)
	if got := len(all(t, l, appliance.RecordQuery{})); got == 0 {
		t.Error("nothing was written after the damage")
	}
	if s := l.Stats(); s.State != StateOK {
		t.Errorf("stats %+v", s)
	}
	kept, _ := filepath.Glob(cfg.Path + ".damaged-*")
	if len(kept) == 0 || book.count("set aside") != 1 {
		t.Errorf("set aside: %v\n%s", kept, book)
	}
	l.Close()
	integrity(t, cfg.Path)
}

// A file of a newer version is neither changed nor set aside.
func TestNewerSchemaIsRefused(t *testing.T) {
	cfg := testConfig(t)
	l := open(t, cfg)
	put(t, l, "r", 0, 1)
	if _, err := l.write.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	l.Close()
	before := readFile(t, cfg.Path)
	l, err := Open(cfg)
	if err == nil {
		l.Close()
		t.Fatal("it was opened")
	}
	if !strings.Contains(err.Error(), "99") {
		t.Error(err)
	}
	if after := readFile(t, cfg.Path); string(before) != string(after) {
		t.Error("the file was changed")
	}
}

func TestFolderInTheWay(t *testing.T) {
	cfg := testConfig(t)
	if err := os.MkdirAll(cfg.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(cfg); err == nil {
		l.Close()
		t.Error("a folder was opened as a log")
	}
}
