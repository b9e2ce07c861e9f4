package host

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

//go:embed testdata/guest.wasm
var guestWasm []byte

// childEnv makes the test binary a child that compiles.
const childEnv = "GANGLION_TEST_COMPILE"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "hang":
		time.Sleep(time.Hour)
	case "memory":
		hog(func() { hoard = append(hoard, bytes.Repeat([]byte{1}, 16<<20)) })
	case "time":
		hog(func() {})
	default:
		if err := Child(os.Args[len(os.Args)-1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

var hoard [][]byte

// hog takes more than a child may.
func hog(more func()) {
	if err := limitChild(1, 256<<20); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		more()
	}
}

// inChild compiles in a child of the test binary.
func inChild(mode string) func(ctx context.Context, args ...string) *exec.Cmd {
	return func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(os.Environ(), childEnv+"="+mode)
		return cmd
	}
}

// withManifest adds a manifest to a module.
func withManifest(module []byte, fields string) []byte {
	text := `{"abi":"1.0","name":"guest","version":"1.0.0","slot":"bias",
		"config_schema":{"type":"object","properties":{"mode":{"type":"integer","default":0},"words":{"type":"array","default":["a","word2"]}}}` + fields + `}`
	return wasm.AppendCustom(module, abi.SectionManifest, []byte(text))
}

// ordinary is a manifest that grants most of what there is.
const ordinary = `,"hooks":["plan","logits","choose","accept","text","prompt","end","rollback"],"truncates":true,
	"view":{"logits":"topn","n":256,"edits":64,"text":true,"history":"last:16","holdback":4},"limits":{"memory_pages":8},"capabilities":["kv","clock","vocab"]`

func testGuest(fields string) []byte {
	return wasm.AppendCustom(withManifest(guestWasm, fields), abi.SectionAsset+"a", []byte("asset"))
}

func newRuntime(t testing.TB, o Options) *Runtime {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func load(t testing.TB, r *Runtime, file []byte) *Plugin {
	t.Helper()
	p, err := r.Load(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func opening(mode int) Open {
	return Open{
		Config:  fmt.Appendf(nil, `{"mode":%d,"words":["a","word2"]}`, mode),
		Request: Request{MaxTokens: 16, Seed: 42, Temperature: 1},
		Model:   Model{Name: "m", Vocab: 1000, Context: 128},
		Prompt:  4,
		Services: Services{
			Vocab: letterVocab{}, Store: &memoryStore{m: map[string][]byte{"old": []byte("abc")}},
			Text:  func(int) []byte { return []byte("hello world") },
			Clock: func() int64 { return 1234 },
		},
	}
}

func open(t testing.TB, p *Plugin, o Open) *Instance {
	t.Helper()
	i, err := p.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if i == nil {
		t.Fatal("not interested")
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

// letterVocab has the end of text and a few tokens of letters.
type letterVocab struct{}

var letterTokens = []string{"", "aa", "b", "ab", "abc", "a", "漢", "\xE6", "abc"}

func (letterVocab) Size() int   { return 1000 }
func (letterVocab) Key() string { return "letters" }
func (letterVocab) Bytes(id int32) []byte {
	if int(id) < len(letterTokens) {
		return []byte(letterTokens[id])
	}
	return nil
}
func (letterVocab) Encode(text []byte, _, _ bool) []int32 {
	var out []int32
	for len(text) > 0 {
		switch {
		case bytes.HasPrefix(text, []byte("aa")):
			out, text = append(out, 1), text[2:]
		default:
			out, text = append(out, 2), text[1:]
		}
	}
	return out
}
func (v letterVocab) Decode(ids []int32) (out []byte) {
	for _, id := range ids {
		out = append(out, v.Bytes(id)...)
	}
	return out
}
func (letterVocab) Special(role int) (int32, bool) { return 0, role == 1 }
func (letterVocab) EOG(id int32) bool              { return id == 0 }
func (letterVocab) Control(id int32) bool          { return id == 0 }

type memoryStore struct {
	m         map[string][]byte
	committed map[string][]byte
}

func (s *memoryStore) Read(string) map[string][]byte { return s.m }
func (s *memoryStore) Commit(_ string, w map[string][]byte) error {
	s.committed = w
	return nil
}

// codeOf is the code of a plugin's failure.
func codeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

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
				before := time.Now()
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
				if d := time.Since(before); !interpreter && d > 200*time.Millisecond {
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

func TestOpen(t *testing.T) {
	r := newRuntime(t, Options{})
	p := load(t, r, testGuest(ordinary))
	if i, err := p.Open(opening(90)); i != nil || err != nil {
		t.Errorf("not interested: %v, %v", i, err)
	}
	if _, err := p.Open(opening(91)); codeOf(err) != CodeOpen || !strings.Contains(err.Error(), "not today") {
		t.Errorf("refused: %v", err)
	}
	if _, err := p.Open(opening(92)); codeOf(err) != CodeFuel {
		t.Errorf("endless: %v", err)
	}
	open(t, p, opening(93))
	tiny := load(t, r, testGuest(strings.Replace(ordinary, `"memory_pages":8`, `"memory_pages":2`, 1)))
	o := opening(0)
	o.Text = strings.Repeat("x", 64<<10)
	if _, err := tiny.Open(o); codeOf(err) != CodeMemory {
		t.Errorf("no room for the frame: %v", err)
	}
	open(t, tiny, opening(0))
	none := load(t, r, testGuest(strings.Replace(ordinary, `"kv",`, ``, 1)))
	i := open(t, none, opening(24))
	if _, _, err := i.Call(abi.HookPlan); codeOf(err) != CodeError {
		t.Errorf("kv without the capability: %v", err)
	}
}

// A request leaves nothing behind: 1,000 requests write canaries wherever they can, and
// each is followed by one that looks for them in an instance of the same pool.
func TestPoolLeaksNothing(t *testing.T) {
	for _, o := range []Options{{Idle: 1}, {Idle: -1}} {
		r := newRuntime(t, o)
		p := load(t, r, testGuest(ordinary))
		first := open(t, p, opening(20))
		for n := range 500 {
			i := open(t, p, opening(19))
			if _, _, err := i.Call(abi.HookPlan); err != nil {
				t.Fatal(err)
			}
			if n == 0 { // the partner: in this instance they are found
				i.g.memory.WriteUint32Le(uint32(i.g.memory.Size()-4), 0xC5C5C5C5)
				at, _ := i.g.memory.Read(0, i.g.memory.Size())
				if !bytes.Contains(at, []byte{0xC5, 0xC5, 0xC5, 0xC5, 0xC5, 0xC5}) {
					t.Fatal("no canary was written")
				}
			}
			_ = i.Close()
			i = open(t, p, opening(20))
			if _, _, err := i.Call(abi.HookPlan); err != nil {
				t.Fatalf("request %d: %v", n, err)
			}
			if memory, _ := i.g.memory.Read(0, i.g.memory.Size()); n%100 == 0 {
				want, _ := first.g.memory.Read(0, first.g.memory.Size())
				if len(memory) != len(want) {
					t.Fatalf("%d bytes of memory, want %d", len(memory), len(want))
				}
			}
			_ = i.Close()
		}
	}
}

// The scan of the guest finds a canary where there is one.
func TestCanariesAreFound(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	i := open(t, p, opening(20))
	i.g.memory.WriteUint32Le(2048, 0xC5C5C5C5)
	if _, _, err := i.Call(abi.HookPlan); codeOf(err) != CodeError {
		t.Errorf("a canary is not found: %v", err)
	}
}

func TestPoolDropsGrownMemory(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	for range 3 {
		i := open(t, p, opening(28))
		pages := i.g.memory.Size()
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
		if i.g.memory.Size() != pages+memoryPage {
			t.Fatal("it did not grow")
		}
		_ = i.Close()
		if len(p.idle) > 1 {
			t.Fatal("a grown instance is in the pool")
		}
		for _, g := range p.idle {
			if g.memory.Size() != p.image.pages*memoryPage {
				t.Error("a grown instance is in the pool")
			}
		}
	}
}

func TestSnapshot(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	i := open(t, p, opening(30)) // edit_n is the number of calls: a counter in memory
	call := func(want uint32) {
		t.Helper()
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(i.Frame()[abi.OffEditN:]); got != want {
			t.Fatalf("call %d, want %d", got, want)
		}
	}
	call(1)
	call(2)
	state, err := i.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	call(3)
	call(4)
	if err := i.Restore(state); err != nil {
		t.Fatal(err)
	}
	call(3)
	i.g.memory.Grow(1)
	call(4)
	if err := i.Restore(state); err != nil {
		t.Fatal(err)
	}
	if got, want := i.g.memory.Size(), uint32(len(state))/memoryPage*memoryPage; got != want {
		t.Errorf("%d bytes of memory after a restore, want %d", got, want)
	}
	call(3)
	for _, bad := range [][]byte{nil, state[:20], state[:len(state)-1], append([]byte("XXXX"), state[4:]...)} {
		if i.Restore(bad) == nil {
			t.Errorf("%d bytes of no state are taken", len(bad))
		}
	}
	call(4)
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
