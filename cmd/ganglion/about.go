package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/gpu/engine"
)

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs(""),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.stdout, "ganglion %s (kernels %s, %s, %s/%s)\n", version, engine.KernelSet, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// table prints rows of columns that line up.
func (e *env) table(rows [][]string) error {
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i, cell := range r {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, line(cell))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func newList(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"}, Short: "List the model files found on this machine", Args: noArgs("--model-dir DIR looks into another folder"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := s.discover(cmd.Context())
			if asJSON {
				return e.json(append([]appliance.Found{}, found...))
			}
			if len(found) == 0 {
				e.note("no model was found; put a .gguf file into %s", s.modelsDir())
				return nil
			}
			rows := [][]string{{"NAME", "SIZE", "SOURCE", "PATH"}}
			for _, f := range found {
				size := bytesText(f.Bytes)
				if !f.Available {
					size = "-"
				}
				row := []string{f.Name, size, f.Source, f.Path}
				if f.Note != "" || !f.Available {
					row = append(row, "("+orElse(f.Note, "not available now")+")")
				}
				rows = append(rows, row)
			}
			return e.table(rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	s.modelFlags(c)
	return c
}

// orElse is s, or other where s is empty.
func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func newPaths(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "paths [flags]", Short: "Print where settings, data, state and cache live", Args: noArgs(""),
		Annotations: map[string]string{withoutSettings: "yes"},
		RunE: func(*cobra.Command, []string) error {
			if s.broken != nil {
				e.note("settings that cannot be read are not looked at: %v", s.broken)
			}
			rows := [][]string{{"config", s.paths.Config}, {"config_file", s.configFile}, {"data", s.paths.Data}, {"models", s.modelsDir()},
				{"state", s.paths.State}, {"log", s.logPath()}, {"cache", s.paths.Cache}}
			if !asJSON {
				return e.table(rows)
			}
			out := map[string]string{}
			for _, r := range rows {
				out[r[0]] = r[1]
			}
			return e.json(out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	s.serveFlags(c)
	return c
}

func newConfig(e *env, s *settings) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "config [flags]", Short: "Print every setting, its value and where it comes from", Args: noArgs("settings are changed in the file that `ganglion paths` shows"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return e.json(s.resolved)
			}
			rows := [][]string{{"SETTING", "VALUE", "FROM"}}
			for _, r := range s.resolved {
				rows = append(rows, []string{r.Name, orElse(r.Value, "-"), r.Origin})
			}
			return e.table(rows)
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
		Args:  noArgs("name the model with --model and the executable to write with --out"),
		RunE: func(c *cobra.Command, _ []string) error {
			if s.Model == "" || out == "" {
				return fail(exitUsage, "for example --model gemma.gguf --out ganglion-gemma", "--model and --out are needed")
			}
			if e.executable == "" {
				return fail(exitFailure, "", "this system does not tell where the running program is")
			}
			if err := s.checkBundle(c, out); err != nil {
				return err
			}
			update, end := e.progress("writing " + filepath.Base(out))
			err := appliance.AppendModel(out, e.executable, s.bundled(), update)
			end()
			if err != nil {
				return err
			}
			e.note("wrote %s; start it with no arguments, or double-click it", out)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "executable to write, a `FILE`")
	s.modelFlags(c)
	return c
}

// bundled are the files that the settings name.
func (s *settings) bundled() appliance.Bundled {
	b := appliance.Bundled{Model: s.Model}
	if s.MMProj != appliance.NoEncoder {
		b.Encoder = s.MMProj
	}
	return b
}

// checkBundle refuses what would make an executable that does not start, or destroy
// the model.
func (s *settings) checkBundle(c *cobra.Command, out string) error {
	found, _ := s.named(c.Context())
	f, err := s.openFile(found)
	if err != nil {
		return err
	}
	defer f.Close()
	if n := len(f.Parts()); n > 1 {
		return fail(exitModel, "join the parts into one file first", "%s is split into %d files; a model inside an executable must be one", found.Path, n)
	}
	a, errA := os.Stat(out)
	b, errB := os.Stat(s.Model)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return fail(exitUsage, "", "--out is the model file itself")
	}
	return nil
}
