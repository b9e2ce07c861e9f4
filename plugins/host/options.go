package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"

	"ganglion/plugins/abi"
)

// Bounds of loading.
const (
	MaxFileBytes       = 16 << 20
	DefaultCompileTime = 11 * time.Second // by the clock; the child has 10 s of a processor
	DefaultIdle        = 64
	DefaultMemory      = 2 << 30 // bytes of all guests
	idleTime           = time.Minute
	MaxStoreBytes      = 1 << 20 // of a plugin
	maxLogLine         = 4 << 10
	maxLog             = 64 << 10 // bytes of a request, a line counts logLine more
	maxLogLines        = 256      // of a request
	logLine            = 64
	maxMeta            = 4 << 10
	maxStoreKey        = 256
	maxStoreValue      = 64 << 10
	maxWrites          = 4096 // of a request
	maxWriteBytes      = 2 * MaxStoreBytes
	hostCallFuel       = 200 // and 1 for 16 bytes
	bytesPerFuel       = 16
	logFuel            = 4000 // of a line: writing it takes microseconds
	textFuel           = 16   // of a byte of gg_open's text that is read or made
	metaFuel           = 8    // of a byte that is checked
	writeFuel          = 2    // of a write that is looked at
	maxAssetName       = 1 << 10
	restFuel           = 500_000 // after which a call of the host lets others run
	maxErrorText       = 1 << 10
	maxMaskArgument    = 4 << 10
	maxMaskWork        = 1 << 27 // instructions of an expression times bytes of a vocabulary
	maxGoldenTests     = 1000
	maxCodeHere        = 4 << 20 // bytes of code that are compiled in this process
	memoryPage         = 64 << 10
)

// Options say how plugins run. They are not changed after New.
type Options struct {
	// Compile makes the command line of a process that calls Child with these arguments.
	// nil compiles in this process, and only modules of little code.
	Compile func(ctx context.Context, args ...string) *exec.Cmd
	// CompileTime is how long the child may take; 0 is DefaultCompileTime.
	CompileTime time.Duration
	// Cache is the folder of compiled plugins, made with mode 0700; "" keeps none, and is
	// for those without Compile.
	Cache string
	// Interpreter runs guests in the interpreter, as machines without a compiler do.
	Interpreter bool
	// AllowSlow lets plugins with full and mask views run in the interpreter.
	AllowSlow bool
	// StepFuel caps what a manifest may ask for plan, logits, choose, accept and text;
	// 0 is abi.MaxStepFuel.
	StepFuel int64
	// Memory bounds the memories of all guests together, in bytes; 0 is DefaultMemory.
	// Beyond it no plugin opens, and none grows.
	Memory int64
	// Idle is how many unused instances a plugin keeps for a minute; 0 is DefaultIdle, < 0 none.
	Idle int
	// Log gets what plugins log outside of requests; nil is nowhere.
	Log *slog.Logger
}

// idle is how many unused instances a plugin keeps.
func (o *Options) idle() int {
	if o.Idle == 0 {
		return DefaultIdle
	}
	return o.Idle
}

// memory is what all guests may have.
func (o *Options) memory() int64 {
	if o.Memory == 0 {
		return DefaultMemory
	}
	return o.Memory
}

// Validate checks the options.
func (o *Options) Validate() error {
	switch {
	case o.CompileTime < 0:
		return fmt.Errorf("host: compile time %v", o.CompileTime)
	case o.StepFuel < 0 || o.StepFuel > abi.MaxStepFuel:
		return fmt.Errorf("host: fuel %d of a step, at most %d", o.StepFuel, abi.MaxStepFuel)
	case o.Memory < 0:
		return fmt.Errorf("host: memory of %d bytes", o.Memory)
	case (o.Compile == nil) != (o.Cache == ""):
		return errors.New("host: compiling in a child process and a cache folder need each other")
	}
	return nil
}
