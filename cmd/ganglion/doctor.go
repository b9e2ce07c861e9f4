package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/gpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/probe"
	"ganglion/storage"
)

// finding is the result of one check of `ganglion doctor`.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // "ok", "note" or "bad"
	Detail string `json:"detail"`
}

func newDoctor(e *env, s *settings) *cobra.Command {
	var asJSON, retest bool
	c := &cobra.Command{
		Use: "doctor [flags]", Short: "Check this machine and installation", Args: noArgs(""),
		Annotations: map[string]string{withoutSettings: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := s.examine(cmd.Context(), retest)
			if asJSON {
				if err := e.json(findings); err != nil {
					return err
				}
			} else {
				rows := make([][]string, len(findings))
				for i, f := range findings {
					rows[i] = []string{f.State, f.Check, f.Detail}
				}
				if err := e.table(rows); err != nil {
					return err
				}
			}
			if i := slices.IndexFunc(findings, func(f finding) bool { return f.State == "bad" }); i >= 0 {
				return fail(exitFailure, "", "%s: %s", findings[i].Check, findings[i].Detail)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&retest, "retest", false, "test all GPUs again, quarantined ones and those that were lost too")
	s.serveFlags(c)
	return c
}

// examine runs every check.
func (s *settings) examine(ctx context.Context, retest bool) []finding {
	out := []finding{
		{"version", "ok", fmt.Sprintf("ganglion %s, kernels %s", version, engine.KernelSet)},
		s.examineSettings(), examineCPU(s.Threads),
	}
	out = append(out, s.examineGPUs(ctx, retest)...)
	out = append(out, s.examineMemory(), s.examineModels(ctx), s.examineFilm(), s.examineLog(), s.examineAddress())
	for _, f := range []struct{ name, dir string }{{"data", s.paths.Data}, {"state", s.paths.State}, {"cache", s.paths.Cache}} {
		out = append(out, examineFolder(f.name, f.dir))
	}
	return out
}

// examineSettings says which file was read, or what is wrong with the settings.
func (s *settings) examineSettings() finding {
	if s.broken != nil {
		return finding{"settings", "bad", s.broken.Error()}
	}
	if _, err := os.Stat(s.configFile); err != nil {
		return finding{"settings", "ok", "built in, environment and flags; no file " + s.configFile}
	}
	return finding{"settings", "ok", s.configFile}
}

// examineCPU names the processor and the variant of the SIMD kernels that runs on it,
// which the backend puts in brackets behind the processor.
func examineCPU(threads int) finding {
	b, err := gpu.CPU()
	if err != nil {
		return finding{"cpu", "bad", err.Error()}
	}
	defer b.Close()
	device, kernels := b.Caps().Device, "unknown"
	if i := strings.LastIndex(device, " ("); i >= 0 {
		device, kernels = device[:i], strings.Trim(device[i:], " ()")
	}
	return finding{"cpu", "ok", fmt.Sprintf("%s, SIMD kernels: %s, %d threads", device, kernels, threads)}
}

// examineGPUs lists every device of every driver.
func (s *settings) examineGPUs(ctx context.Context, retest bool) (out []finding) {
	m := s.machine()
	defer m.Close()
	for _, d := range deviceList(m.Find(ctx, retest), nil) {
		state := "ok"
		if d.State != "available" {
			state = "note"
		}
		out = append(out, finding{"gpu", state, fmt.Sprintf("%s through %s: %s: %s", d.Name, d.Backend, d.State, d.Note)})
	}
	if len(out) == 0 {
		out = append(out, finding{"gpu", "note", "no driver has a device: Ganglion computes on the processor"})
	}
	return append(out, s.examinePhases(ctx, m))
}

// examinePhases tells where prompts and tokens of the model run, as far as that is known
// without loading it.
func (s *settings) examinePhases(ctx context.Context, m *gpu.Machine) finding {
	c, d := s.choice(), s.PromptBackend
	switch p, named := s.promptChoice(); {
	case named:
		return finding{"phases", "ok", fmt.Sprintf("prompts on %s, tokens on %s, as the settings say", wordsOf(p), wordsOf(c))}
	case d == "same" || (c.Backend != "auto" && c.Backend != "") || c.Device != "":
		return finding{"phases", "ok", "prompts and tokens on one device, as the settings say"}
	}
	candidates := m.Candidates(ctx, c)
	if len(candidates) == 0 {
		return finding{"phases", "ok", "prompts and tokens on the processor: there is no GPU to choose"}
	}
	where, known := s.measured(ctx, m, candidates)
	if !known {
		return finding{"phases", "note", "which device is best for prompts and which for tokens is measured when a model is loaded"}
	}
	return finding{"phases", "ok", where}
}

// measured tells where the phases of the model run by the speeds that were kept; known is
// false where some were not.
func (s *settings) measured(ctx context.Context, m *gpu.Machine, candidates []probe.Device) (where string, known bool) {
	f, ok := s.named(ctx)
	if found := s.discover(ctx); !ok && len(found) > 0 {
		f, ok = found[0], true
	}
	processor, err := m.Open(ctx, gpu.Choice{Backend: "cpu"})
	if !ok || err != nil {
		return "", false
	}
	key, err := s.rateKey(f, processor)
	if err != nil {
		return "", false
	}
	cpu, ok := m.Rates(gpu.Processor(processor), key)
	speeds := make([]probe.Rates, len(candidates))
	for i, d := range candidates {
		r, there := m.Rates(d, key)
		speeds[i], ok = r, ok && there
	}
	if !ok {
		return "", false
	}
	at := func(i int) (string, probe.Rates) {
		if i < 0 {
			return "the processor", cpu
		}
		return candidates[i].Name + " through " + string(candidates[i].API), speeds[i]
	}
	best := probe.Choose(cpu, speeds, func(probe.Places) bool { return s.allowsPhases(f) })
	prompt, read := at(best.Prompt)
	decode, write := at(best.Decode)
	return fmt.Sprintf("%s: prompts on %s (%.0f tokens/s), tokens on %s (%.1f tokens/s), as measured", f.Name, prompt, read.Prompt, decode, write.Decode), true
}

// wordsOf is a choice as somebody wrote it.
func wordsOf(c gpu.Choice) string {
	switch {
	case c.Device == "":
		return c.Backend
	case c.Backend == "auto" || c.Backend == "":
		return c.Device
	}
	return c.Backend + " (" + c.Device + ")"
}

// examineAddress tells whether the address can be listened on now.
func (s *settings) examineAddress() finding {
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return finding{"address", "note", fmt.Sprintf("%s: %s (a server that runs already?)", s.Listen, plain(err))}
	}
	l.Close()
	return finding{"address", "ok", s.Listen + " is free"}
}

func (s *settings) examineMemory() finding {
	n := engine.AvailableMemory()
	if n == 0 {
		return finding{"memory", "note", "this system does not tell how much memory is free"}
	}
	return finding{"memory", "ok", bytesText(n) + " free"}
}

func (s *settings) examineModels(ctx context.Context) finding {
	if err := s.checkNamed(ctx); err != nil {
		return finding{"models", "bad", err.Error()}
	}
	var names []string
	for _, f := range s.discover(ctx) {
		if f.Available {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return finding{"models", "note", "none found; put a .gguf file into " + s.modelsDir()}
	}
	return finding{"models", "ok", fmt.Sprintf("%d found (`ganglion list`), first %s", len(names), names[0])}
}

func (s *settings) examineLog() finding {
	if !s.Log {
		return finding{"log", "note", "no requests are logged (--log=false)"}
	}
	if _, err := os.Stat(s.logPath()); errors.Is(err, fs.ErrNotExist) {
		return finding{"log", "ok", "not begun yet: " + s.logPath()}
	}
	log, err := s.readLog(s.e.logger()) // its warnings are part of the answer
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
func examineFolder(name, dir string) finding {
	at := dir
	for {
		st, err := os.Stat(at)
		if err == nil && !st.IsDir() {
			return finding{name, "bad", at + " is not a folder"}
		}
		if err == nil {
			break
		}
		up := filepath.Dir(at)
		if up == at {
			return finding{name, "bad", dir + ": " + err.Error()}
		}
		at = up
	}
	f, err := os.CreateTemp(at, ".ganglion-*")
	if err != nil {
		return finding{name, "bad", err.Error()}
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return finding{name, "bad", err.Error()}
	}
	return finding{name, "ok", dir}
}
