// Command ganglion runs a language model on the machine it stands on.
//
// main only wires: flags and files become settings (settings.go), settings become
// an engine, a service, a log and a web server (serve.go), and each verb has a
// file of its own. Errors print one line and then, where it helps, a hint; the
// exit code tells their kind (exit.go).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker (build.sh).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in order; from then on a second one kills.
	context.AfterFunc(ctx, stop)
	code := run(ctx, osEnv(), os.Args[1:])
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, e *env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return e.report(ctx, err)
	}
	return exitOK
}
