package tensor

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fused matches arm64 instructions that multiply and add with a single rounding.
var fused = regexp.MustCompile(`\bFN?M(ADD|SUB)[SD]\b`)

// fusedLines compiles the package in dir for arm64 and returns the assembly lines with
// a fused instruction.
func fusedLines(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command("go", "build", "-gcflags=-S", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "STEXT") {
		t.Fatal("the compiler printed no assembly")
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if fused.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// The same bits everywhere: no product of a decoder is fused with a sum where the
// machine could. Most of us never run the goldens on arm64, so its code is looked at.
func TestNoFusedMultiplyAdd(t *testing.T) {
	if lines := fusedLines(t, "."); len(lines) > 0 {
		t.Errorf("fused instructions; convert the product with float32() first:\n%s", strings.Join(lines, "\n"))
	}
	// The check sees one where there is one.
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module fused\n\ngo 1.26\n",
		"f.go":   "package fused\n\nfunc F(a, b, c float32) float32 { return a*b + c }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if lines := fusedLines(t, dir); len(lines) == 0 {
		t.Error("found no fused instruction in a·b + c")
	}
}
