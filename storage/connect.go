package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// pragma is a setting of a connection.
type pragma struct{ name, value string }

const pageSize = 4096 // bytes; SQLite's default since 3.12

// busyTimeoutMS is how long a statement of the writer waits for a lock. It is short
// because the writer tries again by itself, and has to notice Close in between.
const busyTimeoutMS = 100

// writerPragmas are the settings of the one connection that writes, in order.
// fresh is for a file without tables; maxPages 0 sets no bound.
func writerPragmas(fresh bool, maxPages, checkpointPages int64) []pragma {
	// First: every later statement may meet a lock.
	p := []pragma{{"busy_timeout", fmt.Sprint(busyTimeoutMS)}}
	if fresh {
		// Before the first table: pages freed by retention can then be given back
		// to the file system in small steps, without rewriting the file. Later the
		// pragma would only write to the file at every start.
		p = append(p, pragma{"auto_vacuum", "INCREMENTAL"})
	}
	p = append(p, []pragma{
		// Readers and the writer do not wait for each other, and a commit is one
		// append.
		{"journal_mode", "WAL"},
		// With WAL this syncs at checkpoints only: a commit does not wait for the
		// disk. A killed process loses nothing; after a power cut the last commits
		// may be gone, but the file is sound.
		{"synchronous", "NORMAL"},
		// SQLite ignores REFERENCES unless told; request_data goes with its request.
		{"foreign_keys", "ON"},
		// Deleted text is overwritten with zeros, not just unlinked.
		{"secure_delete", "ON"},
		// Checkpoint early, so that the write-ahead log stays a small part of the
		// size limit,
		{"wal_autocheckpoint", fmt.Sprint(checkpointPages)},
		// and cut it back when it has grown over that in one transaction.
		{"journal_size_limit", fmt.Sprint(checkpointPages * pageSize)},
		// Sorting and big statements must not write text into files elsewhere.
		{"temp_store", "MEMORY"},
	}...)
	if maxPages > 0 {
		// The last defence of the size limit: SQLite itself refuses to grow the file.
		p = append(p, pragma{"max_page_count", fmt.Sprint(maxPages)})
	}
	return p
}

// readerPragmas are the settings of the connections that read.
var readerPragmas = []pragma{
	// First, as above. Readers meet a lock only while a write-ahead log is recovered.
	{"busy_timeout", "2000"},
	// A reader that writes is a mistake of ours.
	{"query_only", "ON"},
	{"temp_store", "MEMORY"},
}

// connector opens connections to one file and applies settings to each.
type connector struct {
	driver sqlite3.SQLiteDriver
	dsn    string
}

func (c *connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c *connector) Driver() driver.Driver                        { return &c.driver }

// openPool opens a pool of at most n connections. mode is SQLite's: "rwc" creates
// the file, "rw" needs it, "ro" never writes. Transactions begin with the write
// lock ("immediate"): one that begins by reading could not upgrade when another
// process wrote in between.
func openPool(path, mode string, n int, pragmas []pragma, options ...string) *sql.DB {
	params := append([]string{"mode=" + mode, "_txlock=immediate", "_busy_timeout=" + fmt.Sprint(busyTimeoutMS)}, options...)
	c := &connector{dsn: fileURI(path) + "?" + strings.Join(params, "&")}
	c.driver.ConnectHook = func(conn *sqlite3.SQLiteConn) error {
		for _, p := range pragmas {
			if _, err := conn.Exec("PRAGMA "+p.name+" = "+p.value, nil); err != nil {
				return fmt.Errorf("pragma %s: %w", p.name, err)
			}
		}
		return nil
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// fileURI names a file for SQLite. Every byte that means something in a URI is
// escaped, so that any legal path works.
func fileURI(path string) string {
	p := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" && !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return "file:" + (&url.URL{Path: p}).EscapedPath()
}
