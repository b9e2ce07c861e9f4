package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// F73: prompts stay out of the console and can be kept out of the log.

// canary is in every text of the requests below, and nowhere else.
const canary = "kanarienvogel"

// agent is what the client calls itself. The log keeps it in any case, as it keeps the
// route: it names a program. The console never shows it.
const agent = "kanarien-agent"

// canaryRequests are good and bad requests with the canary in each place that holds
// text of a client.
func canaryRequests(p *process) {
	p.t.Helper()
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/v1/completions", `{"prompt":"` + canary + ` sings","max_completion_tokens":4}`, 200},
		{"POST", "/v1/completions", `{"prompt":"` + canary + `","max_completion_tokens":4,"stream":true,"stop":["` + canary + `"]}`, 200},
		{"POST", "/v1/completions", `{"prompt":"` + canary + `","max_completion_tokens":1,"model":"` + canary + `","user":"` + canary + `"}`, 200},
		{"POST", "/v1/completions", `{"prompt":"a","logit_bias":{"` + canary + `":1}}`, 400},
		{"POST", "/v1/completions", `{"prompt":"a","stop":"","` + canary + `":1}`, 400},
		{"POST", "/v1/completions", `{"prompt":"a","images":["` + canary + `"]}`, 400},
		{"POST", "/v1/completions", `{"prompt":"` + canary + `","top_p":7}`, 400},
		{"POST", "/v1/completions", `{"prompt":"` + canary, 400},
		{"POST", "/v1/tokenize", `{"text":"` + canary + `"}`, 200},
		{"GET", "/v1/tokens?contains=" + canary, "", 200},
		{"GET", "/" + canary, "", 404},
		{"GET", "/v1/log/" + canary, "", 404},
		{"POST", "/v1/models/load", `{"id":"` + canary + `"}`, 404},
	} {
		status, _, body := p.request(r.method, r.path, r.body, "Authorization", "Bearer "+canary, "X-Name", canary, "User-Agent", agent)
		if status != r.status {
			p.t.Errorf("%s %s %s: status %d, want %d: %s", r.method, r.path, r.body, status, r.status, body)
		}
		if status >= 400 && strings.Contains(body, canary) {
			p.t.Errorf("%s %s %s: the error repeats it: %s", r.method, r.path, r.body, body)
		}
	}
}

// findCanary lists the files below a folder that hold the canary, as text or as the
// JSON of its ids.
func findCanary(t *testing.T, dir string, ids string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) || bytes.Contains(b, []byte(ids)) {
			names = append(names, filepath.Base(path))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the compiled code of a plugin has got its name meanwhile
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// canaryIDs are the tokens of the canary as the log would write them.
func canaryIDs(p *process) string {
	p.t.Helper()
	status, _, body := p.request("POST", "/v1/tokenize", `{"text":"`+canary+`","bos":false}`)
	var list struct{ Tokens []struct{ ID int } }
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK || len(list.Tokens) < 4 {
		p.t.Fatalf("status %d: %s: %v", status, body, err)
	}
	ids := make([]int, len(list.Tokens))
	for i, t := range list.Tokens {
		ids[i] = t.ID
	}
	b, err := json.Marshal(ids)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Trim(string(b), "[]")
}

func TestPromptsStayOffTheConsole(t *testing.T) {
	for _, level := range [][]string{nil, {"--verbose"}} {
		t.Run(strings.Join(append(level, "text kept"), " "), func(t *testing.T) {
			home := t.TempDir()
			p := serveTiny(t, home, level...)
			ids := canaryIDs(p)
			canaryRequests(p)
			p.stop()
			if out := p.output(); strings.Contains(out, canary) || strings.Contains(out, agent) {
				t.Errorf("the console has it:\n%s", out)
			} else if len(level) > 0 && !strings.Contains(out, "route=/v1/completions") {
				t.Errorf("--verbose prints no requests: the check looked at nothing:\n%s", out)
			}
			// The partner: the search finds it where it belongs.
			if len(findCanary(t, home, ids)) == 0 {
				t.Error("the log, which keeps text, does not hold it: the search finds nothing")
			}
		})
	}
}

func TestPromptsStayOutOfALogWithoutText(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home, "--log-text=false", "--verbose")
	ids := canaryIDs(p)
	canaryRequests(p)
	if names := findCanary(t, home, ids); len(names) > 0 {
		t.Errorf("found while serving in %v", names)
	}
	p.stop()
	if names := findCanary(t, home, ids); len(names) > 0 {
		t.Errorf("found after the end in %v", names)
	}
	rows := logRows(t, filepath.Join(home, "data", "ganglion.db"), "")
	if len(rows) != 3 || rows[0].CompletionTokens == 0 || rows[0].Prompt != "" {
		t.Errorf("rows: %+v", rows)
	}
	if names := findCanary(t, home, ids); len(names) > 0 {
		t.Errorf("found after another opening in %v", names)
	}
}

// Without a log nothing is kept, and the counters count all the same.
func TestWithoutLog(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home, "--log=false")
	p.answers()
	if got := metric(t, p, "ganglion_completions_total"); got != 1 {
		t.Errorf("the metrics count %v completions, want 1", got)
	}
	p.stop()
	if strings.Contains(p.output(), "record was not") {
		t.Errorf("it tried to keep a record:\n%s", p.output())
	}
	if _, err := os.Stat(filepath.Join(home, "data", "ganglion.db")); err == nil {
		t.Error("there is a log")
	}
}

// F75: a damaged log is set aside with one warning, and the server serves.
func TestDamagedLogIsSetAside(t *testing.T) {
	noise := bytes.Repeat([]byte("no database "), 1000)
	home := t.TempDir()
	path := filepath.Join(home, "data", "ganglion.db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, noise, 0o600); err != nil {
		t.Fatal(err)
	}
	p := serveTiny(t, home)
	p.answers()
	p.stop()
	if got := strings.Count(p.output(), "level=WARN"); got != 1 || !strings.Contains(p.output(), "a damaged file was set aside") {
		t.Errorf("%d warnings, want one about the damaged file:\n%s", got, p.output())
	}
	aside, err := filepath.Glob(path + ".damaged-20*")
	if err != nil || len(aside) != 1 {
		t.Fatalf("set aside: %v, %v", aside, err)
	}
	if b, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(b, noise) {
		t.Errorf("the file set aside is not the damaged one: %v", err)
	}
	if rows := logRows(t, path, ""); len(rows) != 1 {
		t.Errorf("%d rows in the new log, want 1", len(rows))
	}
	// The partner: a sound log causes no warning.
	q := serveTiny(t, home)
	q.answers()
	q.stop()
	if strings.Contains(q.output(), "WARN") {
		t.Errorf("a sound log is warned about:\n%s", q.output())
	}
}
