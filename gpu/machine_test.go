package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/probe"
)

// The test binary is the child of the machines that are tested.
const childEnv = "GANGLION_GPU_TEST_CHILD"

// openEnv says what the child does instead.
const openEnv = "GANGLION_GPU_TEST_OPEN"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		switch os.Getenv(openEnv) {
		case "crash":
			panic("a driver that lost its device")
		case "hang":
			time.Sleep(time.Hour)
		}
		if err := probe.Child(os.Stdout, doubles(nil), os.Args[1:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if probed != "" {
		os.RemoveAll(probed)
	}
	os.Exit(code)
}

// card is a device whose kernels are gpu/ops/ref.
type card struct {
	device.Device
	info device.Info
}

func (c card) Info() device.Info     { return c.info }
func (c card) Limits() device.Limits { return device.Limits{} }
func (c card) Caps() device.Caps     { return device.Caps{} }
func (c card) Health() error         { return nil }
func (c card) Close() error          { return nil }

func (c card) NewBuffer(size int64, _ device.Usage) (device.Buffer, error) {
	return cardMemory{data: make([]byte, size)}, nil
}

// cardMemory is a buffer in memory.
type cardMemory struct {
	device.Buffer
	data []byte
}

func (m cardMemory) Write(at int64, data []byte) error { copy(m.data[at:], data); return nil }
func (m cardMemory) Read(at int64, data []byte) error  { copy(data, m.data[at:]); return nil }

// named is a backend with the name of a device.
type named struct {
	ops.Backend
	info device.Info
}

func (n named) Name() string   { return string(n.info.API) }
func (n named) Caps() ops.Caps { return ops.Caps{Device: n.info.Name, Exact: true} }

// doubles are a driver with a card, one that answers wrongly, and a renderer; opened
// counts how often each was opened.
func doubles(opened map[string]int) []probe.Driver {
	infos := []device.Info{
		{API: device.Vulkan, Name: "Soft Renderer", ID: "soft", Software: true},
		{API: device.Vulkan, Name: "Good Card", ID: "good"},
		{API: device.Vulkan, Name: "Bad Card", ID: "bad"},
	}
	return []probe.Driver{{Name: "vulkan",
		List: func() ([]device.Info, error) { return infos, nil },
		Open: func(id string) (device.Device, error) {
			for _, i := range infos {
				if i.ID == id {
					if opened != nil {
						opened[id]++
					}
					return card{info: i}, nil
				}
			}
			return nil, device.ErrUnsupported
		},
		Backend: func(d device.Device, _ probe.Use) ops.Backend {
			if d.Info().ID == "bad" {
				return lostOne{ref.New()}
			}
			return named{ref.New(), d.Info()}
		}}}
}

// lostOne loads nothing.
type lostOne struct{ ops.Backend }

func (lostOne) Load(context.Context, *ops.Plan, ops.Options, func(done, total int64)) (ops.Runtime, error) {
	return nil, fmt.Errorf("load: %w", ops.ErrDeviceLost)
}

// probed is the folder of a machine whose devices were tested.
var probed string

// machine has devices that were tested before, for a test takes seconds.
func machine(t *testing.T, opened map[string]int) *Machine {
	t.Helper()
	m := unprobed(t, opened)
	if probed == "" {
		dir, err := os.MkdirTemp("", "ganglion-gpu-test-*")
		if err != nil {
			t.Fatal(err)
		}
		first := newMachine(Options{CacheDir: dir, Child: m.o.Child}, doubles(nil))
		soft, _ := first.Find(context.Background(), false).Find("", "soft")
		first.book.Ready(context.Background(), soft)
		probed = dir
	}
	if err := os.CopyFS(m.o.CacheDir, os.DirFS(probed)); err != nil {
		t.Fatal(err)
	}
	return m
}

func unprobed(t *testing.T, opened map[string]int) *Machine {
	t.Helper()
	m := newMachine(Options{CacheDir: t.TempDir(), Note: t.Logf, Child: func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), childEnv+"=1")
		return cmd
	}}, doubles(opened))
	m.patience = patience{open: time.Minute, again: time.Minute} // a busy machine starts children late
	t.Cleanup(func() { m.Close() })
	return m
}

func TestOpenByName(t *testing.T) {
	m := machine(t, nil)
	for _, tt := range []struct {
		backend, device string
		want            string // of Name and Caps, or the error
		ok              bool
	}{
		{"cpu", "", "cpu", true},
		{"auto", "", "cpu", true}, // what else there is measures who asks for candidates
		{"ref", "", "ref", true},
		{"vulkan", "", "vulkan Good Card", true}, // hardware before software
		{"vulkan", "soft", "vulkan Soft Renderer", true},
		{"auto", "GOOD", "vulkan Good Card", true},
		{"auto", "bad", "quarantined", false},
		{"gl", "", "there is no such device", false},
		{"vulkan", "Mali", `vulkan "Mali": there is no such device`, false},
		{"cpu", "good", "no devices to choose from", false},
		{"cuda", "", "known are auto, cpu, vulkan, gl, gles, ref", false},
	} {
		o, err := m.Open(context.Background(), Choice{Backend: tt.backend, Device: tt.device})
		if (err == nil) != tt.ok {
			t.Errorf("%s %q: error %v", tt.backend, tt.device, err)
			continue
		}
		got := fmt.Sprint(err)
		if err == nil {
			got = o.Name() + " " + o.Caps().Device
		} else if !errors.Is(err, ErrBackend) {
			t.Errorf("%s %q: error %v does not wrap ErrBackend", tt.backend, tt.device, err)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s %q: %q, want %q", tt.backend, tt.device, got, tt.want)
		}
	}
}

// A lost device is opened anew once; lost again, or hanging, it is quarantined and the
// processor goes on. Memory that runs out is no fault of the device.
func TestRecoverChoosesWhatGoesOn(t *testing.T) {
	hung := fmt.Errorf("%w: %w", ops.ErrDeviceLost, device.ErrTimeout)
	for _, tt := range []struct {
		name     string
		failures []error
		want     []string
		state    probe.State
		opened   int
	}{
		{"lost twice", []error{ops.ErrDeviceLost, ops.ErrDeviceLost}, []string{"vulkan", "cpu"}, probe.Quarantined, 2},
		{"hangs", []error{hung}, []string{"cpu"}, probe.Quarantined, 1},
		{"out of memory", []error{ops.ErrOutOfMemory}, []string{"cpu"}, probe.Available, 1},
		{"a kernel is missing", []error{ops.ErrUnsupported}, []string{"cpu"}, probe.Available, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opened := map[string]int{}
			m := machine(t, opened)
			o, err := m.Open(context.Background(), Choice{Backend: "vulkan", Device: "good"})
			if err != nil {
				t.Fatal(err)
			}
			for i, failure := range tt.failures {
				b, err := o.Recover(failure, i+1)
				if err != nil || b == nil || b.Name() != tt.want[i] {
					t.Fatalf("failure %d: backend %v, error %v, want %s", i+1, b, err, tt.want[i])
				}
			}
			d, _ := m.Known().Find(device.Vulkan, "good")
			if d.State != tt.state || opened["good"] != tt.opened {
				t.Errorf("%s (%s), opened %d times, want %s and %d", d.State, d.Reason, opened["good"], tt.state, tt.opened)
			}
			if _, err := m.Open(context.Background(), Choice{Backend: "vulkan", Device: "good"}); (err == nil) != (tt.state == probe.Available) {
				t.Errorf("opened again: error %v", err)
			}
		})
	}
	m := machine(t, nil)
	o, err := m.Open(context.Background(), Choice{Backend: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := o.Recover(ops.ErrOutOfMemory, 1); b != nil || err != nil {
		t.Errorf("after the processor comes %v, %v", b, err)
	}
}

// Exact mode is refused by name where the driver breaks its rules.
func TestInexactDeviceRefusesExactMode(t *testing.T) {
	m := machine(t, nil)
	d := probe.Device{Info: device.Info{API: device.Vulkan, ID: "good", Name: "Good Card"}, Driven: "vulkan", State: probe.Available, Inexact: "matmul/Q4_K: logit 3"}
	if _, err := m.OpenDevice(d, Choice{Exact: true}); err == nil || !strings.Contains(err.Error(), "exact mode is refused on Good Card") || !strings.Contains(err.Error(), "Q4_K") {
		t.Errorf("error %v", err)
	}
	if _, err := m.OpenDevice(d, Choice{}); err != nil {
		t.Errorf("fast mode: %v", err)
	}
}

// Speeds are kept over starts, the processor's too.
func TestRatesAreKept(t *testing.T) {
	m := machine(t, nil)
	o, err := m.Open(context.Background(), Choice{})
	if err != nil {
		t.Fatal(err)
	}
	key := probe.RateKey("hash", ops.Fast, probe.AutoVariants)
	if _, ok := m.Rates(Processor(o), key); ok {
		t.Error("speeds that nobody measured")
	}
	m.SetRates(Processor(o), key, probe.Rates{Prompt: 3, Decode: 2})
	again := newMachine(m.o, doubles(nil))
	defer again.Close()
	if r, ok := again.Rates(Processor(o), key); !ok || r.Prompt != 3 || r.Decode != 2 {
		t.Errorf("at the next start: %+v, %v", r, ok)
	}
}

func TestClosedMachineOpensNothing(t *testing.T) {
	m := machine(t, nil)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(context.Background(), Choice{}); !errors.Is(err, ops.ErrClosed) {
		t.Errorf("error %v", err)
	}
	from := time.Now()
	if err := m.Close(); err != nil || time.Since(from) > time.Second {
		t.Errorf("closed twice: %v", err)
	}
}

// A device whose memory is bounded comes with the processor for the rest, after a loss
// too; what a discrete device has is its bound where nobody names one.
func TestMemoryBoundsWhatADeviceTakes(t *testing.T) {
	m := machine(t, map[string]int{})
	o, err := m.Open(context.Background(), Choice{Backend: "vulkan", Device: "good", Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if o.Name() != "vulkan+cpu" {
		t.Errorf("opened %s", o.Name())
	}
	if b, err := o.Recover(ops.ErrDeviceLost, 1); err != nil || b.Name() != "vulkan+cpu" {
		t.Errorf("after a loss: %v, %v", b, err)
	}
	for _, tt := range []struct {
		info   device.Info
		choice Choice
		want   int64
	}{
		{device.Info{Discrete: true, Memory: 1000}, Choice{}, 900},
		{device.Info{Discrete: true, Memory: 1000}, Choice{Memory: 5}, 5},
		{device.Info{Memory: 1000}, Choice{}, 0},
		{device.Info{Memory: 1000}, Choice{Memory: 5}, 5},
		{device.Info{Discrete: true}, Choice{}, 0},
	} {
		if got := budgetOf(probe.Device{Info: tt.info}, tt.choice); got != tt.want {
			t.Errorf("%+v, %+v: %d bytes, want %d", tt.info, tt.choice, got, tt.want)
		}
	}
}
