package main

import (
	"github.com/spf13/cobra"
)

// newRoot is the command line: the verbs, and the desktop mode when there is none.
func newRoot(e *env) *cobra.Command {
	s := &settings{e: e}
	root := &cobra.Command{
		Use:           "ganglion",
		Short:         "Run a language model on this machine",
		Long:          "Runs a language model on this machine and serves it through a completion API and a page.\nWithout a verb it opens the page in the browser.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fail(exitUsage, "`ganglion help` lists the verbs", "unknown verb %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.load(cmd); err != nil {
				return err
			}
			return desktop(cmd.Context(), e, s)
		},
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fail(exitUsage, "`"+c.CommandPath()+" --help` lists the flags", "%v", err)
	})
	root.PersistentFlags().BoolVarP(&e.quiet, "quiet", "q", false, "print nothing but results and errors")
	s.serveFlags(root)
	verbs := []*cobra.Command{
		newServe(e, s), newRun(e, s), newTokenize(e, s), newDetokenize(e, s), newLogits(e, s), newInspect(e), newBench(e, s),
		newList(e, s), newLog(e, s), newDoctor(e, s), newConfig(e, s), newPaths(e, s), newBundle(e, s), newVersion(e),
	}
	for _, v := range verbs {
		v.PreRunE = usageArgs(v, s)
		root.AddCommand(v)
	}
	return root
}

// usageArgs makes wrong arguments a usage error and resolves the settings first.
func usageArgs(v *cobra.Command, s *settings) func(*cobra.Command, []string) error {
	args := v.Args
	v.Args = func(c *cobra.Command, given []string) error {
		if args == nil {
			return nil
		}
		if err := args(c, given); err != nil {
			return fail(exitUsage, "`"+c.CommandPath()+" --help` shows how", "%v", err)
		}
		return nil
	}
	return func(c *cobra.Command, _ []string) error { return s.load(c) }
}
