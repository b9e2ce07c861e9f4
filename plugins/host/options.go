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
	MaxStoreBytes      = 1 << 20 // of a plugin
	maxLogLine         = 4 << 10
	maxLog             = 64 << 10 // of a request
	maxMeta            = 4 << 10
	maxStoreKey        = 256
	maxStoreValue      = 64 << 10
	maxWrites          = 4096 // of a request
	hostCallFuel       = 200  // and 1 for 16 bytes
	bytesPerFuel       = 16
	maxErrorText       = 1 << 10
	maxMaskArgument    = 4 << 10
	maxMaskWork        = 1 << 29 // instructions of an expression times bytes of a vocabulary
	maxGoldenTests     = 1000
	memoryPage         = 64 << 10
)

// Options say how plugins run. They are not changed after New.
type Options struct {
	// Compile makes the command line of a process that calls Child with these arguments.
	// nil compiles in this process, without limits: for tools that only look at a file.
	Compile func(ctx context.Context, args ...string) *exec.Cmd
	// CompileTime is how long the child may take; 0 is DefaultCompileTime.
	CompileTime time.Duration
	// Cache is the folder of compiled plugins, made with mode 0700; "" keeps none.
	Cache string
	// Interpreter runs guests in the interpreter, as machines without a compiler do.
	Interpreter bool
	// AllowSlow lets plugins with full and mask views run in the interpreter.
	AllowSlow bool
	// StepFuel caps what a manifest may ask for plan, logits, choose, accept and text;
	// 0 is abi.MaxStepFuel.
	StepFuel int64
	// Idle is how many unused instances a plugin keeps; 0 is DefaultIdle, < 0 none.
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

// Validate checks the options.
func (o *Options) Validate() error {
	switch {
	case o.CompileTime < 0:
		return fmt.Errorf("host: compile time %v", o.CompileTime)
	case o.StepFuel < 0 || o.StepFuel > abi.MaxStepFuel:
		return fmt.Errorf("host: fuel %d of a step, at most %d", o.StepFuel, abi.MaxStepFuel)
	case o.Compile != nil && o.Cache == "":
		return errors.New("host: compiling in a child process needs a cache folder")
	}
	return nil
}
