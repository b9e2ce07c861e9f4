package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"ganglion/plugins/plugintest"
)

func newPluginBench(e *env, s *settings) *cobra.Command {
	var asJSON bool
	var config string
	var steps int
	c := &cobra.Command{
		Use:   "bench [flags] FILE",
		Short: "Measure time and fuel of each hook, by size of the view",
		Long:  "Measures a plugin without a model: each hook with 64, 256 and 1,024 candidates, or with a\nvocabulary of 262,144 tokens where it wants whole rows or masks. Of each call the least\ntime of three counts.",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if steps < 1 {
				return fail(exitUsage, "", "--steps %d is less than 1", steps)
			}
			file, err := readPlugin(args[0])
			if err != nil {
				return err
			}
			o := plugintest.Options{Host: s.pluginHost(e.logger())}
			if config != "" {
				o.Config = json.RawMessage(config)
			}
			rows, err := plugintest.Measure(cmd.Context(), file, o, steps)
			if err != nil {
				return fail(exitFailure, "`ganglion plugin test` says more", "%v", err)
			}
			if asJSON {
				return e.json(rows)
			}
			for i, r := range rows {
				if i > 0 {
					fmt.Fprintln(e.stdout)
				}
				fmt.Fprintf(e.stdout, "view %s, %d candidates, %d tokens\n", r.View, r.Candidates, r.Vocab)
				if err := e.table(hookTable(r.Hooks)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&config, "plugin-config", "", "configuration to measure with, a `JSON` object (default: the first that the plugin is interested in)")
	c.Flags().IntVar(&steps, "steps", 200, "`N` tokens of each text")
	return c
}
