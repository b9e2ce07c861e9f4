package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
	"ganglion/gpu"
	"ganglion/gpu/device"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/probe"
)

// The cards of the tests of the automatic choice, by ID. Quick computes nothing and takes no
// time, so that it is faster than any processor; loose breaks the rules of exact mode; slow
// takes long for everything; wrong is quarantined; soft is a renderer.
var cards = []device.Info{
	{API: device.Vulkan, Name: "Quick", ID: "quick"},
	{API: device.Vulkan, Name: "Loose", ID: "loose"},
	{API: device.Vulkan, Name: "Slow", ID: "slow"},
	{API: device.Vulkan, Name: "Wrong", ID: "wrong"},
	{API: device.Vulkan, Name: "Soft", ID: "soft", Software: true},
}

// nothingCard is an opened card.
type nothingCard struct {
	device.Device
	info device.Info
}

func (c nothingCard) Info() device.Info     { return c.info }
func (c nothingCard) Limits() device.Limits { return device.Limits{} }
func (c nothingCard) Caps() device.Caps     { return device.Caps{} }
func (c nothingCard) Close() error          { return nil }

// idle is a backend and all that belongs to it; it computes nothing, and sleeps for a run.
type idle struct {
	info   device.Info
	sleeps time.Duration
}

func (b idle) Name() string   { return string(b.info.API) }
func (b idle) Caps() ops.Caps { return ops.Caps{Device: b.info.Name, Exact: true} }
func (b idle) Close() error   { return nil }
func (b idle) Load(context.Context, *ops.Plan, ops.Options, func(done, total int64)) (ops.Runtime, error) {
	return b, nil
}
func (b idle) Compile(ops.Shape) (ops.Program, error)             { return b, nil }
func (b idle) CopyPage(group, dst, src int) error                 { return nil }
func (b idle) SaveState(int, []float32) ([]float32, error)        { return nil, nil }
func (b idle) LoadState(int, []float32) error                     { return nil }
func (b idle) Memory() ops.Memory                                 { return ops.Memory{} }
func (b idle) ReadPage(group, page int, _ []byte) ([]byte, error) { return nil, nil }
func (b idle) WritePage(group, page int, data []byte) error       { return nil }
func (b idle) Run(batch *ops.Batch, r *ops.Result) error {
	time.Sleep(b.sleeps)
	r.Heads = make([]ops.Head, len(batch.Outs))
	return nil
}

// choosing is a machine with some of the cards, and settings with the processor's speed
// left to be measured. soft was used by its name before, so it was tested.
func choosing(t *testing.T, among ...string) (*settings, *gpu.Machine, appliance.Found, *bytes.Buffer) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell script")
	}
	var infos []device.Info
	list := ""
	for _, c := range cards {
		if slices.Contains(among, c.ID) {
			infos = append(infos, c)
			list += fmt.Sprintf(`echo '{"device":{"API":"vulkan","Name":%q,"ID":%q,"Software":%v}}'; `, c.Name, c.ID, c.Software)
		}
	}
	child := filepath.Join(t.TempDir(), "child")
	script := "#!/bin/sh\ncase \"$*\" in\n*list*) " + list + ";;\n" +
		`*wrong*) echo '{"answer":{"name":"norms","mode":"fast","fault":"a tile is wrong"}}' ;;
*loose*) echo '{"answer":{"name":"norms","mode":"fast"}}'; echo '{"answer":{"name":"norms","mode":"exact","fault":"row 3"}}' ;;
*) echo '{"answer":{"name":"norms","mode":"fast"}}' ;;
esac
echo '{"done":true}'
`
	if err := os.WriteFile(child, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := gpu.Options{CacheDir: dir, Child: func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, child, args...)
	}, Drivers: []probe.Driver{{Name: "vulkan",
		List: func() ([]device.Info, error) { return infos, nil },
		Open: func(id string) (device.Device, error) {
			return nothingCard{info: infos[slices.IndexFunc(infos, func(i device.Info) bool { return i.ID == id })]}, nil
		},
		Backend: func(d device.Device, _ probe.Use) ops.Backend {
			b := idle{info: d.Info()}
			if b.info.ID == "slow" {
				b.sleeps = 60 * time.Millisecond // far more than the processor takes, though it is shared
			}
			return b
		}}}}
	if slices.Contains(among, "soft") {
		m := gpu.NewMachine(o)
		if _, err := m.Open(context.Background(), gpu.Choice{Backend: "vulkan", Device: "soft"}); err != nil {
			t.Fatal(err)
		}
		m.Close()
	}
	m := gpu.NewMachine(o)
	t.Cleanup(func() { m.Close() })
	path, err := filepath.Abs(tinyModel)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	s := &settings{e: &env{stderr: &errs}, Settings: appliance.Settings{Backend: "auto", PromptBackend: "auto", Numerics: "fast", KV: "f16", Context: 256, Slots: 1, Threads: 1}}
	return s, m, appliance.Found{Name: "tiny", Path: path, Source: "flag"}, &errs
}

func names(devices []probe.Device) (out []string) {
	for _, d := range devices {
		out = append(out, d.ID)
	}
	return out
}

// Without a name only hardware that passed its tests is chosen from: no renderer, though it
// was used before, and in exact mode nothing that breaks its rules.
func TestCandidates(t *testing.T) {
	_, m, _, _ := choosing(t, "quick", "loose", "wrong", "soft")
	for _, tt := range []struct {
		choice gpu.Choice
		want   []string
	}{{gpu.Choice{}, []string{"quick", "loose"}}, {gpu.Choice{Exact: true}, []string{"quick"}}} {
		if got := names(m.Candidates(context.Background(), tt.choice)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.choice, got, tt.want)
		}
	}
	// The partner: all of them are there, and soft and loose are usable where they are named.
	states := map[string]probe.State{}
	for _, d := range m.Known().Devices {
		states[d.ID] = d.State
	}
	if states["soft"] != probe.Available || states["loose"] != probe.Available || states["wrong"] != probe.Quarantined || len(states) != 4 {
		t.Errorf("the devices are %v: the test tests nothing", states)
	}
}

// "auto" measures what there is and takes the fastest, once: what was measured is kept.
func TestAutoChoosesTheFastest(t *testing.T) {
	for _, tt := range []struct {
		name, numerics, backend string
		among                   []string
		want                    string
		measured                []string
	}{
		{"a fast card", "fast", "auto", []string{"quick", "slow"}, "vulkan Quick", []string{"Quick", "Slow"}},
		{"a slow card", "fast", "auto", []string{"slow", "wrong"}, "cpu ", []string{"Slow"}},
		{"a renderer that is fast", "fast", "auto", []string{"soft"}, "cpu ", nil},
		{"a card without exact mode", "fast", "auto", []string{"loose"}, "vulkan Loose", []string{"Loose"}},
		{"the same in exact mode", "exact", "auto", []string{"loose"}, "cpu ", nil},
		{"the processor by name", "fast", "cpu", []string{"quick"}, "cpu ", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, m, f, notes := choosing(t, tt.among...)
			s.Numerics, s.Backend = tt.numerics, tt.backend
			for range 2 {
				o, err := s.openDecode(context.Background(), m, f)
				if err != nil {
					t.Fatal(err)
				}
				if got := o.Name() + " " + o.Caps().Device; !strings.HasPrefix(got, tt.want) {
					t.Errorf("chose %s, want %s", got, tt.want)
				}
			}
			for _, c := range cards {
				want := 0
				if slices.Contains(tt.measured, c.Name) {
					want = 1
				}
				if got := strings.Count(notes.String(), "measuring tiny on "+c.Name); got != want {
					t.Errorf("%s was measured %d times, want %d:\n%s", c.Name, got, want, notes)
				}
			}
		})
	}
}

// Where prompts are faster on one and tokens on another, each phase gets its own, unless
// the settings do not allow it.
func TestAutoChoosesByPhase(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *settings)
		want   string
	}{
		{"each its own", func(*settings) {}, "vulkan/cpu"},
		{"one for both, by the settings", func(s *settings) { s.PromptBackend = "same" }, "cpu"},
		{"prompts have a name", func(s *settings) { s.PromptDevice = "slow" }, "cpu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, m, f, _ := choosing(t, "slow")
			processor, err := m.Open(context.Background(), gpu.Choice{})
			if err != nil {
				t.Fatal(err)
			}
			key, err := s.rateKey(f, processor)
			if err != nil {
				t.Fatal(err)
			}
			m.SetRates(gpu.Processor(processor), key, probe.Rates{Prompt: 10, Decode: 10, Carry: 1e6})
			m.SetRates(m.Candidates(context.Background(), gpu.Choice{})[0], key, probe.Rates{Prompt: 1000, Decode: 1, Carry: 1e6})
			tt.change(s)
			o, err := s.openDecode(context.Background(), m, f)
			if err != nil {
				t.Fatal(err)
			}
			if o.Name() != tt.want {
				t.Errorf("chose %s, want %s", o.Name(), tt.want)
			}
		})
	}
}

// What Measure tells is what the backend does: a run's time, and whether it can carry.
func TestMeasureTellsTheSpeed(t *testing.T) {
	synctest.Test(t, measuring)
}

// measuring is the test in a time of its own, which passes while the backend sleeps.
func measuring(t *testing.T) {
	path, err := filepath.Abs(tinyModel)
	if err != nil {
		t.Fatal(err)
	}
	measure := func(b ops.Backend) engine.Speed {
		e, err := engine.Open(context.Background(), engine.Config{Backend: b, Path: path, Context: 256, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s, err := e.Measure(128, 4)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const run = 20 * time.Millisecond
	s := measure(idle{info: cards[2], sleeps: run})
	if want := 128 / run.Seconds(); math.Abs(s.Prompt-want) > 1e-6 {
		t.Errorf("%v tokens/s of a prompt, want %v", s.Prompt, want)
	}
	if want := 1 / run.Seconds(); math.Abs(s.Decode-want) > 1e-6 {
		t.Errorf("%v tokens/s, want %v", s.Decode, want)
	}
	if s.Carry <= 0 {
		t.Error("a backend that carries pages has no speed of it")
	}
	if s := measure(homebody{idle{info: cards[0]}}); s.Carry != 0 {
		t.Errorf("%v positions/s are carried by what carries none", s.Carry)
	}
}

// homebody carries nothing.
type homebody struct{ ops.Backend }

func (b homebody) Load(ctx context.Context, p *ops.Plan, o ops.Options, progress func(done, total int64)) (ops.Runtime, error) {
	rt, err := b.Backend.Load(ctx, p, o, progress)
	return struct{ ops.Runtime }{rt}, err
}
