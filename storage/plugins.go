package storage

import (
	"encoding/json"
	"fmt"

	"ganglion/appliance"
)

// formatPlugins returns what the columns plugins and plugin_meta hold of a record.
func formatPlugins(r *appliance.Record) (plugins, meta string, err error) {
	if len(r.Plugins) > 0 {
		b, err := json.Marshal(r.Plugins)
		if err != nil {
			return "", "", fmt.Errorf("storage: plugins: %w", err)
		}
		plugins = string(b)
	}
	if len(r.PluginMeta) > 0 {
		b, err := json.Marshal(r.PluginMeta)
		if err != nil {
			return "", "", fmt.Errorf("storage: what plugins left: %w", err)
		}
		meta = string(b)
	}
	return plugins, meta, nil
}

// parsePlugins is the inverse of formatPlugins.
func parsePlugins(r *appliance.Record, plugins, meta string) error {
	if plugins != "" {
		if err := json.Unmarshal([]byte(plugins), &r.Plugins); err != nil {
			return fmt.Errorf("plugins: %w", err)
		}
	}
	if meta != "" {
		if err := json.Unmarshal([]byte(meta), &r.PluginMeta); err != nil {
			return fmt.Errorf("what plugins left: %w", err)
		}
	}
	return nil
}

// maxCode is longer than the code of any error of a plugin.
const maxCode = 64

// withoutPluginText leaves out what plugins wrote, which may hold words of the text; what
// they did and cost stays.
func withoutPluginText(r *appliance.Record) {
	r.PluginMeta = nil
	reports := make([]appliance.PluginReport, len(r.Plugins))
	for i, p := range r.Plugins {
		p.Error = p.Code()[:min(len(p.Code()), maxCode)]
		p.Choices = nil
		reports[i] = p
	}
	r.Plugins = reports
}
