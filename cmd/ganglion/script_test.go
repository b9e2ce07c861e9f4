package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ganglion/gpu/archtest"
	"ganglion/gpu/gguf/gguftest"
)

// goldenTokens are the tokens of the golden logits.
const goldenTokens = "1,259,300,264,271,290,310,270,262,285,299,305,260,281,276,291,302,315,68,231,187,176,266,263,270,319,308,294,287,273,282,261,269,275,280,289,297,304,311,317"

// TestScripts runs testdata/script: each verb as a user types it, with what it prints
// and the code it ends with.
func TestScripts(t *testing.T) {
	set := archtest.Golden(t)
	golden := filepath.Join(set.Dir, set.Find(t, "gemma3-dense").Logits)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			tiny, err := filepath.Abs(tinyModel)
			if err != nil {
				return err
			}
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("TINY", tiny)
			e.Setenv("GORACE", quickEnd)
			for _, name := range []string{"LP_NATIVE_VECTOR_WIDTH", "GALLIVM_PERF", "MESA_SHADER_CACHE_DIR"} { // light_renderers of build.sh
				e.Setenv(name, os.Getenv(name))
			}
			lora := filepath.Join(filepath.Dir(tiny), "..", "lora")
			e.Setenv("LORA", filepath.Join(lora, "gemma3-0.gguf"))
			e.Setenv("OTHER", filepath.Join(lora, "llama-0.gguf"))
			e.Setenv("LORAGOLDEN", filepath.Join(lora, "gemma3.logits.f32"))
			e.Setenv("TOKENS", goldenTokens)
			for name, dir := range map[string]string{"BUILTIN": "../../plugins/builtin/wasm", "TWINS": "../../plugins/plugintest/testdata/twins", "RECORDED": recordedDir} {
				abs, err := filepath.Abs(dir)
				if err != nil {
					return err
				}
				e.Setenv(name, abs)
			}
			e.Setenv("GOLDEN", golden)
			if err := os.Mkdir(home, 0o755); err != nil {
				return err
			}
			e.Setenv("STRANGE", filepath.Join(home, "strange.gguf"))
			return strange(tiny, e.Getenv("STRANGE"))
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "race":
				return raceEnabled, nil
			case "vulkan", "gl":
				return hasDriver(name)
			}
			return false, fmt.Errorf("no condition is called %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "near": scriptNear, "split": scriptSplit, "cut": scriptCut, "tested": scriptTested,
		},
	})
}

// strange copies a model with one token of its vocabulary changed.
func strange(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	changed := bytes.Replace(b, []byte("<0x19>"), []byte("<0xZ9>"), 1)
	if bytes.Equal(changed, b) {
		return errors.New("the model has no token <0x19>")
	}
	return os.WriteFile(to, changed, 0o644)
}

// scriptExits runs a command and checks the code: exits CODE COMMAND [ARG…].
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d; stderr:\n%s", got, want, ts.ReadFile("stderr"))
	}
}

// scriptNear compares float32 files by their normalised mean squared error:
// near GOT WANT BOUND.
func scriptNear(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: near GOT WANT BOUND")
	}
	bound, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if len(got) != len(want) || len(got) == 0 {
		ts.Fatalf("%d bytes, want %d", len(got), len(want))
	}
	var off, sum float64
	for i := 0; i < len(got); i += 4 {
		g, w := float32At(got[i:]), float32At(want[i:])
		off, sum = off+(g-w)*(g-w), sum+w*w
	}
	if near := off/sum <= bound; near == neg {
		ts.Fatalf("normalised mean squared error %.3g, bound %.3g", off/sum, bound)
	}
}

func float32At(s string) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(s[:4]))))
}

// scriptSplit writes a small model in parts: split NAME PARTS.
func scriptSplit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: split NAME PARTS")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	m := gguftest.Model{KV: []gguftest.KV{{Key: "general.architecture", Value: "llama"}}}
	for i := range 2 * n {
		m.Tensors = append(m.Tensors, gguftest.Tensor{Name: "t" + strconv.Itoa(i), Dims: []int{4}})
	}
	_, err = gguftest.WriteSplit(ts.MkAbs("."), args[0], m, n)
	ts.Check(err)
}

// scriptCut copies the first bytes of a file: cut FROM TO BYTES.
func scriptCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut FROM TO BYTES")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(ts.ReadFile(args[0]))[:n], 0o644))
}

// A completion that is interrupted ends within moments, with what came so far on
// stdout and the code of an interrupted program.
func TestRunInterrupted(t *testing.T) {
	cmd := exec.Command(binaryPath(t), "run", "--model", tinyPath(t), "--context", "200000", "-n", "190000", "--temperature", "0", "--numerics", "exact", "abc") // these repeat themselves for ever
	cmd.Env = cleanEnv(t.TempDir())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := launchCmd(t, cmd)
	if _, err := io.ReadFull(stdout, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, stdout) // what was on its way
	if code := p.wait(); code != exitInterrupted || p.output() != "" {
		t.Errorf("ended with code %d, want %d:\n%s", code, exitInterrupted, p.output())
	}
}
