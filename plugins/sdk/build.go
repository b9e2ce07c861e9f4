package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoToolchain is wrapped by errors of [Build] when a compiler is not installed.
var ErrNoToolchain = errors.New("toolchain is missing")

// Build compiles the plugin in a folder and returns the module with its manifest. The
// language is told by the source: plugin.c, plugin.rs, plugin.go or plugin.ts. Same
// source, compiler and SDK give the same bytes. Building runs the compilers of the
// machine and writes nothing into the folder.
func Build(ctx context.Context, dir string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "ganglion-plugin-")
	if err != nil {
		return nil, fmt.Errorf("sdk: %w", err)
	}
	defer os.RemoveAll(tmp)
	for _, l := range languages {
		if _, err := os.Stat(filepath.Join(dir, l.source)); err != nil {
			continue
		}
		out := filepath.Join(tmp, "plugin.wasm")
		if err := l.build(ctx, dir, tmp, out); err != nil {
			return nil, fmt.Errorf("sdk: building %s: %w", dir, err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			return nil, fmt.Errorf("sdk: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("sdk: %s: holds none of plugin.c, plugin.rs, plugin.go, plugin.ts", dir)
}

type language struct {
	name, source string
	build        func(ctx context.Context, dir, tmp, out string) error
}

var languages = []language{
	{"c", "plugin.c", buildC},
}

// buildC takes the header beside the source when there is one, so that a plugin keeps
// the version it was written for. A file flags holds further options, such as a larger
// stack.
func buildC(ctx context.Context, dir, tmp, out string) error {
	if err := os.WriteFile(filepath.Join(tmp, "ganglion.h"), headerC, 0o644); err != nil {
		return err
	}
	args := append(flagsC(), "-I.", "-I../include", "-I"+tmp)
	more, err := os.ReadFile(filepath.Join(dir, "flags"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args = append(args, strings.Fields(string(more))...)
	return run(ctx, dir, "clang", append(args, "plugin.c", "-o", out)...)
}

// flagsC are the options of the C compiler and linker. The stack comes first in memory:
// one that grows too deep traps instead of overwriting data.
func flagsC() []string {
	return strings.Fields("--target=wasm32 -std=c11 -O2 -Wall -Wextra -Wno-unused-function" +
		" -ffreestanding -fvisibility=hidden -msimd128 -mbulk-memory -nostdlib" +
		" -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=8192 -Wl,--stack-first")
}

// run runs a tool in a folder. Its error carries what the tool said.
func run(ctx context.Context, dir, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, ErrNoToolchain)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	return nil
}
