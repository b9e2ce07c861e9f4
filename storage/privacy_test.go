package storage

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
)

const canary = "CaNaRy7f3a"

// withCanary carries the canary in everything that a client or the model wrote.
func withCanary(id string) *appliance.Record {
	r := ended(id)
	r.Body = []byte(`{"prompt":"` + canary + `"}`)
	r.Prompt = "p " + canary
	r.Text = canary + " t"
	r.ErrorMessage = `stop[0] is "` + canary + `"`
	r.Params = append(r.Params,
		appliance.Param{Name: "stop", Value: []string{canary}},
		appliance.Param{Name: "stop", Value: canary},
		appliance.Param{Name: "logit_bias", Value: map[string]float64{canary: 1}})
	r.Tokens = []appliance.Token{{ID: 1, Text: canary, Top: []appliance.Alternative{{ID: 2, Text: canary}}}}
	return r
}

// F73: with no text the canary is in no file of the folder, while the log is open,
// after a purge and after Close, nor in the console log.
func TestNoText(t *testing.T) {
	cfg := testConfig(t)
	book := new(logBook)
	cfg.NoText, cfg.Logger = true, book.logger()
	l := open(t, cfg)
	folder := filepath.Dir(cfg.Path)
	check := func(when string) {
		t.Helper()
		if files := folderHas(t, folder, canary); files != nil {
			t.Errorf("%s the canary is in %v", when, files)
		}
		if book.count(canary) != 0 {
			t.Errorf("%s the canary is on the console", when)
		}
	}
	for i := range 50 {
		r := withCanary(fmt.Sprint("r", i))
		l.Begin(t.Context(), r)
		check("after Begin")
		l.End(r)
	}
	settle(t, l)
	check("after End")
	got, err := l.Get(t.Context(), "r7")
	if err != nil {
		t.Fatal(err)
	}
	if got.PromptTokens != 7 || got.Seed != begun("").Seed || got.Outcome != appliance.OutcomeStop {
		t.Errorf("the numbers are not kept: %+v", got)
	}
	if len(got.Params) != 6 || got.Params[0].Value == nil || got.Params[3].Value != nil {
		t.Errorf("parameters %+v", got.Params)
	}
	if _, err := l.Purge(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	check("after Purge")
	l.Close()
	check("after Close")
}

// The partner: with text the canary is found in the folder, so the search can fail;
// and Purge, Delete and retention leave no trace of it.
func TestPurgedTextIsGone(t *testing.T) {
	tests := []struct {
		name   string
		remove func(t *testing.T, l *Log)
	}{
		{"purge", func(t *testing.T, l *Log) {
			if _, err := l.Purge(t.Context(), time.Time{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"delete", func(t *testing.T, l *Log) {
			for _, id := range all(t, l, appliance.RecordQuery{Text: canary}) {
				if _, err := l.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"retention", func(t *testing.T, l *Log) {
			if err := l.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.MaxAge = 24 * time.Hour
			cfg.Now = func() time.Time { return testTime.Add(12 * time.Hour) }
			l := open(t, cfg)
			folder := filepath.Dir(cfg.Path)
			for i := range 20 {
				r := withCanary(fmt.Sprint("r", i))
				r.Body = append(r.Body, strings.Repeat(canary, 2000)...) // on pages of its own
				if tt.name == "retention" {
					r.CreatedAt = testTime.Add(-24 * time.Hour)
				}
				l.Begin(t.Context(), r)
				l.End(r)
			}
			keep := ended("keep")
			l.End(keep)
			settle(t, l)
			if tt.name != "retention" && folderHas(t, folder, canary) == nil {
				t.Fatal("the text was never there")
			}
			tt.remove(t, l)
			if files := folderHas(t, folder, canary); files != nil {
				t.Errorf("the canary is still in %v", files)
			}
			if tt.name != "purge" {
				if got := all(t, l, appliance.RecordQuery{}); len(got) != 1 {
					t.Errorf("left %v", got)
				}
			}
		})
	}
}
