package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootLong = `Runs a language model on this machine and serves it through a completion API
and a page. Without a verb it serves and opens the page in the browser.

Exit codes: 0 done, 1 failed, 2 wrong flags, arguments or settings, 3 no model or
a model file that does not load, 4 a backend that cannot be had, 5 not enough
memory, 130 interrupted.`

// newRoot is the command line: the verbs, and the desktop mode when there is none.
func newRoot(e *env) *cobra.Command {
	cobra.MousetrapHelpText = "" // on Windows a double-click shall start the desktop mode, not a lecture
	s := &settings{e: e}
	root := &cobra.Command{
		Use:           "ganglion",
		Short:         "Run a language model on this machine",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fail(exitUsage, "`ganglion help` lists the verbs", "unknown verb %q", args[0])
			}
			return nil
		},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if e.quiet && e.verbose {
				return fail(exitUsage, "", "--quiet and --verbose contradict each other")
			}
			return nil
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return s.load(c) },
		RunE:    func(c *cobra.Command, _ []string) error { return desktop(c.Context(), e, s) },
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fail(exitUsage, flagHint(c, err), "%v", err)
	})
	root.PersistentFlags().BoolVarP(&e.quiet, "quiet", "q", false, "print nothing but results and errors")
	root.PersistentFlags().BoolVarP(&e.verbose, "verbose", "v", false, "print a line for each request too: route, status and time, never its text")
	s.serveFlags(root)
	for _, v := range []*cobra.Command{
		newServe(e, s), newRun(e, s), newTokenize(e, s), newDetokenize(e, s), newLogits(e, s), newInspect(e), newBench(e, s),
		newList(e, s), newLog(e, s), newPlugin(e, s), newDoctor(e, s), newConfig(e, s), newPaths(e, s), newBundle(e, s),
	} {
		v.PreRunE = func(c *cobra.Command, _ []string) error { return s.load(c) }
		v.DisableFlagsInUseLine = true
		root.AddCommand(v)
	}
	for _, v := range []*cobra.Command{newLicenses(e), newVersion(e), newInternal(e)} { // no settings
		v.DisableFlagsInUseLine = true
		root.AddCommand(v)
	}
	return root
}

// elsewhere are flags that other servers of models take, and what they are called here.
var elsewhere = map[string]string{
	"host": "listen", "port": "listen", "addr": "listen", "address": "listen", "bind": "listen",
	"m": "model", "c": "context", "ctx-size": "context", "n-ctx": "context", "np": "slots", "parallel": "slots",
	"t": "threads", "n": "max-tokens", "n-predict": "max-tokens", "api-key": "key-file", "api-key-file": "key-file",
	"ngl": "backend", "gpu-layers": "backend", "n-gpu-layers": "backend", "md": "draft-model", "model-draft": "draft-model",
	"image-max-tokens": "image-tokens", "cache-type-k": "kv", "cache-type-v": "kv", "temp": "temperature",
}

// flagHint says what a flag that is not known is called here, where the verb takes it.
func flagHint(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		if at := unknown.GetSpecifiedShortnames(); at != "" {
			name = at
		}
		if f := c.Flags().Lookup(elsewhere[name]); f != nil {
			return fmt.Sprintf("here it is --%s %s: %s", f.Name, f.Value.Type(), f.Usage)
		}
	}
	return "`" + c.CommandPath() + " --help` lists the flags"
}

// noArgs refuses arguments; hint says what was perhaps meant.
func noArgs(hint string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fail(exitUsage, hint, "%s takes no arguments, got %q", c.Name(), args[0])
		}
		return nil
	}
}

// atMostOne refuses a second argument, which most often is a text without quotes.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fail(exitUsage, "put quotes around it", "%s takes one %s, got %d arguments", c.Name(), what, len(args))
		}
		return nil
	}
}
