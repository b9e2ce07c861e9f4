package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/device"
)

// tool skips the test where a program is missing, unless Vulkan is required here.
func tool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), "vulkan") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func TestGet(t *testing.T) {
	s := Get("copy")
	if s == nil || s.Name != "copy" || len(s.SPIRV) == 0 || !strings.Contains(s.GLSL, "void main()") {
		t.Fatalf("copy: %+v", s)
	}
	if strings.Contains(s.GLSL, "#include") || strings.Contains(s.GLSL, "#version") {
		t.Errorf("copy: text has an include or version line:\n%s", s.GLSL)
	}
	if Get("none") != nil {
		t.Error("a shader of a name that is none")
	}
	for _, s := range All() {
		if Get(s.Name) != s {
			t.Errorf("%s: All and Get differ", s.Name)
		}
	}
}

// A .comp file without an entry was added and not generated.
func TestEveryTextIsGenerated(t *testing.T) {
	files, err := filepath.Glob("*.comp")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if Get(strings.TrimSuffix(f, ".comp")) == nil {
			t.Errorf("%s is not in the table: run go run ./cmd/kernelgen", f)
		}
	}
	if len(files) != len(table) {
		t.Errorf("%d texts, %d entries in the table", len(files), len(table))
	}
}

// beyondFloor says what of a shader is outside the portable floor.
func beyondFloor(s *device.Shader) (bad []string) {
	check := func(what string, got, most int) {
		if got > most {
			bad = append(bad, fmt.Sprintf("%d %s, the floor has %d", got, what, most))
		}
	}
	check("bindings", len(s.Bindings), 8)
	check("bytes of shared memory", s.SharedBytes(nil), 16<<10)
	check("bytes of parameters", s.ParamBytes, 128)
	if len(s.Constants) == 0 || s.Constants[0].Name != "WG" {
		return append(bad, "constant 0 is not WG")
	}
	check("invocations", int(s.Constants[0].Default), 256)
	return bad
}

func TestKernelsStayInsideTheFloor(t *testing.T) {
	for _, s := range All() {
		for _, b := range beyondFloor(s) {
			t.Errorf("%s: %s", s.Name, b)
		}
	}
}

// The guard can fail.
func TestFloorIsGuarded(t *testing.T) {
	s := &device.Shader{ParamBytes: 132, Shared: func([]uint32) int { return 1<<14 + 4 }, Bindings: make([]device.Binding, 9),
		Constants: []device.Constant{{Name: "WG", Default: 512}}}
	if got := beyondFloor(s); len(got) != 4 {
		t.Errorf("%q, want four offences", got)
	}
	if got := beyondFloor(&device.Shader{}); len(got) != 1 {
		t.Errorf("%q, want one offence", got)
	}
}

func TestSPIRVIsValid(t *testing.T) {
	tool(t, "spirv-val")
	dir := t.TempDir()
	for _, s := range All() {
		path := filepath.Join(dir, s.Name+".spv")
		if err := os.WriteFile(path, s.SPIRV, 0o600); err != nil {
			t.Fatal(err)
		}
		envs := []string{"vulkan1.1"}
		if s.Needs == device.Dot4 { // a core feature there
			envs = append(envs, "vulkan1.3")
		}
		for _, env := range envs {
			if out, err := exec.Command("spirv-val", "--target-env", env, path).CombinedOutput(); err != nil {
				t.Errorf("%s for %s: %v\n%s", s.Name, env, err, out)
			}
		}
	}
}

// Each text compiles in every dialect with a compiler that is stricter than most drivers.
func TestTextsCompile(t *testing.T) {
	tool(t, "glslangValidator")
	dir := t.TempDir()
	for _, d := range []device.Dialect{device.GLSL430, device.GLSL320ES, device.GLSL310ES} {
		var paths []string
		for _, s := range All() {
			if s.GLSL == "" {
				continue // for Vulkan alone
			}
			path := filepath.Join(dir, fmt.Sprintf("%s.%d.comp", s.Name, d))
			if err := os.WriteFile(path, []byte(s.Text(d, nil)), 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		if out, err := exec.Command("glslangValidator", paths...).CombinedOutput(); err != nil {
			t.Errorf("dialect %s: %v\n%s", d, err, errorsOf(string(out)))
		}
	}
}

// errorsOf keeps the file names that are followed by a complaint, and the complaints.
func errorsOf(out string) string {
	var b strings.Builder
	file := ""
	for line := range strings.Lines(out) {
		if strings.HasSuffix(strings.TrimSpace(line), ".comp") {
			file = line
			continue
		}
		b.WriteString(file + line)
		file = ""
	}
	return b.String()
}
