package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"ganglion/appliance"
	"ganglion/gpu"
	"ganglion/gpu/engine"
)

// Exit codes. They are part of the command line's contract (README and rootLong).
const (
	exitOK          = 0
	exitFailure     = 1   // anything not listed here
	exitUsage       = 2   // wrong flags, arguments or settings
	exitModel       = 3   // no model, or a model file that does not load
	exitUnavailable = 4   // a backend that cannot be had
	exitMemory      = 5   // not enough memory
	exitInterrupted = 130 // Ctrl+C or SIGTERM
)

// failure is an error with a hint and an exit code.
type failure struct {
	err  error
	hint string
	code int
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code int, hint string, format string, args ...any) error {
	return &failure{err: fmt.Errorf(format, args...), hint: hint, code: code}
}

// report prints an error as one line and its hint, and returns the exit code.
func (e *env) report(ctx context.Context, err error) int {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	f := classify(err)
	fmt.Fprintf(e.stderr, "ganglion: error: %s\n", line(f.err.Error()))
	if f.hint != "" {
		fmt.Fprintf(e.stderr, "ganglion: hint: %s\n", line(f.hint))
	}
	return f.code
}

// line makes one line of a text that may hold anything, such as a file name or the
// joined lines of several errors, and keeps what would steer a terminal out of it.
func line(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// codes is the one table from an appliance error to exit code. What is not here is
// the fault of the request itself.
var codes = map[appliance.Code]int{
	appliance.CodeNoModel:     exitModel,
	appliance.CodeModelFile:   exitModel,
	appliance.CodeOutOfMemory: exitMemory,
	appliance.CodeCancelled:   exitInterrupted,
	appliance.CodeInternal:    exitFailure,
	appliance.CodeShutdown:    exitFailure,
	appliance.CodeQueueFull:   exitFailure,
}

func classify(err error) *failure {
	var f *failure
	var a *appliance.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &a):
		code, ok := codes[a.Code]
		if !ok {
			code = exitUsage
		}
		return &failure{err: err, code: code}
	case errors.Is(err, engine.ErrTooLarge):
		return &failure{err: err, code: exitMemory, hint: "a smaller --context or fewer --slots need less memory"}
	case errors.Is(err, gpu.ErrBackend):
		return &failure{err: err, code: exitUnavailable, hint: "`ganglion doctor` shows what this version can compute on"}
	}
	return &failure{err: err, code: exitFailure}
}
