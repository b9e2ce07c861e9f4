package storage

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func TestMigrations(t *testing.T) {
	one := fstest.MapFS{"migrations/0001_a.sql": file("CREATE TABLE a (x); INSERT INTO a VALUES (1);")}
	two := fstest.MapFS{"migrations/0001_a.sql": one["migrations/0001_a.sql"], "migrations/0002_b.sql": file("ALTER TABLE a ADD COLUMN y; UPDATE a SET y = 2;")}
	bad := fstest.MapFS{"migrations/0001_a.sql": one["migrations/0001_a.sql"], "migrations/0002_b.sql": file("ALTER TABLE a ADD COLUMN y; nonsense;")}

	db := openPool(filepath.Join(t.TempDir(), "x.db"), "rwc", 1, writerPragmas(true, 0, 10))
	defer db.Close()
	run := func(files fstest.MapFS) error {
		steps, err := readMigrations(files)
		if err != nil {
			t.Fatal(err)
		}
		return migrate(t.Context(), db, steps)
	}
	version := func() int {
		n, err := schemaVersion(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		if err := run(one); err != nil || version() != 1 {
			t.Fatalf("version %d, %v", version(), err)
		}
	}
	// A step that fails leaves nothing behind.
	if err := run(bad); err == nil || version() != 1 || !strings.Contains(err.Error(), "0002_b.sql") {
		t.Fatalf("version %d, %v", version(), err)
	}
	if err := run(two); err != nil || version() != 2 {
		t.Fatalf("version %d, %v", version(), err)
	}
	var x, y int
	if err := db.QueryRow("SELECT x, y FROM a").Scan(&x, &y); err != nil || x != 1 || y != 2 {
		t.Errorf("x %d, y %d, %v", x, y, err)
	}
	if err := run(one); err == nil {
		t.Error("a newer file was taken")
	}
}

func TestMigrationNumbers(t *testing.T) {
	for _, names := range [][]string{{"0002_a.sql"}, {"0001_a.sql", "0003_b.sql"}, {"0001_a.sql", "0001_b.sql"}, {"x.sql"}} {
		files := fstest.MapFS{}
		for _, n := range names {
			files["migrations/"+n] = file("SELECT 1")
		}
		if steps, err := readMigrations(files); err == nil {
			t.Errorf("%v are accepted: %v", names, steps)
		}
	}
	if steps, err := readMigrations(migrationFiles); err != nil || len(steps) == 0 {
		t.Errorf("ours: %v, %v", steps, err)
	}
}

// Each connection has the settings it should.
func TestPragmas(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxBytes = 64 << 20
	l := open(t, cfg)
	for _, p := range []pragma{{"journal_mode", "wal"}, {"synchronous", "1"}, {"foreign_keys", "1"}, {"secure_delete", "1"},
		{"auto_vacuum", "2"}, {"busy_timeout", "100"}, {"temp_store", "2"}, {"max_page_count", "14336"}, {"wal_autocheckpoint", "512"},
		{"application_id", ""}} {
		var got string
		if err := l.write.QueryRow("PRAGMA " + p.name).Scan(&got); err != nil || (got != p.value && p.value != "") || got == "0" {
			t.Errorf("%s = %s, want %s (%v)", p.name, got, p.value, err)
		}
	}
	if _, err := l.read.Exec("DELETE FROM requests"); err == nil {
		t.Error("a reader may write")
	}
}
