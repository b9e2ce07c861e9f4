package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ganglion/gpu"
	"ganglion/gpu/engine"
	"ganglion/storage"
)

// finding is the result of one check of `ganglion doctor`.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // "ok", "note" or "bad"
	Detail string `json:"detail"`
}

func newDoctor(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check this machine and installation", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := s.examine(cmd.Context())
			if asJSON {
				if err := json.NewEncoder(e.stdout).Encode(findings); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					fmt.Fprintf(e.stdout, "%-5s %-10s %s\n", f.State, f.Check, f.Detail)
				}
			}
			for _, f := range findings {
				if f.State == "bad" {
					return fail(exitFailure, "", "%s: %s", f.Check, f.Detail)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	s.serveFlags(c)
	return c
}

// examine runs every check.
func (s *settings) examine(ctx context.Context) []finding {
	out := []finding{{"version", "ok", fmt.Sprintf("ganglion %s, kernels %s", version, engine.KernelSet)}}
	out = append(out, s.examineBackends()...)
	out = append(out, s.examineMemory(), s.examineModels(ctx), s.examineLog())
	for _, dir := range []string{s.paths.Data, s.paths.State, s.paths.Cache} {
		out = append(out, examineFolder(dir))
	}
	return out
}

func (s *settings) examineBackends() []finding {
	var out []finding
	for _, name := range gpu.Names() {
		if name == "auto" {
			continue
		}
		b, err := gpu.Open(name)
		if err != nil {
			out = append(out, finding{name, "note", err.Error()})
			continue
		}
		out = append(out, finding{name, "ok", b.Caps().Device})
		if err := b.Close(); err != nil {
			out = append(out, finding{name, "bad", err.Error()})
		}
	}
	return out
}

func (s *settings) examineMemory() finding {
	n := engine.AvailableMemory()
	if n == 0 {
		return finding{"memory", "note", "this system does not tell how much memory is free"}
	}
	return finding{"memory", "ok", bytesText(n) + " free"}
}

func (s *settings) examineModels(ctx context.Context) finding {
	found := s.discover(ctx)
	n := 0
	for _, f := range found {
		if f.Available {
			n++
		}
	}
	if n == 0 {
		return finding{"models", "note", "none found; put a .gguf file into " + s.modelsDir()}
	}
	return finding{"models", "ok", fmt.Sprintf("%d found (`ganglion list`)", n)}
}

func (s *settings) examineLog() finding {
	if _, err := os.Stat(s.logPath()); errors.Is(err, fs.ErrNotExist) {
		return finding{"log", "ok", "not begun yet: " + s.logPath()}
	}
	log, err := storage.Open(s.logConfig(slog.New(slog.DiscardHandler)))
	if err != nil {
		return finding{"log", "bad", err.Error()}
	}
	defer log.Close()
	st := log.Stats()
	if st.State != storage.StateOK {
		return finding{"log", "bad", st.State}
	}
	return finding{"log", "ok", fmt.Sprintf("%d requests, %s: %s", st.Rows, bytesText(st.Bytes), st.Path)}
}

// examineFolder checks that a folder, or the nearest one that exists above it, can
// be written to.
func examineFolder(dir string) finding {
	at := dir
	for {
		st, err := os.Stat(at)
		if err == nil && !st.IsDir() {
			return finding{"folder", "bad", at + " is not a folder"}
		}
		if err == nil {
			break
		}
		up := filepath.Dir(at)
		if up == at {
			return finding{"folder", "bad", dir + ": " + err.Error()}
		}
		at = up
	}
	f, err := os.CreateTemp(at, ".ganglion-*")
	if err != nil {
		return finding{"folder", "bad", err.Error()}
	}
	name := f.Name()
	if err := errors.Join(f.Close(), os.Remove(name)); err != nil {
		return finding{"folder", "bad", err.Error()}
	}
	return finding{"folder", "ok", dir}
}
