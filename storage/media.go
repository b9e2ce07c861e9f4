package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ganglion/appliance"
)

// keepFiles decides which files of media are written with a record: those of its beginning,
// where the log keeps them at all and they are not too large. The record is a copy whose
// lists are the caller's.
func (l *Log) keepFiles(r *appliance.Record, end bool) {
	if end || !l.cfg.Media || (l.size.maxRecord > 0 && sizeOfFiles(r) > l.size.maxRecord) {
		r.Files = nil
		return
	}
	r.Media = slices.Clone(r.Media)
	for i := range r.Files {
		r.Media[i].Kept = len(r.Files[i]) > 0 // a film of pictures is no file
	}
}

// formatMedia is what the column media holds of a record.
func formatMedia(r *appliance.Record) (string, error) {
	if len(r.Media) == 0 {
		return "", nil
	}
	b, err := json.Marshal(r.Media)
	if err != nil {
		return "", fmt.Errorf("storage: media: %w", err)
	}
	return string(b), nil
}

// insertFiles writes the files of a record.
func insertFiles(ctx context.Context, tx *sql.Tx, seq int64, r *appliance.Record) error {
	for i, f := range r.Files {
		if len(f) == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO media_files (seq, place, file) VALUES (?, ?, ?)", seq, i, f); err != nil {
			return err
		}
	}
	return nil
}

// MediaFile returns the file of one of a record's media by its place in Record.Media, nil
// where the log does not have it.
func (l *Log) MediaFile(ctx context.Context, id string, place int) ([]byte, error) {
	l.catchUp(ctx)
	l.pools.RLock()
	defer l.pools.RUnlock()
	if l.read == nil {
		return nil, l.notOpen()
	}
	var file []byte
	err := l.read.QueryRowContext(ctx, "SELECT file FROM media_files JOIN requests USING (seq) WHERE id = ? AND place = ?", id, place).Scan(&file)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("storage: media %d of record %q: %w", place, id, err)
	}
	return file, nil
}
