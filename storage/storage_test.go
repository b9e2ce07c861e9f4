package storage

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
)

func TestRecordRoundTrip(t *testing.T) {
	l := open(t, testConfig(t))
	ctx := context.Background()
	l.Begin(ctx, begun("a"))

	got, err := l.Get(ctx, "a")
	if err != nil || got == nil {
		t.Fatalf("the row is not there when Begin returns: %v, %v", got, err)
	}
	want := begun("a")
	want.Params = numbered(want.Params)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("begun:\n%+v\nwant\n%+v", got, want)
	}

	l.End(ended("a"))
	settle(t, l)
	got, err = l.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	want = ended("a")
	want.Params = numbered(want.Params)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ended:\n%+v\nwant\n%+v", got, want)
	}
	if s := l.Stats(); s.State != StateOK || s.Rows != 1 || s.Dropped != 0 || s.Late != 0 || s.Bytes == 0 || s.LastError != "" || s.Waiting != 0 {
		t.Errorf("stats %+v", s)
	}
}

// numbered gives values the types they are read as.
func numbered(params []appliance.Param) []appliance.Param {
	params[0].Value = json.Number("0.5")
	params[1].Value = json.Number("9007199254740993")
	params[2].Value = []any{"\n"}
	return params
}

func TestEndWithoutBeginMakesTheRow(t *testing.T) {
	l := open(t, testConfig(t))
	l.End(ended("a"))
	settle(t, l)
	got, err := l.Get(context.Background(), "a")
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	if got.Outcome != appliance.OutcomeStop || got.Prompt != "prompt a" || got.Text != "Paris. ü a" || len(got.Params) != 3 || len(got.Body) == 0 {
		t.Errorf("%+v", got)
	}
	// A beginning that comes late changes nothing.
	l.Begin(context.Background(), begun("a"))
	if got, _ := l.Get(context.Background(), "a"); got.Outcome != appliance.OutcomeStop {
		t.Errorf("outcome %q after a late beginning", got.Outcome)
	}
	if n := l.Stats().Rows; n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestRecordIsCopied(t *testing.T) {
	l := open(t, testConfig(t))
	r := begun("a")
	l.Begin(context.Background(), r)
	r.Prompt, r.Model = "changed", "changed"
	if got, _ := l.Get(context.Background(), "a"); got.Prompt != "prompt a" || got.Model != "M" {
		t.Errorf("%+v", got)
	}
}

func TestList(t *testing.T) {
	l := open(t, testConfig(t))
	ctx := context.Background()
	add := func(id string, minutes int, outcome appliance.Outcome, prompt, text string) {
		r := ended(id)
		r.CreatedAt = testTime.Add(time.Duration(minutes) * time.Minute)
		r.Outcome, r.Prompt, r.Text, r.Tokens = outcome, prompt, text, nil
		l.End(r)
	}
	add("r1", 1, appliance.OutcomeStop, "the 100% of France", "Paris")
	add("r2", 2, appliance.OutcomeLength, "a_b", "London\x00Tower")
	add("r3", 3, appliance.OutcomeError, "", "")
	add("r4", 4, appliance.OutcomeStop, strings.Repeat("é", 1000), "end")
	settle(t, l)
	tests := []struct {
		name string
		q    appliance.RecordQuery
		want string
	}{
		{"all", appliance.RecordQuery{}, "r4 r3 r2 r1"},
		{"before", appliance.RecordQuery{Before: "r3"}, "r2 r1"},
		{"before the oldest", appliance.RecordQuery{Before: "r1"}, ""},
		{"before an unknown one", appliance.RecordQuery{Before: "r9"}, ""},
		{"outcome", appliance.RecordQuery{Outcome: appliance.OutcomeStop}, "r4 r1"},
		{"since", appliance.RecordQuery{Since: testTime.Add(3 * time.Minute)}, "r4 r3"},
		{"text in prompt", appliance.RecordQuery{Text: "FRANCE"}, "r1"},
		{"text in answer", appliance.RecordQuery{Text: "paris"}, "r1"},
		{"text is no pattern", appliance.RecordQuery{Text: "%"}, "r1"},
		{"text is no pattern either", appliance.RecordQuery{Text: "_"}, "r2"},
		{"text with a quote", appliance.RecordQuery{Text: "' OR 1 --"}, ""},
		{"long text", appliance.RecordQuery{Text: strings.Repeat("x", 100000)}, ""},
		{"both", appliance.RecordQuery{Outcome: appliance.OutcomeStop, Before: "r4", Text: "p"}, "r1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(all(t, l, tt.q), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	page, next, err := l.List(ctx, appliance.RecordQuery{Limit: 2})
	if err != nil || len(page) != 2 || next != "r3" {
		t.Errorf("a page of 2: %d records, next %q, %v", len(page), next, err)
	}
	if got := page[0].Prompt; got != strings.Repeat("é", excerptChars) {
		t.Errorf("the excerpt has %d bytes", len(got))
	}
	if page[0].Body != nil || page[0].Params != nil || page[0].Tokens != nil {
		t.Errorf("the list has the big values: %+v", page[0])
	}
	_, next, err = l.List(ctx, appliance.RecordQuery{Limit: 2, Before: next})
	if err != nil || next != "" {
		t.Errorf("the last page: next %q, %v", next, err)
	}
	for _, limit := range []int{-1, 0, 501} {
		if _, _, err := l.List(ctx, appliance.RecordQuery{Limit: limit}); err == nil {
			t.Errorf("limit %d is accepted", limit)
		}
	}
}

func TestGetNothing(t *testing.T) {
	l := open(t, testConfig(t))
	if r, err := l.Get(context.Background(), "none"); r != nil || err != nil {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestReadsEndWithTheirContext(t *testing.T) {
	l := open(t, testConfig(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := l.List(ctx, appliance.RecordQuery{Limit: 1}); err == nil {
		t.Error("List ignores its context")
	}
	if _, err := l.Get(ctx, "a"); err == nil {
		t.Error("Get ignores its context")
	}
}

func TestDeleteAndPurge(t *testing.T) {
	l := open(t, testConfig(t))
	ctx := context.Background()
	put(t, l, "r", 0, 5)
	if ok, err := l.Delete(ctx, "r-0002"); !ok || err != nil {
		t.Errorf("delete: %v, %v", ok, err)
	}
	if ok, err := l.Delete(ctx, "r-0002"); ok || err != nil {
		t.Errorf("delete again: %v, %v", ok, err)
	}
	if got := strings.Join(all(t, l, appliance.RecordQuery{}), " "); got != "r-0004 r-0003 r-0001 r-0000" {
		t.Errorf("left %q", got)
	}
	if n, err := l.Purge(ctx, testTime); n != 0 || err != nil {
		t.Errorf("purge of nothing: %d, %v", n, err)
	}
	if n, err := l.Purge(ctx, testTime.Add(time.Microsecond)); n != 4 || err != nil {
		t.Errorf("purge by time: %d, %v", n, err)
	}
	put(t, l, "s", 0, 3)
	if n, err := l.Purge(ctx, time.Time{}); n != 3 || err != nil {
		t.Errorf("purge of all: %d, %v", n, err)
	}
	var data int
	if err := l.write.QueryRow("SELECT count(*) FROM request_data").Scan(&data); err != nil || data != 0 {
		t.Errorf("%d rows of data are left, %v", data, err)
	}
	if s := l.Stats(); s.Rows != 0 {
		t.Errorf("stats count %d rows", s.Rows)
	}
}

func TestCloseFlushesAndRepeats(t *testing.T) {
	cfg := testConfig(t)
	l := open(t, cfg)
	for i := range 300 {
		l.End(ended(string(rune('a'+i%26)) + strings.Repeat("x", i)))
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if s := l.Stats(); s.State != StateClosed || s.Dropped != 0 {
		t.Errorf("stats %+v", s)
	}
	// After Close: counted, no crash, errors from reads.
	l.Begin(context.Background(), begun("late"))
	l.End(ended("late"))
	if s := l.Stats(); s.Dropped != 1 || s.Late != 1 {
		t.Errorf("stats %+v", s)
	}
	if _, _, err := l.List(context.Background(), appliance.RecordQuery{Limit: 1}); err == nil {
		t.Error("List of a closed log")
	}
	if _, err := l.Purge(context.Background(), time.Time{}); err == nil {
		t.Error("Purge of a closed log")
	}
	if _, err := os.Stat(cfg.Path + "-wal"); err == nil {
		t.Error("the write-ahead log is left")
	}
	again := open(t, cfg)
	if n := len(all(t, again, appliance.RecordQuery{})); n != 300 {
		t.Errorf("%d rows after Close, want 300", n)
	}
}

// F67.
func TestAnyLegalPath(t *testing.T) {
	for _, name := range []string{"Загрузки 模型 ü 🦙", `a'b"c $x#y?z=1&q%41`, strings.Repeat("n", 250)} {
		cfg := testConfig(t)
		cfg.Path = filepath.Join(t.TempDir(), name, "a?b#c.db")
		l, err := Open(cfg)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		put(t, l, "r", 0, 1)
		if got := len(all(t, l, appliance.RecordQuery{})); got != 1 {
			t.Errorf("%q: %d rows", name, got)
		}
		l.Close()
		if size(cfg.Path) == 0 {
			t.Errorf("%q: the file is not where it should be", name)
		}
	}
}

func TestFilesAreForTheOwnerAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are inherited from the folder")
	}
	cfg := testConfig(t)
	l := open(t, cfg)
	put(t, l, "r", 0, 1)
	l.Begin(context.Background(), begun("x"))
	entries, err := os.ReadDir(filepath.Dir(cfg.Path))
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, _ := os.Stat(filepath.Dir(cfg.Path)); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v", info.Mode())
	}
}

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
		want string // in the error, empty = none
	}{
		{"good", Config{Path: "x"}, ""},
		{"limits", Config{Path: "x", MaxAge: time.Hour, MaxBytes: 1 << 20}, ""},
		{"age", Config{Path: "x", MaxAge: -1}, "max age -1"},
		{"bytes", Config{Path: "x", MaxBytes: -1}, "max bytes -1"},
		{"no path", Config{}, "path"},
		{"tiny", Config{Path: "x", MaxBytes: 1000}, "max bytes 1000"},
		{"queue", Config{Path: "x", QueueSize: -1}, "queue size -1"},
		{"wait", Config{Path: "x", BeginWait: -1}, "begin wait"},
	}
	for _, tt := range tests {
		err := tt.cfg.Validate()
		if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
