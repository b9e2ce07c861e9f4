package main

import (
	"time"

	"github.com/spf13/cobra"

	"ganglion/appliance"
)

func newPluginRun(e *env, s *settings) *cobra.Command {
	var g generation
	var prompt, config, onError string
	c := &cobra.Command{
		Use:   "run [flags] --prompt TEXT FILE",
		Short: "Complete one prompt with a plugin",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("prompt") {
				return fail(exitUsage, "", "--prompt is needed")
			}
			file, err := readPlugin(args[0])
			if err != nil {
				return err
			}
			p, end, err := s.openPlugin(cmd.Context(), file, s.pluginHost(e.logger()))
			if err != nil {
				return err
			}
			defer end()
			r, err := g.request(cmd, s, prompt)
			if err != nil {
				return err
			}
			r.ID, r.Received, r.Route = appliance.NewID(), time.Now(), "cli plugin run"
			choice := appliance.PluginChoice{Name: p.Manifest().Name, OnError: onError, At: "--plugin-config"}
			if config != "" {
				choice.Config = []byte(config)
			}
			r.Plugins = []appliance.PluginChoice{choice}
			config := s.service(nil, e.logger())
			config.Plugins = pluginFile{p, e.logger()}
			return complete(cmd.Context(), e, s, r, config, slotsFor(p.Manifest()), g.showStats)
		},
	}
	g.flags(c)
	c.Flags().StringVar(&prompt, "prompt", "", "`TEXT` to complete")
	c.Flags().StringVar(&config, "plugin-config", "", "configuration of the plugin, a `JSON` object")
	c.Flags().StringVar(&onError, "on-error", "", "what happens when the plugin fails: `fail|skip|restart` (default: as its manifest says)")
	s.modelFlags(c)
	s.guessFlags(c)
	s.loraFlag(c)
	return c
}
