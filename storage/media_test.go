package storage

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"ganglion/appliance"
)

// withPicture is a record whose media carry the canary.
func withPicture(id string) (begin, end *appliance.Record) {
	make := func(r *appliance.Record) *appliance.Record {
		r.Media = []appliance.MediaNote{{Param: "images[0]", MIME: "image/png", SHA256: "5f", Bytes: 20, Tokens: 256}, {Param: "videos[0]", Tokens: 9}}
		r.Files = [][]byte{[]byte("picture " + canary), nil}
		return r
	}
	return make(begun(id)), make(ended(id))
}

func TestMediaFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(*Config)
		keeps bool
	}{
		{"by default", func(*Config) {}, false},
		{"as configured", func(c *Config) { c.Media = true }, true},
		{"without text", func(c *Config) { c.Media, c.NoText = true, true }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t)
			tt.set(&cfg)
			l := open(t, cfg)
			begin, end := withPicture("r1")
			l.Begin(t.Context(), begin)
			l.End(end)
			settle(t, l)
			r, err := l.Get(t.Context(), "r1")
			if err != nil || len(r.Media) != 2 || r.Media[0].Kept != tt.keeps || r.Media[1].Kept || begin.Media[0].Kept {
				t.Fatalf("%+v, %v; the caller's own %+v", r, err, begin.Media)
			}
			file, err := l.MediaFile(t.Context(), "r1", 0)
			if err != nil || bytes.Equal(file, begin.Files[0]) != tt.keeps {
				t.Errorf("the file is %q, %v", file, err)
			}
			for _, place := range []int{-1, 1, 2} {
				if file, err := l.MediaFile(t.Context(), "r1", place); file != nil || err != nil {
					t.Errorf("place %d: %q, %v", place, file, err)
				}
			}
			if found := folderHas(t, filepath.Dir(cfg.Path), canary) != nil; !tt.keeps && found {
				t.Error("the picture is in the folder")
			}
			if ok, err := l.Delete(t.Context(), "r1"); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if files := folderHas(t, filepath.Dir(cfg.Path), "picture"); files != nil {
				t.Errorf("the picture is in %v after its record was deleted", files)
			}
		})
	}
}

// Files count when the oldest records make room, and one that is too large is left out.
func TestMediaFilesAreBounded(t *testing.T) {
	cfg := testConfig(t)
	cfg.Media, cfg.MaxBytes = true, 2<<20
	l := open(t, cfg)
	put := func(id string, size int) {
		begin, end := withPicture(id)
		begin.Files[0] = bytes.Repeat([]byte{7}, size)
		l.Begin(t.Context(), begin)
		l.End(end)
		settle(t, l)
	}
	put("huge", 1<<20)
	if r, err := l.Get(t.Context(), "huge"); err != nil || r.Media[0].Kept || r.Prompt == "" {
		t.Errorf("%+v, %v", r, err)
	}
	const n = 40
	for i := range n {
		put(fmt.Sprint("r", i), 200<<10)
	}
	if file, err := l.MediaFile(t.Context(), fmt.Sprint("r", n-1), 0); len(file) != 200<<10 || err != nil {
		t.Errorf("the last file has %d bytes, %v", len(file), err)
	}
	if file, err := l.MediaFile(t.Context(), "r0", 0); file != nil || err != nil {
		t.Errorf("the first file has %d bytes, %v", len(file), err)
	}
	if s := l.Stats(); s.Bytes > cfg.MaxBytes {
		t.Errorf("%d bytes, at most %d", s.Bytes, cfg.MaxBytes)
	}
}
