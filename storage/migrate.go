package storage

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one numbered step of the schema.
type migration struct {
	number int
	name   string
	sql    string
}

// readMigrations returns the steps in order and checks that their numbers are
// 1, 2, 3, ….
func readMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []migration
	for i, name := range names {
		digits, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		n, err := strconv.Atoi(digits)
		if err != nil || n != i+1 {
			return nil, fmt.Errorf("storage: %s: its number should be %04d", name, i+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		list = append(list, migration{n, name, string(text)})
	}
	return list, nil
}

// migrate brings the schema up to date. A file written by a newer version is
// refused: it is neither damaged nor ours to change.
func migrate(ctx context.Context, db *sql.DB, steps []migration) error {
	version, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return &versionError{have: version, know: len(steps)}
	}
	for _, m := range steps[version:] {
		if err := apply(ctx, db, m); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, db *sql.DB, m migration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Another process may have done it while this one waited for the lock.
	version, err := schemaVersion(ctx, tx)
	if err != nil || version >= m.number {
		return err
	}
	if _, err := tx.ExecContext(ctx, m.sql); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	// A pragma takes no arguments; the number is ours.
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(m.number)); err != nil {
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func schemaVersion(ctx context.Context, q querier) (n int, err error) {
	err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&n)
	return n, err
}

// versionError says that a file has a schema of a newer version.
type versionError struct{ have, know int }

func (e *versionError) Error() string {
	return fmt.Sprintf("has schema version %d, this program knows versions up to %d: it was written by a newer one", e.have, e.know)
}
