package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ganglion/appliance"
	"ganglion/plugins/host"
)

// pluginFile is the one plugin that `ganglion plugin run` runs, as the source of plugins of
// a service. It remembers nothing from one request to the next.
type pluginFile struct {
	p   *host.Plugin
	log *slog.Logger
}

var _ appliance.Plugins = pluginFile{}

// Find implements appliance.Plugins.
func (f pluginFile) Find(_ context.Context, name, _ string) (appliance.Plugin, error) {
	if name != f.p.Manifest().Name || !f.p.Retain() {
		return nil, fmt.Errorf("%w: %s", appliance.ErrNoPlugin, name)
	}
	return hosted{f.p, &plugins{log: f.log}, new(host.LogCount)}, nil
}

// Inline implements appliance.Plugins: the one plugin is all there is.
func (pluginFile) Inline(context.Context, string) (appliance.Plugin, error) {
	return nil, errors.New("it takes the plugin of the command line alone")
}

// Ended implements appliance.Plugins.
func (pluginFile) Ended(*appliance.PluginReport) {}
