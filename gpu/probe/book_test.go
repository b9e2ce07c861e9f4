package probe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/gpu/cpu"
	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// The test binary is its own child: childEnv makes it one.
const childEnv = "GANGLION_PROBE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := Child(os.Stdout, doubles(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// double is a device that does what its name says when it is opened or used.
type double struct {
	device.Device
	info device.Info
}

func (d double) Close() error          { return nil }
func (d double) Info() device.Info     { return d.info }
func (d double) Limits() device.Limits { return device.Limits{StorageBuffers: 8} }
func (d double) Caps() device.Caps {
	able := d.info.ID == "able"
	return device.Caps{Precise: true, Subgroup: map[bool]int{true: 16}[able], Dot4: able}
}

// doubles are drivers of all kinds.
func doubles() []Driver {
	const kinds = "good inexact wrong lost crash exit hang slow garbage flood hog software"
	listing := func(kinds string) func() ([]device.Info, error) {
		return func() (infos []device.Info, err error) {
			for _, k := range strings.Fields(kinds) {
				infos = append(infos, device.Info{API: "test", Name: "Double of " + k, ID: k, Driver: "1.0", Software: k == "software"})
			}
			return infos, nil
		}
	}
	good := Driver{Name: "doubles", List: listing(kinds), Bytes: true,
		Open: func(id string) (device.Device, error) {
			switch id {
			case "crash":
				go func() { panic("a fault in the driver") }()
				time.Sleep(time.Minute)
			case "exit":
				os.Exit(0)
			case "hang":
				time.Sleep(time.Minute)
			case "slow": // at work: a compiler, say
				for from := time.Now(); time.Since(from) < 4*time.Second; {
				}
			case "garbage":
				fmt.Println("Warning: this driver is chatty")
			case "hog": // more than a child may have
				hoard = make([]byte, 6<<30)
			case "flood":
				fmt.Println(strings.Repeat("x", 3<<20))
			}
			return double{info: device.Info{API: "test", Name: "Double of " + id, ID: id, Driver: "1.0"}}, nil
		},
		Backend: func(d device.Device, _ Use) ops.Backend {
			switch d.Info().ID {
			case "inexact":
				return spoiled(processor(), lastBit)
			case "wrong":
				return spoiled(processor(), func(row []float32) { clear(row) })
			case "lost":
				return failing{processor(), ops.ErrDeviceLost}
			}
			return processor()
		}}
	able := good
	able.Name, able.List = "able", listing("plain able")
	able.Variants = func() []*device.Shader { // asked in a trial alone
		if len(os.Args) > 4 && os.Args[4] == string(device.Dot4) {
			panic("a fault in a compiler")
		}
		return nil
	}
	return []Driver{good, able,
		{Name: "none", List: func() ([]device.Info, error) { return nil, fmt.Errorf("no library: %w", device.ErrUnsupported) }},
		{Name: "broken", List: func() ([]device.Info, error) { panic("a loader that crashes") }},
	}
}

var hoard []byte

// processor computes for the doubles: its kernels are not slowed down by the race detector.
func processor() ops.Backend {
	b, err := cpu.New(cpu.Options{})
	if err != nil {
		panic(err)
	}
	return b
}

func prober() *Prober {
	return &Prober{Silence: 3 * time.Second, Command: func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), childEnv+"=1")
		return cmd
	}}
}

// set names a set of kernels.
func set(name string) func() string { return func() string { return name } }

func book(dir string) *Book {
	return &Book{Prober: prober(), Drivers: []string{"doubles", "none", "broken"}, Dir: dir, Kernels: set("1"), Now: time.Now}
}

// Whatever a driver does in the child, the parent goes on and knows what happened.
func TestDriversAreJudged(t *testing.T) {
	dir := t.TempDir()
	r := book(dir).Find(context.Background(), false)
	if len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "broken: the driver ended the probe: exit status 2: panic: a loader that crashes") {
		t.Errorf("faults %q, want that of the loader that crashes alone", r.Faults)
	}
	for _, tt := range []struct{ id, state, reason, inexact string }{
		{"good", "available", "", ""},
		{"inexact", "available", "", "log"},
		{"wrong", "quarantined", "mean square", "elementwise"},
		{"lost", "quarantined", "device lost", ""},
		{"crash", "quarantined", "a fault in the driver", ""},
		{"exit", "quarantined", "ended without a word", ""},
		{"hang", "quarantined", "hangs: nothing for ", ""},
		{"slow", map[bool]string{true: "available", false: "quarantined"}[runtime.GOOS == "linux"], map[bool]string{true: "", false: "hangs"}[runtime.GOOS == "linux"], ""},
		{"garbage", "quarantined", "something else than messages", ""},
		{"flood", "quarantined", "something else than messages", ""},
		{"hog", map[bool]string{true: "quarantined", false: "available"}[runtime.GOOS == "linux"], map[bool]string{true: "exit status 2"}[runtime.GOOS == "linux"], ""},
		{"software", "untested", "", ""},
	} {
		d, ok := r.Find("", tt.id)
		if !ok || string(d.State) != tt.state || !strings.Contains(d.Reason, tt.reason) || (d.Reason == "") != (tt.reason == "") {
			t.Errorf("%s: %v %s %q, want %s with %q", tt.id, ok, d.State, d.Reason, tt.state, tt.reason)
		}
		if d.Exact() != (tt.inexact == "") || !strings.Contains(d.Inexact, tt.inexact) {
			t.Errorf("%s: exact mode refused for %q, want %q", tt.id, d.Inexact, tt.inexact)
		}
	}

	// The next start asks for the list, and tests those again whose test came to no end.
	b := book(dir)
	var tested []string
	plain := b.Prober.Command
	b.Prober.Command = func(ctx context.Context, args ...string) *exec.Cmd {
		if args[0] == taskTest {
			tested = append(tested, args[2])
			if args[2] != "software" {
				args = []string{taskTest, args[1], "exit"} // soon
			}
		}
		return plain(ctx, args...)
	}
	again := b.Find(context.Background(), false)
	want := []string{"lost", "crash", "exit", "hang", "garbage", "flood", "hog"}
	if runtime.GOOS != "linux" {
		want = []string{"lost", "crash", "exit", "hang", "slow", "garbage", "flood"}
	}
	if !slices.Equal(tested, want) {
		t.Errorf("tested a second time: %q, want %q", tested, want)
	}
	for i, d := range again.Devices {
		was := r.Devices[i]
		if slices.Contains(want, d.ID) {
			if d.State != Quarantined || d.Ends != 2 || !strings.Contains(d.Reason, "without a word") {
				t.Errorf("%s, tested again: %s (%s) after %d tests without end", d.ID, d.State, d.Reason, d.Ends)
			}
			continue
		}
		if d.State != was.State || d.Reason != was.Reason || d.Inexact != was.Inexact || d.Answers != was.Answers {
			t.Errorf("%s: %+v at the second start, %+v at the first", d.ID, d, was)
		}
	}
	// The renderer is tested when it is asked for.
	soft, _ := again.Find("test", "software")
	if soft = b.Ready(context.Background(), soft); len(tested) != len(want)+1 || soft.State != Available {
		t.Errorf("the renderer that was asked for: %s after %d tests", soft.State, len(tested)-len(want))
	}
}

// onlyGood is a book whose driver has one device, and the number of its tests.
func onlyGood(dir string) (*Book, *int) {
	b := book(dir)
	b.Drivers = []string{"doubles"}
	tested := new(int)
	plain := b.Prober.Command
	b.Prober.Command = func(ctx context.Context, args ...string) *exec.Cmd {
		if args[0] == taskTest {
			*tested++
			args = []string{taskTest, "doubles", "good"}
		}
		return plain(ctx, args...)
	}
	return b, tested
}

// What was kept for another set of kernels, of another driver, or is damaged counts as
// nothing.
func TestStaleAndDamagedFilesAreIgnored(t *testing.T) {
	dir := t.TempDir()
	info := device.Info{API: "test", Name: "Double", ID: "good", Driver: "1.0"}
	b, tested := onlyGood(dir)
	d := b.test(context.Background(), "doubles", info)
	if *tested != 1 || d.State != Available {
		t.Fatalf("%d tests, %s: %s", *tested, d.State, d.Reason)
	}
	if _, ok := b.read("doubles", info); !ok {
		t.Fatal("nothing was kept")
	}
	other := info
	other.Driver = "1.1"
	if _, ok := b.read("doubles", other); ok {
		t.Error("the result of another driver was taken")
	}
	b.Kernels = set("2")
	if _, ok := b.read("doubles", info); ok {
		t.Error("the result of another set of kernels was taken")
	}
	b.Kernels = set("1")
	path := b.path("doubles", info)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{"", "null", "{}", string(whole[:len(whole)/2]), strings.Replace(string(whole), `"available"`, `"perfect"`, 1)} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := b.read("doubles", info); ok {
			t.Errorf("%.40q was taken for a result", damaged)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "devices", ".new-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A device that was lost is not used again before the next start, which tests it first;
// after three losses it waits for a test that somebody asks for.
func TestLostDevices(t *testing.T) {
	dir := t.TempDir()
	info := device.Info{API: "test", Name: "Double", ID: "good", Driver: "1.0"}
	start := func() (*Book, *int, Device) {
		b, tested := onlyGood(dir)
		d, known := b.read("doubles", info)
		if !known {
			d = b.test(context.Background(), "doubles", info)
		}
		d = b.again(context.Background(), "doubles", d)
		b.enter(d)
		return b, tested, d
	}
	for loss := 1; loss <= 4; loss++ {
		b, tested, d := start()
		if want := loss <= 3; (d.State == Available) != want || (*tested == 1) != want {
			t.Errorf("start %d: %s (%s) after %d tests", loss, d.State, d.Reason, *tested)
		}
		b.SetRates(d, "model/fast", Rates{Prompt: float64(loss), Decode: 1})
		b.Lose("good", "test", "fence not signalled")
		if d, _ := b.Known().Find("", "good"); d.State != Quarantined || !strings.Contains(d.Reason, "fence") || d.Rates["model/fast"].Prompt != float64(loss) {
			t.Errorf("after a loss: %+v", d)
		}
	}
	b, _, _ := start()
	if d := b.test(context.Background(), "doubles", info); d.State != Available || d.Losses != 0 {
		t.Errorf("tested by hand: %s with %d losses", d.State, d.Losses)
	}
}

// A test that came to no end is repeated at later starts, for the device may have been busy;
// after three in a row it waits for a test that somebody asks for. One that comes to its end
// meanwhile makes good for all of them, and one that finds a wrong answer is the last.
func TestTestsWithoutEndAreRepeated(t *testing.T) {
	for _, tt := range []struct {
		name   string
		starts []string // what the device is at each of them; "": it is not tested
		used   bool     // and lost in use before the second
		state  State
	}{
		{"always", []string{"exit", "exit", "exit", "", ""}, false, Quarantined},
		{"twice", []string{"exit", "exit", "good", ""}, false, Available},
		{"wrong in the end", []string{"exit", "wrong", "", ""}, true, Quarantined},
		{"lost in the test", []string{"lost", "lost", "lost", "", ""}, true, Quarantined},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			info := device.Info{API: "test", Name: "Double", ID: "good", Driver: "1.0"}
			begin := func(kind string) (*Book, *string) {
				b, asked := book(dir), new(string)
				plain := b.Prober.Command
				b.Prober.Command = func(ctx context.Context, _ ...string) *exec.Cmd {
					*asked = kind
					return plain(ctx, taskTest, "doubles", kind)
				}
				return b, asked
			}
			var d Device
			for i, kind := range tt.starts {
				b, asked := begin(orString(kind, "good"))
				known := false
				if d, known = b.read("doubles", info); known {
					d = b.again(context.Background(), "doubles", d)
				} else {
					d = b.test(context.Background(), "doubles", info)
				}
				if i == 0 && tt.used {
					b.enter(d)
					b.Lose(d.ID, d.API, "fence not signalled")
				}
				if *asked != kind {
					t.Errorf("start %d: tested as %q, want %q: %s, %s, %d ends", i+1, *asked, kind, d.State, d.Reason, d.Ends)
				}
			}
			if d.State != tt.state || d.Again() {
				t.Errorf("in the end %s (%s), again %v", d.State, d.Reason, d.Again())
			}
			b, _ := begin("exit")
			if d = b.test(context.Background(), "doubles", info); d.Ends != 1 || !d.Again() {
				t.Errorf("after a test by hand: %d ends", d.Ends)
			}
		})
	}
}

func orString(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func TestBestDevice(t *testing.T) {
	cpu := Rates{Prompt: 100, Decode: 20}
	for _, tt := range []struct {
		name    string
		devices []Rates
		want    int
	}{
		{"none", nil, -1},
		{"a little faster is not worth it", []Rates{{Prompt: 105, Decode: 21}}, -1},
		{"prompts alone", []Rates{{Prompt: 1000, Decode: 5}}, -1},
		{"clearly faster", []Rates{{Prompt: 80, Decode: 60}, {Prompt: 500, Decode: 70}}, 1},
		{"not measured", []Rates{{}}, -1},
	} {
		if got := Best(cpu, tt.devices); got != tt.want {
			t.Errorf("%s: device %d, want %d", tt.name, got, tt.want)
		}
	}
}

// Each phase gets a device of its own only where that covers carrying and the memory.
func TestChooseByPhase(t *testing.T) {
	cpu := Rates{Prompt: 100, Decode: 20, Carry: 1e5}
	reads := Rates{Prompt: 1000, Decode: 5, Carry: 1e5} // prompts alone
	all := Rates{Prompt: 1000, Decode: 100, Carry: 1e5}
	slow, none := reads, reads
	slow.Carry, none.Carry = 100, 0
	for _, tt := range []struct {
		name    string
		devices []Rates
		allowed bool
		want    Places
	}{
		{"none", nil, true, Places{-1, -1}},
		{"prompts there, tokens here", []Rates{reads}, true, Places{0, -1}},
		{"too little memory for two", []Rates{reads}, false, Places{-1, -1}},
		{"carrying takes as long", []Rates{slow}, true, Places{-1, -1}},
		{"nothing can be carried", []Rates{none}, true, Places{-1, -1}},
		{"one does both well", []Rates{reads, all}, true, Places{1, 1}},
		{"two devices", []Rates{{Prompt: 5000, Decode: 5, Carry: 1e5}, {Prompt: 200, Decode: 100, Carry: 1e5}}, true, Places{0, 1}},
		{"a little faster is not worth it", []Rates{{Prompt: 120, Decode: 5, Carry: 1e5}}, true, Places{-1, -1}},
		{"not measured", []Rates{{}}, true, Places{-1, -1}},
	} {
		if got := Choose(cpu, tt.devices, func(Places) bool { return tt.allowed }); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
