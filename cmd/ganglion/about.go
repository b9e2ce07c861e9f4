package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/gpu/engine"
)

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.stdout, "ganglion %s (kernels %s, %s, %s/%s)\n", version, engine.KernelSet, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func newList(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the model files found on this machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := s.discover(cmd.Context())
			if asJSON {
				if found == nil {
					found = []appliance.Found{}
				}
				return json.NewEncoder(e.stdout).Encode(found)
			}
			if len(found) == 0 {
				e.note("no model was found; put a .gguf file into %s", s.modelsDir())
			}
			t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
			for _, f := range found {
				note := f.Note
				if !f.Available && note == "" {
					note = "not available now"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", f.Name, bytesText(f.Bytes), f.Source, f.Path, note)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	s.modelFlags(c)
	return c
}

func newPaths(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "paths", Short: "Print where configuration, data, state and cache live", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := [][2]string{{"config", s.paths.Config}, {"data", s.paths.Data}, {"state", s.paths.State}, {"cache", s.paths.Cache},
				{"models", s.modelsDir()}, {"log", s.logPath()}}
			if asJSON {
				out := map[string]string{}
				for _, r := range rows {
					out[r[0]] = r[1]
				}
				return json.NewEncoder(e.stdout).Encode(out)
			}
			t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%s\n", r[0], r[1])
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	s.serveFlags(c)
	return c
}

func newConfig(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "config", Short: "Print every setting, its value and where it comes from", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(e.stdout).Encode(s.resolved)
			}
			t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
			for _, r := range s.resolved {
				fmt.Fprintf(t, "%s\t%s\t%s\n", r.Name, r.Value, r.Origin)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	s.serveFlags(c)
	return c
}

func newBundle(e *env, s *settings) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "bundle --model FILE --out FILE",
		Short: "Make one executable with the model inside",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.Model == "" || out == "" || e.executable == "" {
				return fail(exitUsage, "", "--model and --out are needed")
			}
			update, end := e.progress("writing " + filepath.Base(out))
			defer end()
			if update == nil {
				update = func(int64, int64) {}
			}
			if err := appliance.AppendModel(out, e.executable, s.Model, update); err != nil {
				return modelError(err)
			}
			e.note("%s", out)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "executable to write")
	s.modelFlags(c)
	return c
}
