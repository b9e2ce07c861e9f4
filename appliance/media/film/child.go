package film

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// What a child may take.
const (
	childPages   = 512 << 20 >> 16 // of 64 KiB: memory of the module
	childBytes   = 3 << 30         // private memory of the process, with what compiling takes
	childSeconds = 900             // of processors; engines set tighter ones by the clock
	childThreads = 4               // Go has memory for each processor that it may use, which counts
	inputBytes   = 256 << 20
	moduleBytes  = 64 << 20
)

// features are what the module is compiled for.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling |
	experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesTailCall

// Child is the life of the process that Options.Command starts: args are those that the
// command was called with. It runs the module that is built in.
func Child(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	go endWith(os.Getppid(), time.Second)
	if err := limitChild(childSeconds, childBytes); err != nil {
		return fmt.Errorf("film: child: %w", err)
	}
	if err := child(module, args, stdin, stdout, stderr); err != nil {
		return fmt.Errorf("film: child: %w", err)
	}
	return nil
}

// endWith ends this process when the one that started it is gone, which tells nobody when
// it is killed: looked at every so often.
func endWith(parent int, often time.Duration) {
	for os.Getppid() == parent {
		time.Sleep(often)
	}
	os.Exit(1)
}

// child compiles the module into the cache folder args[0], or finds it there, and runs
// it with args[2:] on the file that stdin holds; args[1] is "run", or "compile" for the
// first part alone.
func child(packed string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) < 2 || args[1] != "run" && args[1] != "compile" {
		return fmt.Errorf("%d arguments", len(args))
	}
	code, err := unpack(packed)
	if err != nil {
		return err
	}
	if args[1] == "compile" {
		fmt.Fprintln(stdout, "unpacked") // a measure of how fast this machine is
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), max(runtime.GOMAXPROCS(0)/2, 1))
	cache, err := wazero.NewCompilationCacheWithDir(args[0])
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCoreFeatures(features).
		WithMemoryLimitPages(childPages).WithDebugInfoEnabled(false)
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	defer rt.Close(ctx)
	program, err := rt.CompileModule(ctx, code)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	if args[1] == "compile" {
		return nil
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return err
	}
	input, err := io.ReadAll(io.LimitReader(stdin, inputBytes+1))
	if err != nil || len(input) > inputBytes {
		return errors.Join(err, fmt.Errorf("the input has %d bytes or more", len(input)))
	}
	_, err = rt.InstantiateModule(ctx, program, wazero.NewModuleConfig().
		WithArgs(args[2:]...).WithStdout(stdout).WithStderr(stderr).
		WithSysNanotime().WithSysWalltime().
		WithFSConfig(wazero.NewFSConfig().WithFSMount(oneFile{data: input}, "/")))
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		return nil
	}
	return err
}

// unpack gives the module's bytes.
func unpack(packed string) ([]byte, error) {
	if packed == "" {
		return nil, ErrNoDecoder
	}
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the module: %w", err)
	}
	var code bytes.Buffer
	code.Grow(21 << 20)
	if n, err := code.ReadFrom(io.LimitReader(z, moduleBytes)); err != nil || n == moduleBytes {
		return nil, fmt.Errorf("the module: %d bytes, %w", n, err)
	}
	return code.Bytes(), nil
}

// inputName is the one file that the module sees.
const inputName = "film"

// oneFile is a file system with the input and nothing else, which cannot be written to.
type oneFile struct{ data []byte }

func (o oneFile) Open(name string) (fs.File, error) {
	switch name {
	case ".":
		return folder{}, nil
	case inputName:
		return &openFile{Reader: bytes.NewReader(o.data)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// openFile reads and seeks.
type openFile struct{ *bytes.Reader }

func (f *openFile) Stat() (fs.FileInfo, error) { return entry{size: f.Reader.Size()}, nil }
func (f *openFile) Close() error               { return nil }

type folder struct{}

func (folder) Stat() (fs.FileInfo, error) { return entry{dir: true}, nil }
func (folder) Read([]byte) (int, error)   { return 0, errors.New("film: a folder") }
func (folder) Close() error               { return nil }

// entry describes the input or the folder that it lies in.
type entry struct {
	size int64
	dir  bool
}

func (e entry) Name() string {
	if e.dir {
		return "."
	}
	return inputName
}
func (e entry) Size() int64 { return e.size }
func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o500
	}
	return 0o400
}
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.dir }
func (e entry) Sys() any           { return nil }
