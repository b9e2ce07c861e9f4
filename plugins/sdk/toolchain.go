package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ganglion/plugins/wasm"
)

// buildC takes the header beside the source when there is one, so that a plugin keeps
// the version it was written for. A file flags holds further options, such as a larger
// stack.
func buildC(ctx context.Context, dir, tmp, out string) error {
	if err := os.WriteFile(filepath.Join(tmp, "ganglion.h"), library("c/ganglion.h"), 0o644); err != nil {
		return err
	}
	args := append(flagsC(), "-I.", "-I../include", "-I"+tmp)
	more, err := os.ReadFile(filepath.Join(dir, "flags"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	args = append(args, strings.Fields(string(more))...)
	return run(ctx, dir, nil, "clang", append(args, "plugin.c", "-o", out)...)
}

// flagsC are the options of the C compiler and linker. The stack comes first in memory:
// one that grows too deep traps instead of overwriting data.
func flagsC() []string {
	return strings.Fields("--target=wasm32 -std=c11 -O2 -Wall -Wextra -Wno-unused-function" +
		" -ffreestanding -fvisibility=hidden -msimd128 -mbulk-memory -nostdlib" +
		" -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=8192 -Wl,--stack-first")
}

// buildRust compiles the library and then the plugin, for no_std, with a stack of 32 KiB
// in place of Rust's 1 MiB. Remapped paths keep the folder out of the module.
func buildRust(ctx context.Context, dir, tmp, out string) error {
	rustc, err := findRust(ctx)
	if err != nil {
		return err
	}
	lib := library("rust/ganglion.rs")
	if own, err := os.ReadFile(filepath.Join(dir, "ganglion.rs")); err == nil {
		lib = own
	}
	if err := os.WriteFile(filepath.Join(tmp, "ganglion.rs"), lib, 0o644); err != nil {
		return err
	}
	flags := strings.Fields("--edition 2021 --target wasm32-unknown-unknown -C opt-level=3 -C panic=abort" +
		" -C codegen-units=1 -C target-feature=+simd128,+bulk-memory --remap-path-prefix " + tmp + "=")
	if err := run(ctx, tmp, nil, rustc, append(flags, "--crate-type=rlib", "--crate-name=ganglion", "ganglion.rs")...); err != nil {
		return err
	}
	flags = append(flags, strings.Fields("--crate-type=cdylib -C linker=wasm-ld -C strip=symbols"+
		" -C link-arg=-zstack-size=32768 -C link-arg=--stack-first")...)
	flags = append(flags, "--extern", "ganglion="+filepath.Join(tmp, "libganglion.rlib"), "plugin.rs", "-o", out)
	return run(ctx, dir, nil, rustc, flags...)
}

// findRust returns a rustc that has the library of wasm32: GANGLION_RUSTC, the one in
// PATH, or Debian's beside another in PATH.
func findRust(ctx context.Context) (string, error) {
	for _, name := range []string{os.Getenv("GANGLION_RUSTC"), "rustc", "/usr/bin/rustc"} {
		if name == "" {
			continue
		}
		dir, err := exec.CommandContext(ctx, name, "--print=target-libdir", "--target=wasm32-unknown-unknown").Output()
		if err != nil {
			continue
		}
		if _, err := os.Stat(strings.TrimSpace(string(dir))); err == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("rustc with target wasm32-unknown-unknown: %w", ErrNoToolchain)
}

// buildGo compiles the plugin and the library as one package main.
func buildGo(ctx context.Context, dir, tmp, out string) error {
	files := map[string][]byte{"go.mod": []byte("module ganglion-plugin\n\ngo 1.24\n"), "ganglion.go": library("go/ganglion.go")}
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, s := range sources {
		b, err := os.ReadFile(s)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(s, "_test.go") {
			files[filepath.Base(s)] = b
		}
	}
	src := filepath.Join(tmp, "src")
	if err := os.Mkdir(src, 0o755); err != nil {
		return err
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(src, name), b, 0o644); err != nil {
			return err
		}
	}
	env := []string{"GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0"}
	return run(ctx, src, env, "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out, ".")
}

// buildAssemblyScript runs asc from the folder's node_modules, GANGLION_ASC or PATH.
func buildAssemblyScript(ctx context.Context, dir, tmp, out string) error {
	asc := os.Getenv("GANGLION_ASC")
	if own := filepath.Join(dir, "node_modules", ".bin", "asc"); asc == "" {
		asc = "asc"
		if _, err := os.Stat(own); err == nil {
			asc = own
		}
	}
	source, err := os.ReadFile(filepath.Join(dir, "plugin.ts"))
	if err != nil {
		return err
	}
	ours := library("assemblyscript/ganglion.ts")
	if own, err := os.ReadFile(filepath.Join(dir, "ganglion.ts")); err == nil {
		ours = own
	}
	for name, b := range map[string][]byte{"plugin.ts": source, "ganglion.ts": ours} {
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o644); err != nil {
			return err
		}
	}
	if filepath.IsLocal(asc) && strings.Contains(asc, string(filepath.Separator)) {
		if asc, err = filepath.Abs(asc); err != nil {
			return err
		}
	}
	return run(ctx, tmp, nil, asc, "plugin.ts", "-o", out, "-O3", "--converge", "--noAssert", "--runtime", "stub", "--use", "abort=", "--enable", "simd")
}

// run runs a tool in a folder. Its error carries what the tool said.
func run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, ErrNoToolchain)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, text)
	}
	return nil
}

// finish drops what compilers write about themselves and puts the folder's manifest.json,
// and tests.jsonl where there is one, into a module that has none yet.
func finish(module []byte, dir string) ([]byte, error) {
	for _, name := range []string{"producers", "target_features", "name"} {
		var err error
		if module, err = wasm.DropCustom(module, name); err != nil {
			return nil, err
		}
	}
	m, err := wasm.Parse(module)
	if err != nil {
		return nil, err
	}
	for _, s := range []struct {
		section, file string
		needed        bool
	}{{"ganglion.manifest", "manifest.json", true}, {"ganglion.tests", "tests.jsonl", false}} {
		if _, has := m.Custom(s.section); has {
			continue // the source put it in
		}
		b, err := os.ReadFile(filepath.Join(dir, s.file))
		if errors.Is(err, fs.ErrNotExist) && !s.needed {
			continue
		}
		if err != nil {
			return nil, err
		}
		module = wasm.AppendCustom(module, s.section, b)
	}
	return module, nil
}
