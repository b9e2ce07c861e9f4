package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"ganglion/appliance"
)

// sizes are the limits that follow from Config.MaxBytes. The file and its write-ahead
// log share it.
type sizes struct {
	maxBytes        int64 // of the file itself, 0 = no limit
	maxPages        int64 // for SQLite, 0 = no limit
	walBytes        int64 // of the write-ahead log, before it is cut back
	checkpointPages int64
	batchBytes      int64 // of one transaction
	deleteBytes     int64 // of the rows that one transaction deletes
	maxRecord       int64 // text of one record; more is left out. 0 = no limit
}

func newSizes(c *Config) sizes {
	s := sizes{walBytes: 8 << 20, deleteBytes: 4 << 20}
	if c.MaxBytes > 0 {
		s.walBytes = min(s.walBytes, c.MaxBytes/4)
		s.maxBytes = c.MaxBytes - s.walBytes
		s.maxPages = s.maxBytes / pageSize
		s.maxRecord = c.MaxBytes / 8
		s.deleteBytes = min(s.deleteBytes, c.MaxBytes/32)
	}
	// A transaction comes on top of what waits for a checkpoint.
	s.checkpointPages = s.walBytes / 4 / pageSize
	s.batchBytes = s.walBytes / 4
	if c.maxPages > 0 {
		s.maxPages = c.maxPages
	}
	return s
}

// deleteRows, like sizes.deleteBytes, bounds one deleting transaction, so that records
// do not wait long for it.
const deleteRows = 256

// Sweep deletes what is over the limits of age and size now. The writer does so by
// itself, at start and every hour, and before the file would become too large.
func (l *Log) Sweep(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := l.sweepStep()
		if errors.Is(err, errNotOpen) {
			return l.notOpen()
		}
		if err != nil {
			return fmt.Errorf("storage: sweep: %w", err)
		}
		if !more {
			return nil
		}
	}
}

// sweepStep deletes one batch of rows that are too old; when none is left it gives
// the room back. more tells whether to come again.
func (l *Log) sweepStep() (more bool, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.write == nil {
		return false, errNotOpen
	}
	ctx := context.Background()
	if l.cfg.MaxAge > 0 {
		n, err := l.deleteOldest(ctx, "created_at < ?", toMicros(l.cfg.Now().Add(-l.cfg.MaxAge)))
		if err != nil || n > 0 {
			return n > 0, err
		}
	}
	if err := l.makeRoom(ctx, 0); err != nil {
		return false, err
	}
	if err := giveBack(ctx, l.write); err != nil {
		return false, err
	}
	var rows int64
	if err := l.write.QueryRowContext(ctx, "SELECT count(*) FROM requests").Scan(&rows); err != nil {
		return false, err
	}
	l.state.setRows(rows)
	return false, nil
}

// makeRoom deletes the oldest rows until need bytes more fit below the limit.
func (l *Log) makeRoom(ctx context.Context, need int64) error {
	if l.size.maxBytes <= 0 {
		return nil
	}
	// Pages are not filled to the brim, and rows have indexes.
	need += need/8 + 16*pageSize
	for {
		used, err := usedBytes(ctx, l.write)
		if err != nil {
			return err
		}
		if used+need <= l.size.maxBytes {
			return nil
		}
		n, err := l.deleteOldest(ctx, "1")
		if err != nil || n == 0 {
			return err // with 0, SQLite's own limit decides
		}
		if err := l.boundWAL(ctx); err != nil {
			return err
		}
	}
}

// usedBytes is the size of the file without its free pages.
func usedBytes(ctx context.Context, db *sql.DB) (int64, error) {
	var pages, free int64
	if err := db.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
		return 0, err
	}
	return (pages - free) * pageSize, nil
}

// deleteOldest deletes a batch of the oldest closed rows that meet a condition and
// returns how many. Open rows have an answer under way that will come back to them.
func (l *Log) deleteOldest(ctx context.Context, condition string, args ...any) (int64, error) {
	last, found, err := l.endOfBatch(ctx, condition, args...)
	if err != nil || !found {
		return 0, err
	}
	res, err := l.write.ExecContext(ctx, "DELETE FROM requests WHERE seq <= ? AND outcome <> ? AND "+condition,
		append([]any{last, appliance.OutcomeOpen}, args...)...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	l.state.addRows(-n)
	return n, err
}

// endOfBatch finds the last row of the next batch to delete.
func (l *Log) endOfBatch(ctx context.Context, condition string, args ...any) (last int64, found bool, err error) {
	rows, err := l.write.QueryContext(ctx, `SELECT seq, octet_length(prompt) + octet_length(text) + coalesce(octet_length(body), 0)
			+ coalesce((SELECT sum(octet_length(file)) FROM media_files f WHERE f.seq = requests.seq), 0)
		FROM requests JOIN request_data USING (seq) WHERE outcome <> ? AND `+condition+` ORDER BY seq LIMIT ?`,
		append(append([]any{appliance.OutcomeOpen}, args...), deleteRows)...)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	for sum := int64(0); rows.Next() && sum < l.size.deleteBytes; {
		var size int64
		if err := rows.Scan(&last, &size); err != nil {
			return 0, false, err
		}
		sum += size
		found = true
	}
	return last, found, rows.Err()
}

// boundWAL moves the write-ahead log into the file when it has grown too large. A
// reader may prevent that; then the next batch tries again.
func (l *Log) boundWAL(ctx context.Context) error {
	info, err := os.Stat(l.cfg.Path + "-wal")
	if err != nil || info.Size() <= l.size.walBytes/2 {
		return nil
	}
	_, err = truncateWAL(ctx, l.write)
	return err
}

// truncateWAL moves the write-ahead log into the file and empties it. ok is false
// when a reader or another process prevented it.
func truncateWAL(ctx context.Context, db *sql.DB) (ok bool, err error) {
	var busy, frames, moved int64
	err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	if isBusy(err) {
		return false, nil
	}
	return err == nil && busy == 0, err
}

// giveBack returns free pages to the file system and empties the write-ahead log.
func giveBack(ctx context.Context, db *sql.DB) error {
	// The pragma frees one page per row of its result, so the rows have to be read.
	rows, err := db.QueryContext(ctx, "PRAGMA incremental_vacuum")
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	if err := rows.Close(); err != nil {
		return err
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err = truncateWAL(ctx, db)
	return err
}

// Delete removes one record and every trace of its text from the file. It tells
// whether there was one. A request that still runs puts its record back at its end, and so
// does one whose end waits for a log that cannot be written, or that another process has.
func (l *Log) Delete(ctx context.Context, id string) (bool, error) {
	n, err := l.remove(ctx, "DELETE FROM requests WHERE id = ?", id)
	if err != nil {
		return false, fmt.Errorf("storage: delete %q: %w", id, err)
	}
	return n > 0, nil
}

// Purge removes all records made before a time, the zero time meaning all, with every
// trace of their text, and returns how many there were. Files that were set aside as
// damaged stay.
func (l *Log) Purge(ctx context.Context, before time.Time) (int64, error) {
	query, args := "DELETE FROM requests", []any(nil)
	if !before.IsZero() {
		query, args = query+" WHERE created_at < ?", []any{toMicros(before)}
	}
	n, err := l.remove(ctx, query, args...)
	if err != nil {
		return n, fmt.Errorf("storage: purge: %w", err)
	}
	return n, nil
}

// remove deletes rows, gives their room back and empties the write-ahead log, where
// their text may still stand. It waits for readers and other processes until ctx
// ends.
func (l *Log) remove(ctx context.Context, query string, args ...any) (n int64, err error) {
	l.catchUp(ctx) // an end that waits would put its row back
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.write == nil {
		return 0, l.notOpen()
	}
	err = patiently(ctx, func() error {
		res, err := l.write.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	if err != nil {
		return 0, err
	}
	l.state.addRows(-n)
	if err := patiently(ctx, func() error { return giveBack(ctx, l.write) }); err != nil {
		return n, err
	}
	for {
		ok, err := truncateWAL(ctx, l.write) // waits for readers a little itself
		if ok || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
	}
}
