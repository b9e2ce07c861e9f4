package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/sdk"
	"ganglion/plugins/sdk/sdktest"
	"ganglion/plugins/wasm"
)

// said collects what a plugin logs.
type said struct{ b bytes.Buffer }

func (s *said) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&s.b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "text" || a.Key == slog.LevelKey {
			return a
		}
		return slog.Attr{}
	}}))
}

// take returns the lines since the last time: level and text.
func (s *said) take() (lines []string) {
	for line := range strings.Lines(s.b.String()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "level=")
		level, text, _ := strings.Cut(line, " text=")
		if strings.HasPrefix(text, `"`) {
			text = strings.Trim(text, `"`)
		}
		lines = append(lines, level+" "+text)
	}
	s.b.Reset()
	return lines
}

// The SDKs' example, built by the compiler of its language, is loaded and does at a step
// what its formula says: 0.3 times the square of the best one's probability is reached by
// two of three candidates. Its runtime begins on what the host answers, and on nothing else.
func TestEveryLanguageLoads(t *testing.T) {
	for _, lang := range sdktest.Languages() {
		t.Run(lang, func(t *testing.T) {
			file := sdktest.Example(t, lang)
			p := load(t, newRuntime(t, Options{}), file)
			for range 2 { // the second one is from the pool
				o := opening(0)
				o.Config = []byte(`{"a":0.3}`)
				i := open(t, p, o)
				if a := showCandidates(t, i, 2, 1, -2); a != abi.Cands {
					t.Errorf("actions %v", a)
				}
				if n := i.get(abi.OffCandN); n != 2 {
					t.Errorf("%d candidates stay, want 2", n)
				}
				_ = i.Close()
				o.Config = []byte(`{"a":0}`)
				if i, err := p.Open(t.Context(), o); i != nil || err != nil {
					t.Errorf("switched off: %v, %v", i, err)
				}
			}
		})
	}
}

// showCandidates calls hook logits where these logits, best first, are of tokens 1, 2, … and
// all others are out.
func showCandidates(t *testing.T, i *Instance, logits ...float32) abi.Action {
	t.Helper()
	l := i.Layout()
	i.goldenStats(logits, len(logits))
	i.put(abi.OffCandN, uint32(len(logits)))
	for k, v := range logits {
		i.put(l.CandIDs+4*k, uint32(k+1))
		i.putFloat(l.CandLogits+4*k, v)
	}
	a, _, err := i.Call(abi.HookLogits)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// wasiGuest is a plugin of testdata/wasi that the runtime and library of a language are
// linked to in full. It is built once.
func wasiGuest(t *testing.T, lang string) []byte {
	t.Helper()
	if wasiGuests[lang] == nil {
		file, err := buildWASI(lang, t.TempDir())
		wasiGuests[lang] = sdktest.Built(t, file, err)
	}
	return wasiGuests[lang]
}

func buildWASI(lang, scratch string) ([]byte, error) {
	dir := filepath.Join("testdata", "wasi", lang)
	if lang == "go" {
		return sdk.Build(context.Background(), dir)
	}
	b, err := compileWASI(lang, dir, filepath.Join(scratch, "plugin.wasm"))
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", sdk.ErrNoToolchain, err)
	}
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile("testdata/wasi/go/manifest.json")
	return wasm.AppendCustom(b, abi.SectionManifest, manifest), err
}

var wasiGuests = map[string][]byte{}

// compileWASI compiles C or Rust with the library for WASI.
func compileWASI(lang, dir, out string) ([]byte, error) {
	if _, err := exec.LookPath("wasm-ld"); err != nil {
		return nil, err
	}
	if _, err := os.Stat("/usr/lib/wasm32-wasi/crt1-reactor.o"); lang == "c" && err != nil {
		return nil, err
	}
	cmd := exec.Command("clang", "--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-Wl,--strip-all", filepath.Join(dir, "plugin.c"), "-o", out)
	if lang == "rust" {
		rustc, target, err := rustWithWASI()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command(rustc, "--edition=2021", "--target="+target, "-Copt-level=s", "-Cpanic=abort", "-Ccodegen-units=1", "-Cstrip=symbols",
			"-Clinker=wasm-ld", "-Clink-arg=-zstack-size=65536", "--crate-type=cdylib", filepath.Join(dir, "plugin.rs"), "-o", out)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return os.ReadFile(out)
}

// rustWithWASI finds a compiler of Rust that has its library for WASI.
func rustWithWASI() (rustc, target string, err error) {
	for _, rustc := range []string{"rustc", "/usr/bin/rustc"} {
		for _, target := range []string{"wasm32-wasi", "wasm32-wasip1"} {
			dir, err := exec.Command(rustc, "--print=target-libdir", "--target="+target).Output()
			if err != nil {
				continue
			}
			if _, err := os.Stat(strings.TrimSpace(string(dir))); err == nil {
				return rustc, target, nil
			}
		}
	}
	return "", "", fmt.Errorf("rustc with target wasm32-wasi: %w", sdk.ErrNoToolchain)
}

// Runtimes and libraries get along with the WASI there is: each of these guests asks for
// what its library offers, waits by sleeping and by looking at the clock, and ends itself in
// some ways. That the clock moves is not for nothing: see TestClockIsNeeded.
func TestRuntimesRunOnTheStubs(t *testing.T) {
	for _, tt := range []struct {
		lang string
		want []string         // of gg_open; %x: anything
		ends map[int][]string // mode → what is in the error
	}{
		{"go", []string{"INFO args 0 environment 0", "WARN file true input true", "INFO random true %x", "INFO time true",
			"INFO slept 1h0m0s", "INFO timeout", "INFO channel 7", "INFO collected true 10"},
			map[int][]string{1: {"proc_exit(3)"}, 2: {`having said "panic: on purpose"`}, 3: {`having said "fatal error: all goroutines are asleep - deadlock!"`}}},
		{"rust", []string{"INFO args 0 environment 0", "WARN file true input true", "INFO random true", "INFO time true", "INFO slept 3600"},
			map[int][]string{1: {"proc_exit(3)"}, 2: {"unreachable", "panicked at 'on purpose'"}}},
		{"c", []string{"INFO environment 0", "WARN file 1 input 1", "INFO random 1", "INFO time 1 1", "INFO slept 3600 0"},
			map[int][]string{1: {"proc_exit(3)"}, 2: {"unreachable", `having said "on purpose"`}}},
	} {
		t.Run(tt.lang, func(t *testing.T) {
			file := wasiGuest(t, tt.lang)
			p := load(t, newRuntime(t, Options{}), file)
			slow := load(t, newRuntime(t, Options{Interpreter: true}), file)
			var first []string
			var fuel int64
			for n, p := range []*Plugin{p, p, slow} { // anew, from the pool, interpreted
				var s said
				o := opening(0)
				o.Services.Log = s.logger()
				burnt := int64(0)
				o.Spent = func(fuel int64, _ time.Duration) { burnt = fuel }
				i := open(t, p, o)
				got := s.take()
				sayTheSame(t, got, tt.want)
				if n == 0 {
					first, fuel = got, burnt
				} else if !slices.Equal(got, first) || burnt != fuel {
					t.Errorf("run %d of the same request says %q with %d fuel, the first one %q with %d", n, got, burnt, first, fuel)
				}
				if _, _, err := i.Call(abi.HookPlan); err != nil {
					t.Error(err)
				}
				if got := s.take(); len(got) != 1 || !strings.HasPrefix(got[0], "INFO step") {
					t.Errorf("a step says %q", got)
				}
				_ = i.Close()
			}
			for mode, want := range tt.ends {
				_, _, err := open(t, p, opening(mode)).Call(abi.HookPlan)
				if codeOf(err) != CodeTrap {
					t.Errorf("mode %d: %v, want a trap", mode, err)
				}
				for _, w := range want {
					if err == nil || !strings.Contains(err.Error(), w) {
						t.Errorf("mode %d: %v, want %q in it", mode, err, w)
					}
				}
			}
		})
	}
}

// sayTheSame compares lines; what is wanted ends where %x stands.
func sayTheSame(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for k, w := range want {
		if head, _, any := strings.Cut(w, "%x"); !strings.HasPrefix(got[k], head) || !any && got[k] != w {
			t.Errorf("line %d: %q, want %q", k, got[k], w)
		}
	}
}

// The partner of TestRuntimesRunOnTheStubs: what becomes of runtimes where the clock begins
// at 0, where it stands still, and where nobody can sleep.
func TestClockIsNeeded(t *testing.T) {
	always := func(v uint64) func(*Instance, []uint64) {
		return func(i *Instance, s []uint64) {
			i.g.memory.WriteUint64Le(arg(s[2]), v)
			s[0] = 0
		}
	}
	for _, tt := range []struct {
		name, lang, function string
		call                 func(*Instance, []uint64)
		code                 Code
		text                 string
	}{
		{"the clock says 0", "go", "clock_time_get", always(0), CodeTrap, "nanotime returning zero"},
		{"nobody sleeps", "go", "poll_oneoff", func(_ *Instance, s []uint64) { s[0] = wasiNotImplemented }, CodeTrap, "errno= 52 "},
		{"the clock stands still", "c", "clock_time_get", always(wasiClockStart + 3000), CodeFuel, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRuntime(t, Options{})
			other := slices.Clone(wasiFunctions())
			for k := range other {
				if other[k].name == tt.function {
					other[k].call = tt.call
				}
			}
			ctx := context.Background()
			if err := errors.Join(r.wasm.Module(wasiModule).Close(ctx), instantiateHost(ctx, r.wasm, wasiModule, other)); err != nil {
				t.Fatal(err)
			}
			var s said
			p, err := r.Load(ctx, wasiGuest(t, tt.lang))
			if err == nil {
				t.Cleanup(p.Close)
				o := opening(0)
				o.Services.Log = s.logger()
				_, err = p.Open(t.Context(), o)
			}
			if text := fmt.Sprint(err, s.take()); codeOf(err) != tt.code || !strings.Contains(text, tt.text) {
				t.Errorf("%s, want %s, %q", text, tt.code, tt.text)
			}
		})
	}
}
