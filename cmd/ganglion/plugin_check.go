package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/plugins/abi"
	"ganglion/plugins/builtin"
	"ganglion/plugins/plugintest"
)

func newPluginCheck(e *env, s *settings) *cobra.Command {
	var asJSON bool
	var config, badge string
	var only []string
	var tokens int
	c := &cobra.Command{
		Use:   "test [flags] FILE",
		Short: "Test whether a plugin keeps the contract, in ten checks",
		Long:  "Tests a plugin without a model. The checks: " + strings.Join(plugintest.Names(), ", ") + ".",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, n := range only {
				if !slices.Contains(plugintest.Names(), n) {
					return fail(exitUsage, "", "--only %q is none of %s", n, strings.Join(plugintest.Names(), ", "))
				}
			}
			if tokens < 100 {
				return fail(exitUsage, "", "--tokens %d is less than 100", tokens)
			}
			file, err := readPlugin(args[0])
			if err != nil {
				return err
			}
			o := plugintest.Options{Host: s.pluginHost(e.logger()), Others: builtinFiles(), Only: only, Tokens: tokens}
			if config != "" {
				if _, err := abi.ParseJSON([]byte(config)); err != nil {
					return fail(exitUsage, "", "--plugin-config: %v", err)
				}
				o.Config = json.RawMessage(config)
			}
			r, err := plugintest.Check(cmd.Context(), file, o)
			if err != nil {
				return err
			}
			if badge != "" {
				b, err := json.Marshal(r.Badge())
				if err == nil {
					err = os.WriteFile(badge, append(b, '\n'), 0o644)
				}
				if err != nil {
					return fail(exitFailure, "", "%v", err)
				}
			}
			if asJSON {
				err = e.json(r)
			} else {
				err = e.printReport(r)
			}
			if err == nil && !r.Passed {
				return fail(exitFailure, "", "%s does not keep the contract", args[0])
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	c.Flags().StringVar(&config, "plugin-config", "", "configuration to test with, a `JSON` object (default: the first that the plugin is interested in)")
	c.Flags().StringVar(&badge, "badge", "", "write a badge in the form of shields.io to `FILE`")
	c.Flags().StringSliceVar(&only, "only", nil, "make only the `CHECKS` of these names, and the first two")
	c.Flags().IntVar(&tokens, "tokens", 10_000, "`N` tokens of the long run")
	return c
}

// builtinFiles are the plugins that come with the program.
func builtinFiles() (files [][]byte) {
	for _, n := range builtin.Names() {
		if b, ok := builtin.Module(n); ok {
			files = append(files, b)
		}
	}
	return files
}

func (e *env) printReport(r *plugintest.Report) error {
	if r.Plugin != "" {
		fmt.Fprintln(e.stdout, identity(r.Plugin, r.Version, r.Hash))
	}
	table := [][]string{}
	for _, c := range r.Checks {
		word, what := "ok", strings.Join(c.Notes, "; ")
		switch {
		case c.Skipped != "":
			word, what = "-", c.Skipped
		case !c.Passed:
			word, what = "FAILED", c.Error
		}
		table = append(table, []string{c.Name, word, strconv.Itoa(int(c.MS)) + " ms", what})
	}
	if err := e.table(table); err != nil {
		return err
	}
	if len(r.Hooks) == 0 {
		return nil
	}
	fmt.Fprintln(e.stdout)
	return e.table(hookTable(r.Hooks))
}

// hookTable shows figures in the order in which hooks are called.
func hookTable(hooks map[string]plugintest.Figure) [][]string {
	table := [][]string{{"HOOK", "CALLS", "p50 µs", "p99 µs", "max µs", "p50 FUEL", "p99 FUEL", "max FUEL"}}
	for h := abi.HookOpen; h < abi.Hooks; h++ {
		if f, ok := hooks[h.String()]; ok {
			us := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
			fuel := func(v int64) string { return strconv.FormatInt(v, 10) }
			table = append(table, []string{h.String(), strconv.Itoa(f.Calls), us(f.P50US), us(f.P99US), us(f.MaxUS), fuel(f.P50Fuel), fuel(f.P99Fuel), fuel(f.MaxFuel)})
		}
	}
	return table
}
