package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
)

// What a child may take of a processor and of memory. Go has memory for each processor that
// it may use, which counts: on a machine of 64 a compiler would have less for its work than
// elsewhere.
const (
	childSeconds = 10
	childBytes   = 1 << 30
	childThreads = 4
)

// moduleFile is what the child reads, in the folder that it is told.
const moduleFile = "module.wasm"

// compile makes a module ready to be instantiated. A compiler is the largest part of the
// pipeline and the one with the longest history of surprises, so it runs in a child with
// limits; this process only maps the result.
func (r *Runtime) compile(ctx context.Context, module []byte) (wazero.CompiledModule, error) {
	if err := r.compiling.take(ctx); err != nil {
		return nil, err
	}
	defer r.compiling.leave()
	if r.store == nil {
		return r.compileHere(ctx, module)
	}
	key := sha256.Sum256(module)
	if !r.store.good(key) {
		if err := r.compileInChild(ctx, key, module); err != nil {
			return nil, err
		}
	}
	c, err := r.compileHere(ctx, module)
	if err == nil {
		return c, nil
	}
	// The code is ours and wazero does not take it all the same: it is of no use.
	r.store.drop(key)
	return nil, err
}

// compileHere compiles, or finds the compiled module in memory or in the cache.
func (r *Runtime) compileHere(ctx context.Context, module []byte) (c wazero.CompiledModule, err error) {
	defer func() {
		if v := recover(); v != nil {
			c, err = nil, fmt.Errorf("compile: %v", v)
		}
	}()
	if c, err = r.wasm.CompileModule(ctx, module); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	return c, nil
}

// compileInChild fills the cache.
func (r *Runtime) compileInChild(ctx context.Context, key [sha256.Size]byte, module []byte) (err error) {
	r.store.drop(key)
	dir, err := os.MkdirTemp(r.store.dir, buildPattern)
	if err != nil {
		return transient("compile: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, moduleFile), module, 0o600); err != nil {
		return transient("compile: %w", err)
	}
	most := r.o.CompileTime
	if most == 0 {
		most = DefaultCompileTime
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := r.o.Compile(limited, dir)
	cmd.WaitDelay = time.Second
	boundThreads(cmd)
	var said tail
	cmd.Stdout, cmd.Stderr = nil, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if limited.Err() != nil {
			return transient("compile: not done after %v", most)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !exit.Exited() { // not begun, or killed
			return transient("compile: the child ended: %w%s", err, said.first())
		}
		return fmt.Errorf("compile: the child ended: %w%s", err, said.first())
	}
	if err := r.store.take(key, dir); err != nil {
		return transient("compile: %w", err)
	}
	return nil
}

// boundThreads has a child work in few threads from its first moment on.
func boundThreads(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS="+strconv.Itoa(min(runtime.GOMAXPROCS(0), childThreads)))
}

// ErrTransient is a failure of Load that says more about the machine than about the file:
// the same file may load later.
var ErrTransient = errors.New("host: it may load later")

func transient(format string, args ...any) error { return &transientError{fmt.Errorf(format, args...)} }

// transientError reads as the failure alone.
type transientError struct{ error }

func (e *transientError) Unwrap() []error { return []error{e.error, ErrTransient} }

// tail keeps the beginning of what a child writes to its standard error: a Go program
// that dies says why first.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 2 << 10
	if room := most - len(t.text); room > 0 {
		t.text = append(t.text, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

// first is the first line, after a colon.
func (t *tail) first() string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(t.text), []byte("\n"))
	if len(line) == 0 {
		return ""
	}
	return ": " + strings.ToValidUTF8(string(line), "?")
}

// Child compiles the module that compileInChild left in a folder, under limits. It runs in
// a process of its own; args are those that Options.Compile was called with.
func Child(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("host: child: %d arguments", len(args))
	}
	if err := limitChild(childSeconds, childBytes); err != nil {
		return fmt.Errorf("host: child: %w", err)
	}
	closeNetwork() // where there is no such thing the rest holds all the same
	module, err := readBounded(filepath.Join(args[0], moduleFile), 4*MaxFileBytes)
	if err != nil {
		return fmt.Errorf("host: child: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(args[0])
	if err != nil {
		return fmt.Errorf("host: child: %w", err)
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(false).WithCompilationCache(cache))
	if _, err := rt.CompileModule(ctx, module); err != nil {
		return fmt.Errorf("host: child: %w", err)
	}
	return errors.Join(rt.Close(ctx), cache.Close(ctx))
}
