package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/appliance/media/film"
	"ganglion/gpu"
	"ganglion/gpu/device"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/probe"
	"ganglion/plugins/host"
	"ganglion/web/api"
)

// gpuDir is where results of probes and compiled kernels are kept.
func (s *settings) gpuDir() string { return filepath.Join(s.paths.Cache, "gpu") }

// machine is the devices that the settings let a verb use. The caller closes it.
func (s *settings) machine() *gpu.Machine { return s.machineWith(nil) }

// machineWith wraps each device that is opened.
func (s *settings) machineWith(wrap func(device.Device) device.Device) *gpu.Machine {
	o := gpu.Options{CacheDir: s.gpuDir(), Version: version, Note: s.e.note, Wrap: wrap, Variants: probe.Variants(s.GPUVariants)}
	if s.e.executable != "" {
		o.Child = func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, s.e.executable, append([]string{"internal", "probe", "--cache", s.gpuDir(), "--"}, args...)...)
			cmd.Args[0] = "ganglion"
			return cmd
		}
	}
	return gpu.NewMachine(o)
}

// newInternal is what the program asks of itself in a child process. It is no part of the
// command line's contract.
func newInternal(e *env) *cobra.Command {
	internal := &cobra.Command{Use: "internal", Hidden: true, Args: noArgs("")}
	var cache string
	c := &cobra.Command{
		Use: "probe", Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return gpu.Probe(e.stdout, cache, args) },
	}
	c.Flags().StringVar(&cache, "cache", "", "")
	internal.AddCommand(c, &cobra.Command{
		Use: "plugin-compile", Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return host.Child(args) },
	}, &cobra.Command{
		Use: "film", Hidden: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return film.Child(args, e.stdin, e.stdout, e.stderr) },
	})
	return internal
}

// choice is what the settings want to compute on.
func (s *settings) choice() gpu.Choice {
	return gpu.Choice{Backend: s.Backend, Device: s.Device, Memory: s.DeviceMemory, Exact: s.Numerics == "exact"}
}

// promptChoice is what the settings want to read prompts on; named is false where they
// leave it to what the model runs on.
func (s *settings) promptChoice() (c gpu.Choice, named bool) {
	c = s.choice()
	c.Backend, c.Device = s.PromptBackend, s.PromptDevice
	automatic := c.Backend == "auto" || c.Backend == ""
	return c, c.Backend != "same" && (!automatic || c.Device != "")
}

// openBackend opens what a model is to run on: what the settings name, or with "auto" the
// fastest that is there, by phases where that is faster still.
func (s *settings) openBackend(ctx context.Context, m *gpu.Machine, f appliance.Found) (*gpu.Opened, error) {
	decode, err := s.openDecode(ctx, m, f)
	if err != nil {
		return nil, err
	}
	c, named := s.promptChoice()
	if !named {
		return decode, nil
	}
	prompt, err := m.Open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("for prompts: %w", err)
	}
	return m.Phases(prompt, decode), nil
}

// openDecode opens what tokens are to be written on, and prompts to be read where nothing
// else is named.
func (s *settings) openDecode(ctx context.Context, m *gpu.Machine, f appliance.Found) (*gpu.Opened, error) {
	c := s.choice()
	if (c.Backend != "auto" && c.Backend != "") || c.Device != "" {
		return m.Open(ctx, c)
	}
	candidates := m.Candidates(ctx, c)
	processor, err := m.Open(ctx, c)
	if err != nil || len(candidates) == 0 {
		return processor, err
	}
	key, err := s.rateKey(f, processor)
	if err != nil {
		return processor, nil // opening the model says what is wrong with it
	}
	speed, err := s.rates(ctx, m, f, processor, gpu.Processor(processor), key)
	if err != nil {
		return processor, nil // so does loading it
	}
	opened := make([]*gpu.Opened, len(candidates))
	speeds := make([]probe.Rates, len(candidates))
	for i, d := range candidates {
		if opened[i], err = m.OpenDevice(d, c); err == nil {
			if speeds[i], err = s.rates(ctx, m, f, opened[i], d, key); err != nil {
				opened[i].Failed(err)
			}
		}
		if err != nil {
			s.e.note("%s through %s is not used: %v", d.Name, d.API, err)
		}
	}
	at := func(i int) *gpu.Opened {
		if i < 0 {
			return processor
		}
		return opened[i]
	}
	best := probe.Choose(speed, speeds, func(probe.Places) bool { return s.allowsPhases(f) })
	for i, o := range opened {
		if o == nil || i == best.Prompt || i == best.Decode {
			continue
		}
		if err := o.Release(); err != nil {
			s.e.note("%s through %s: %v", candidates[i].Name, candidates[i].API, err)
		}
	}
	return m.Phases(at(best.Prompt), at(best.Decode)), nil
}

// allowsPhases tells whether the settings leave room for a device for each phase, and the
// machine has the memory for a model twice.
func (s *settings) allowsPhases(f appliance.Found) bool {
	if s.PromptBackend != "auto" || s.PromptDevice != "" {
		return false
	}
	file, err := s.openFile(f)
	if err != nil {
		return false
	}
	defer file.Close()
	p, o, err := engine.PlanOf(file, s.engine(nil))
	if err != nil {
		return false
	}
	free := engine.AvailableMemory()
	return free == 0 || engine.NewForecast(p, o).Times(2).Total() <= free
}

// rateKey names a model in the mode of a backend.
func (s *settings) rateKey(f appliance.Found, b ops.Backend) (string, error) {
	file, err := s.openFile(f)
	if err != nil {
		return "", err
	}
	return probe.RateKey(file.Hash(), s.engine(b).Numerics, probe.Variants(s.GPUVariants)), file.Close()
}

// rates are the speeds of a model on a device: those of an earlier start, or measured now.
func (s *settings) rates(ctx context.Context, m *gpu.Machine, f appliance.Found, b ops.Backend, d probe.Device, key string) (probe.Rates, error) {
	if r, ok := m.Rates(d, key); ok {
		return r, nil
	}
	s.e.note("measuring %s on %s", f.Name, d.Name)
	c := s.engine(b)
	c.Path, c.Slots, c.Context, c.CacheTokens, c.Adapters, c.Recover = f.Path, 1, 256, -1, nil, nil
	var err error
	if c.Offset, c.Size, err = s.place(f); err != nil {
		return probe.Rates{}, err
	}
	e, err := engine.Open(ctx, c)
	if err != nil {
		return probe.Rates{}, err
	}
	speed, err := e.Measure(128, 16)
	if err = errors.Join(err, e.Close()); err != nil {
		return probe.Rates{}, err
	}
	r := probe.Rates{Prompt: speed.Prompt, Decode: speed.Decode, Carry: speed.Carry}
	m.SetRates(d, key, r)
	return r, nil
}

// deviceList is the devices of a report as the API shows them; inUse is the model's
// device, or nil.
func deviceList(r probe.Report, inUse *engine.Info) []api.Device {
	out := []api.Device{}
	for _, d := range r.Devices {
		a := api.Device{Name: d.Name, Backend: string(d.API), State: string(d.State), Note: deviceNote(d)}
		if d.State == probe.Untested {
			a.State = "software"
		}
		if inUse != nil && d.State == probe.Available && slices.ContainsFunc(inUse.Parts, func(p ops.Part) bool {
			return p.Backend == string(d.API) && p.Device == deviceLabel(d)
		}) {
			a.State = "in use"
		}
		out = append(out, a)
	}
	for _, f := range r.Faults {
		out = append(out, api.Device{Name: "a driver that fails", Backend: "gpu", State: "unavailable", Note: f})
	}
	return out
}

// deviceLabel is a device's name as a backend's Caps tell it.
func deviceLabel(d probe.Device) string { return fmt.Sprintf("%s (%s)", d.Name, d.Driver) }

// deviceNote says what there is to know of a device.
func deviceNote(d probe.Device) string {
	switch {
	case d.State == probe.Quarantined && d.Again():
		return d.Reason + "; the next start tests it again"
	case d.State == probe.Quarantined:
		return d.Reason
	case d.State == probe.Untested:
		return "a software renderer, used only when named by --device or --backend"
	}
	note := fmt.Sprintf("%d known answers are right", d.Answers)
	if !d.Exact() {
		note = "exact mode is refused: " + d.Inexact
	}
	if n := len(d.Missing); n > 0 {
		note += fmt.Sprintf("; %d questions find no kernel, first %s (%s)", n, d.Missing[0], d.Lacks)
	}
	for _, t := range d.Trials {
		note += "; " + trialNote(t)
	}
	if d.Losses > 0 {
		note += fmt.Sprintf("; lost %d times, last %s", d.Losses, d.Lost)
	}
	return note
}

// trialNote says what came of the kernels that make use of an ability.
func trialNote(t probe.Trial) string {
	if t.Fault != "" {
		return fmt.Sprintf("%s is not used: %s", t.Needs, t.Fault)
	}
	faster := 0
	best := probe.Timed{MS: 1}
	for _, k := range t.Kernels {
		if k.Faster() {
			faster++
		}
		if k.BaseMS*best.MS > best.BaseMS*k.MS {
			best = k
		}
	}
	note := fmt.Sprintf("%d of %d kernels are faster with %s", faster, len(t.Kernels), t.Needs)
	if faster > 0 {
		note += fmt.Sprintf(", %s %.2f times", best.Kernel, best.BaseMS/best.MS)
	}
	return note
}

// noteDivided says what of a model lies where, when it does not lie on one device.
func (s *settings) noteDivided(info engine.Info) {
	if len(info.Parts) < 2 {
		return
	}
	for _, p := range info.Parts {
		s.e.note("on %s (%s): %s%s, %s", p.Backend, p.Device, forPhase(p.Phase), p.Holds, bytesText(p.Memory.Weights+p.Memory.KV+p.Memory.Scratch))
	}
}

// forPhase says what a part is for, where it is not for all.
func forPhase(phase string) string {
	switch phase {
	case ops.PhasePrompt:
		return "for prompts "
	case ops.PhaseDecode:
		return "for tokens "
	}
	return ""
}

// noteMoved says that a model does not run on what was chosen for it.
func (s *settings) noteMoved(info engine.Info) {
	if info.Moved != "" {
		s.e.note("%s", info.Moved)
	}
}
