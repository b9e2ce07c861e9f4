package storage

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 89000, time.UTC)

// logBook collects what is logged.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *logBook) count(what string) int { return bytes.Count([]byte(b.String()), []byte(what)) }

func (b *logBook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testConfig is a log in a new folder.
func testConfig(t testing.TB) Config {
	t.Helper()
	return Config{
		Path: filepath.Join(t.TempDir(), "data", "ganglion.db"), Logger: new(logBook).logger(),
		BeginWait: 20 * time.Second,
	}
}

func open(t testing.TB, cfg Config) *Log {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// begun is the first part of a record.
func begun(id string) *appliance.Record {
	return &appliance.Record{
		ID: id, CreatedAt: testTime, Route: "POST /v1/completions", Client: "test/1", Stream: true,
		Body: []byte(`{"prompt":"body ` + id + `"}`), Prompt: "prompt " + id,
		Media: []appliance.MediaNote{
			{Param: "images[0]", MIME: "image/png", SHA256: "secret words", Bytes: 70000, Width: 640, Height: 480, Tokens: 258},
			{Param: "audios[0]", MIME: "audio/wav", SHA256: "cd", Bytes: 9000, Seconds: 1.5, Tokens: 187},
			{Param: "videos[0]", MIME: "image/gif", SHA256: "ef", Bytes: 9000, Seconds: 1.5, Frames: 3, Tokens: 800, Hints: &appliance.HintsNote{FPS: 2, Start: 0.5}},
		},
		Params: []appliance.Param{
			{Name: "temperature", Value: 0.5, Origin: appliance.FromRequest},
			{Name: "seed", Value: int64(9007199254740993), Origin: appliance.FromRandom},
			{Name: "stop", Value: []string{"\n"}, Origin: appliance.FromRequest},
		},
		Seed: 9007199254740993, Model: "M", ModelHash: "h1", Backend: "cpu", Device: "AVX2", Numerics: "exact", Kernels: "k1",
		Outcome: appliance.OutcomeOpen,
	}
}

// ended is the same record at its end.
func ended(id string) *appliance.Record {
	r := begun(id)
	r.Outcome, r.EndedAt = appliance.OutcomeStop, testTime.Add(time.Second)
	r.Text = "Paris. ü " + id
	r.Tokens = []appliance.Token{
		{ID: 3, Text: "Paris.", Logprob: -0.1234567890123},
		{ID: 262143, Text: " ü ", Logprob: 0, Offset: 6, Top: []appliance.Alternative{{ID: 9, Text: "x", Logprob: -2.5}, {ID: 10, Text: "", Logprob: -3}}},
		{ID: 1, Text: "not in the text", Logprob: -1e-300, Offset: 10},
	}
	r.PromptTokens, r.CachedTokens, r.CompletionTokens = 7, 5, 3
	r.DraftedTokens, r.AcceptedTokens = 4, 2
	r.Plugins = []appliance.PluginReport{
		{Name: "xtc", Version: "1.2.0", Hash: "abc", Outcome: "ok", Calls: 4, MicrosPer: 1.5, FuelPer: 1438.25, Changed: 1},
		{Name: "pii", Version: "0.1.0-rc.1", Hash: "def", Outcome: "skipped", Error: "trap: unreachable in secret words", Rewritten: 2, Rewinds: 3},
		{Name: "watch", Version: "2.0.0", Hash: "ghi", Outcome: "shadow", Changed: 1, Shadow: true, Choices: []appliance.ShadowChoice{{At: 1, ID: 77, Text: "secret"}}},
	}
	r.PluginMeta = map[string]string{"pii.found": `{"secret":"words"}`}
	r.Backend, r.Device, r.Moved = "cpu", "processor", "vulkan (card) failed; went on with cpu (processor)"
	r.QueueMS, r.PrefillMS, r.DecodeMS, r.FirstTokenMS, r.SampleMS = 0.25, 1.5, 2.5, 3.5, 0.125
	return r
}

// put writes n whole records and waits for them.
func put(t testing.TB, l *Log, name string, from, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("%s-%04d", name, from+i)
		l.Begin(context.Background(), begun(id))
		l.End(ended(id))
	}
	settle(t, l)
}

// settle waits until everything queued is written.
func settle(t testing.TB, l *Log) {
	t.Helper()
	waitFor(t, "the queue to be written", func() bool {
		if l.queue.length() > 0 {
			return false
		}
		// What was taken out of the queue is written once the writer takes this.
		o := l.newOp(begun("settle"), false)
		if !l.queue.add(o) {
			return false
		}
		<-o.written
		ok, err := l.Delete(context.Background(), "settle")
		if err != nil {
			t.Fatal(err)
		}
		return ok
	})
}

// waitFor waits for a condition that another goroutine or process brings about.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// waitForLock waits until the writer knows of a lock that another connection holds, with a
// write in its hands: it takes no other before that one is done. That the log counts as locked
// is not enough, for the sweep at start may have met the lock.
func waitForLock(t testing.TB, l *Log) {
	t.Helper()
	waitFor(t, "the lock to be noticed", func() bool { return l.Stats().State == StateLocked && l.queue.length() == 0 })
}

// all lists every record, newest first.
func all(t testing.TB, l *Log, q appliance.RecordQuery) (ids []string) {
	t.Helper()
	q.Limit = 100
	for {
		records, next, err := l.List(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			ids = append(ids, r.ID)
		}
		if next == "" {
			return ids
		}
		q.Before = next
	}
}

// integrity checks the whole file at path, which no log has open.
func integrity(t testing.TB, path string) {
	t.Helper()
	db := openPool(path, "rw", 1, readerPragmas[:1])
	defer db.Close()
	var result string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity check of %s: %q, %v", path, result, err)
	}
}

// holdLock takes the write lock in another connection until release is called.
func holdLock(t testing.TB, path string) (release func()) {
	t.Helper()
	db := openPool(path, "rw", 1, []pragma{{"busy_timeout", "10000"}})
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := tx.Rollback(); err != nil && err != sql.ErrTxDone {
			t.Error(err)
		}
		db.Close()
	})
}

// folderHas searches the bytes of every file in a folder.
func folderHas(t testing.TB, folder, what string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(what)) {
			files = append(files, e.Name())
		}
	}
	return files
}
