package host

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
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
	case "load": // a file as the server does
		loadAsServer()
	case "limits": // those that a child works under
		compileAsChild()
		limits, err := os.ReadFile("/proc/self/limits")
		fmt.Fprintln(os.Stderr, string(limits), err)
	case "network": // and which of those it may make
		fmt.Fprintln(os.Stderr, "before:", makeSocket())
		compileAsChild()
		fmt.Fprintln(os.Stderr, "after:", makeSocket())
		done := make(chan error)
		go func() { runtime.LockOSThread(); done <- makeSocket() }() // on another thread
		fmt.Fprintln(os.Stderr, "after:", <-done)
	case "greed": // what they leave of a child that wants more
		compileAsChild()
		takeMemory()
	case "memory":
		hog(childSeconds, takeMore)
	case "time":
		hog(1, func() {})
	default:
		compileAsChild()
	}
}

// compileAsChild is all that a child of the server does.
func compileAsChild() {
	if err := Child(os.Args[len(os.Args)-1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var hoard [][]byte

func takeMore() { hoard = append(hoard, bytes.Repeat([]byte{1}, 16<<20)) }

// takeMemory takes twice what a child may have.
func takeMemory() {
	for range 2 * childBytes / (16 << 20) {
		takeMore()
	}
}

// hog takes more than a child may: of memory, or of a processor.
func hog(seconds uint64, more func()) {
	if err := limitChild(seconds, 256<<20); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
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
	i, err := p.Open(t.Context(), o)
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

func (letterVocab) Size() int { return 1000 }

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

func (letterVocab) EOG(id int32) bool { return id == 0 }

func (letterVocab) Control(id int32) bool { return id == 0 }

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
