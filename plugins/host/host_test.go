package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm/wasmtest"
)

// TestFaults is the table of what a hostile guest does and how it ends. The partner of
// each row is the row "nothing": the same call is fine when the guest behaves.
func TestFaults(t *testing.T) {
	for _, interpreter := range []bool{false, true} {
		r := newRuntime(t, Options{Interpreter: interpreter, AllowSlow: true})
		p := load(t, r, testGuest(ordinary))
		for _, tt := range []struct {
			name string
			mode int
			hook abi.Hook
			want Code
			text string
		}{
			{"nothing", 0, abi.HookPlan, "", ""},
			{"endless loop", 1, abi.HookPlan, CodeFuel, "2000000"},
			{"call tree without loops", 2, abi.HookPlan, CodeFuel, ""},
			{"bulk fill", 3, abi.HookPlan, CodeFuel, ""},
			{"endless recursion", 4, abi.HookPlan, CodeFuel, ""},
			{"unreachable", 5, abi.HookPlan, CodeTrap, "unreachable in .gg_plan"},
			{"division by zero", 6, abi.HookPlan, CodeTrap, "integer divide by zero"},
			{"out of memory bounds", 7, abi.HookPlan, CodeTrap, "out of bounds memory access"},
			{"bad table entry", 8, abi.HookPlan, CodeTrap, "invalid table access"},
			{"bad conversion", 9, abi.HookPlan, CodeTrap, "integer overflow"},
			{"full memory", 10, abi.HookPlan, CodeMemory, "8 pages"},
			{"growth refused", 11, abi.HookPlan, "", ""},
			{"action of another hook", 12, abi.HookPlan, CodeAction, "TOKEN"},
			{"error with a text", 13, abi.HookPlan, CodeError, "sorry"},
			{"error without", 14, abi.HookPlan, CodeError, "returned -8"},
			{"too many edits", 15, abi.HookPlan, CodeAction, "EDITS of 1000000"},
			{"too many forced tokens", 16, abi.HookPlan, CodeQuota, "FORCE of 300"},
			{"forced token out of range", 17, abi.HookPlan, CodeAction, "FORCE of token"},
			{"header overwritten", 18, abi.HookPlan, CodeAction, ""},
			{"bad pointers", 21, abi.HookPlan, "", ""},
			{"log flood", 22, abi.HookPlan, "", ""},
			{"stored values", 24, abi.HookPlan, "", ""},
			{"too much stored", 25, abi.HookPlan, "", ""},
			{"meta", 26, abi.HookPlan, "", ""},
			{"tokens, assets, text", 27, abi.HookPlan, "", ""},
			{"temperature is not a number", 29, abi.HookPlan, CodeAction, "TEMP of NaN"},
			{"mask not granted", 31, abi.HookPlan, CodeAction, "MASK"},
			{"idle", 32, abi.HookPlan, "", ""},
			{"costly host function", 35, abi.HookPlan, CodeFuel, ""},
			{"fewer candidates", 40, abi.HookLogits, "", ""},
			{"too many candidates", 41, abi.HookLogits, CodeAction, "CANDS"},
			{"row not granted", 42, abi.HookLogits, CodeAction, "FULL"},
			{"token", 0, abi.HookChoose, "", ""},
			{"token out of range", 50, abi.HookChoose, CodeAction, "TOKEN 4294967295"},
			{"backtrack too far", 60, abi.HookAccept, CodeAction, "BACKTRACK of 100"},
			{"stop for no reason", 61, abi.HookAccept, CodeAction, "STOP for reason 9"},
			{"stop", 62, abi.HookAccept, "", ""},
			{"flood of text", 70, abi.HookText, CodeQuota, "TEXT of 1073741824"},
			{"text is not UTF-8", 71, abi.HookText, CodeAction, "UTF-8"},
		} {
			t.Run(fmt.Sprintf("interpreter=%v/%s", interpreter, tt.name), func(t *testing.T) {
				i := open(t, p, opening(tt.mode))
				before := wasmtest.CPUTime()
				if interpreter && tt.mode == 4 {
					tt.want = CodeTrap // the interpreter's own bound, 2,000 calls, comes first
				}
				_, fuel, err := i.Call(tt.hook)
				if code := codeOf(err); code != tt.want || err != nil && code == "" {
					t.Fatalf("%v, want code %q", err, tt.want)
				}
				if err != nil && !strings.Contains(err.Error(), tt.text) {
					t.Errorf("%v, want %q in it", err, tt.text)
				}
				if tt.want == CodeFuel && fuel != p.Fuel(tt.hook) {
					t.Errorf("%d fuel burnt", fuel)
				}
				if d := wasmtest.CPUTime() - before; !interpreter && d > 200*time.Millisecond {
					t.Errorf("it took %v", d)
				}
				if err != nil {
					if _, _, again := i.Call(abi.HookEnd); codeOf(again) != tt.want {
						t.Errorf("the next call: %v", again)
					}
				}
				if len(i.Frame()) != i.Layout().Size {
					t.Error("the frame is gone")
				}
			})
		}
	}
}

// TestOpenTellsWhatItTook: whatever comes of it, and no more than a call may burn.
func TestOpenTellsWhatItTook(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	took := func(mode int) int64 {
		t.Helper()
		fuel, calls := int64(0), 0
		o := opening(mode)
		o.Spent = func(f int64, d time.Duration) {
			fuel, calls = f, calls+1
			if d <= 0 {
				t.Errorf("mode %d: %d fuel in %v", mode, f, d)
			}
		}
		if i, _ := p.Open(t.Context(), o); i != nil {
			i.Close()
		}
		if calls != 1 {
			t.Errorf("mode %d: told %d times", mode, calls)
		}
		return fuel
	}
	plain := took(0)
	if plain <= 0 || plain > 100_000 {
		t.Errorf("an ordinary one takes %d fuel", plain)
	}
	for mode, what := range map[int]string{90: "not interested", 91: "refused"} {
		if f := took(mode); f <= 0 || f > 2*plain {
			t.Errorf("%s: %d fuel, an ordinary one %d", what, f, plain)
		}
	}
	if f := took(92); f != p.Fuel(abi.HookOpen) {
		t.Errorf("endless: %d fuel", f)
	}
}

func TestOpen(t *testing.T) {
	r := newRuntime(t, Options{})
	p := load(t, r, testGuest(ordinary))
	if i, err := p.Open(t.Context(), opening(90)); i != nil || err != nil {
		t.Errorf("not interested: %v, %v", i, err)
	}
	if _, err := p.Open(t.Context(), opening(91)); codeOf(err) != CodeOpen || !strings.Contains(err.Error(), "not today") {
		t.Errorf("refused: %v", err)
	}
	if _, err := p.Open(t.Context(), opening(92)); codeOf(err) != CodeFuel {
		t.Errorf("endless: %v", err)
	}
	open(t, p, opening(93))
	for name, c := range map[string]struct {
		constraint string
		fits       bool
	}{
		"vocabulary":             {`"min_vocab":1000000`, false},
		"smaller vocabulary":     {`"min_vocab":1`, true},
		"kind of tokenizer":      {`"tokenizers":["spm","wpm"]`, false},
		"this kind of tokenizer": {`"tokenizers":["spm","bpe"]`, true},
	} {
		bound := load(t, r, testGuest(`,"model":{`+c.constraint+`}`+ordinary))
		o := opening(0)
		o.Model.Tokenizer = "bpe"
		i, err := bound.Open(t.Context(), o)
		if (err == nil) != c.fits || err != nil && codeOf(err) != CodeOpen {
			t.Errorf("%s: %v", name, err)
		}
		if i != nil {
			i.Close()
		}
		// Golden tests and the kit have a tokenizer of their own.
		if o.Model.Tokenizer = ""; c.fits || strings.Contains(name, "tokenizer") {
			open(t, bound, o)
		}
	}
	tiny := load(t, r, testGuest(strings.Replace(ordinary, `"memory_pages":8`, `"memory_pages":2`, 1)))
	o := opening(0)
	o.Text = strings.Repeat("x", 64<<10)
	if _, err := tiny.Open(t.Context(), o); codeOf(err) != CodeMemory {
		t.Errorf("no room for the frame: %v", err)
	}
	open(t, tiny, opening(0))
	none := load(t, r, testGuest(strings.Replace(ordinary, `"kv",`, ``, 1)))
	i := open(t, none, opening(24))
	if _, _, err := i.Call(abi.HookPlan); codeOf(err) != CodeError {
		t.Errorf("kv without the capability: %v", err)
	}
}

func TestStoreIsCommittedAtTheEnd(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	o := opening(24)
	store := o.Services.Store.(*memoryStore)
	i := open(t, p, o)
	state, _ := i.Snapshot(nil)
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Fatal(err)
	}
	if store.committed != nil {
		t.Error("a value is in the store before the end")
	}
	if err := i.Restore(state); err != nil || len(i.state.writes) != 0 {
		t.Errorf("%v, %d writes after a restore", err, len(i.state.writes))
	}
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Call(abi.HookEnd); err != nil {
		t.Fatal(err)
	}
	if v, ok := store.committed["gone"]; string(store.committed["k"]) != "value" || v != nil || !ok {
		t.Errorf("%q", store.committed)
	}
}

func TestRandomWordsRepeat(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	words := func(seed uint64, step uint32) string {
		o := opening(23)
		o.Request.Seed = seed
		i := open(t, p, o)
		binary.LittleEndian.PutUint32(i.Frame()[abi.OffStep:], step)
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", i.Frame()[i.Layout().Edits:][:28])
	}
	if first, again := words(1, 2), words(1, 2); first != again {
		t.Error("the same request has other words")
	}
	if words(1, 2) == words(2, 2) || words(1, 2) == words(1, 3) {
		t.Error("seed or step do not count")
	}
}

// A panic of ours inside a host function ends the plugin, not the process.
func TestPanicStaysInside(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	o := opening(27)
	o.Services.Text = func(int) []byte { panic("ours") }
	i := open(t, p, o)
	if _, _, err := i.Call(abi.HookPlan); codeOf(err) != CodePanic || !strings.Contains(err.Error(), "ours") {
		t.Errorf("%v", err)
	}
	o.Services.Text = func(n int) []byte { return []byte{1}[n:][:n] }
	i = open(t, p, o)
	if _, _, err := i.Call(abi.HookPlan); codeOf(err) != CodePanic {
		t.Errorf("%v", err)
	}
	i = open(t, p, opening(27))
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Error(err)
	}
}

const coroutine = `,"hooks":["run","plan","accept","end"],"view":{"edits":8}`

func TestProgram(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(coroutine))
	i := open(t, p, opening(0))
	for step := range uint32(10) {
		binary.LittleEndian.PutUint32(i.Frame()[abi.OffStep:], step)
		a, fuel, err := i.Call(abi.HookPlan)
		if err != nil || a != abi.Edits || fuel <= 0 {
			t.Fatalf("step %d: %v, %d, %v", step, a, fuel, err)
		}
		if n := binary.LittleEndian.Uint32(i.Frame()[abi.OffEditN:]); n != step%4 {
			t.Fatalf("step %d: %d edits", step, n)
		}
		if a, _, err := i.Call(abi.HookAccept); a != 0 || err != nil {
			t.Fatalf("step %d: accept: %v, %v", step, a, err)
		}
	}
	if _, _, err := i.Call(abi.HookEnd); err != nil {
		t.Error(err)
	}
	if _, err := i.Snapshot(nil); err == nil {
		t.Error("a program's stack is in a snapshot")
	}
	_ = i.Close()
	_ = i.Close()

	for _, tt := range []struct {
		mode int
		want Code
	}{{80, ""}, {81, CodeTrap}, {82, CodeFuel}} {
		i := open(t, p, opening(tt.mode))
		var err error
		for range 5 {
			if _, _, e := i.Call(abi.HookPlan); e != nil {
				err = e
			}
		}
		if codeOf(err) != tt.want {
			t.Errorf("mode %d: %v, want %q", tt.mode, err, tt.want)
		}
		_ = i.Close()
	}
	// A program that is over costs nothing more.
	i = open(t, p, opening(80))
	for n := range 5 {
		if _, fuel, err := i.Call(abi.HookPlan); err != nil || n == 4 && fuel != 0 || n == 0 && fuel == 0 {
			t.Errorf("call %d: fuel %d, %v", n, fuel, err)
		}
	}
	_ = i.Close()
	for range 100 { // closed before, while and after; goleak counts at the end
		i := open(t, p, opening(0))
		_ = i.Close()
		i = open(t, p, opening(0))
		_, _, _ = i.Call(abi.HookPlan)
		_ = i.Close()
	}
}

func TestCompilerAndInterpreterAgree(t *testing.T) {
	file := testGuest(ordinary)
	a := load(t, newRuntime(t, Options{}), file)
	b := load(t, newRuntime(t, Options{Interpreter: true}), file)
	if a.r.Interpreter() || !b.r.Interpreter() {
		t.Skip("this machine has no compiler")
	}
	for p, want := range map[*Plugin]uint32{a: 0, b: abi.FlagInterpreter} {
		i := open(t, p, opening(0))
		if _, _, err := i.Call(abi.HookPlan); err != nil || i.get(abi.OffFlags) != want {
			t.Errorf("flags %b, want %b, error %v", i.get(abi.OffFlags), want, err)
		}
		_ = i.Close()
	}
	b.r.interpreter = false // from here on nothing tells guests where they are
	for mode := range 44 {
		if mode == 4 { // endless recursion: see TestFaults
			continue
		}
		for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits} {
			x, y := open(t, a, opening(mode)), open(t, b, opening(mode))
			actions, fuel, err := x.Call(h)
			actions2, fuel2, err2 := y.Call(h)
			if actions != actions2 || codeOf(err) != codeOf(err2) {
				t.Errorf("mode %d, %s: %v, %v and %v, %v", mode, h, actions, err, actions2, err2)
			}
			// A trap in compiled code leaves the charge of its piece; so does the interpreter.
			if fuel != fuel2 {
				t.Errorf("mode %d, %s: fuel %d and %d", mode, h, fuel, fuel2)
			}
			m1, _ := x.g.memory.Read(0, x.g.memory.Size())
			m2, _ := y.g.memory.Read(0, y.g.memory.Size())
			if !bytes.Equal(m1, m2) {
				t.Errorf("mode %d, %s: memories differ", mode, h)
			}
			_, _ = x.Close(), y.Close()
		}
	}
}

func TestInterpreterRefusesLargeViews(t *testing.T) {
	file := testGuest(`,"hooks":["plan"],"view":{"mask":true}`)
	r := newRuntime(t, Options{Interpreter: true})
	if _, err := r.Load(context.Background(), file); err == nil {
		t.Error("a mask is taken where guests are interpreted")
	}
	load(t, newRuntime(t, Options{Interpreter: true, AllowSlow: true}), file)
}

func TestFullViewAndMask(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(`,"hooks":["plan","logits"],"view":{"logits":"full","mask":true}`))
	i := open(t, p, opening(42))
	l := i.Layout()
	for k := range 1000 {
		binary.LittleEndian.PutUint32(i.Frame()[l.Full+4*k:], math.Float32bits(float32(k)))
	}
	if a, _, err := i.Call(abi.HookLogits); a != abi.Full || err != nil {
		t.Fatal(a, err)
	}
	if v := math.Float32frombits(binary.LittleEndian.Uint32(i.Frame()[l.Full+4*999:])); v != 499.5 {
		t.Errorf("%g", v)
	}
	if got := i.Frame()[l.Mask : l.Mask+4]; !bytes.Equal(got, []byte{255, 255, 255, 255}) {
		t.Errorf("the mask begins as %x", got)
	}
}
