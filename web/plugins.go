package web

import (
	"net/http"
	"strings"

	"ganglion/appliance"
	"ganglion/web/api"
)

// headerPlugins names the plugins of a request, where its body does not, and says in the
// answer what they cost. A stream says it in a trailer: only its end knows.
const headerPlugins = "Ganglion-Plugins"

// maxPluginHeader bounds what is read of the header.
const maxPluginHeader = 16 << 10

// pluginHeader takes the plugins of a header where the body names none.
func pluginHeader(h http.Header, req *api.CompletionRequest) error {
	lines := h.Values(headerPlugins)
	if len(lines) == 0 || req.Params.Plugins != nil {
		return nil
	}
	text := strings.Join(lines, ", ")
	if len(text) > maxPluginHeader {
		return appliance.Errorf(appliance.CodeInvalid, headerPlugins, "%s: more than %d bytes", headerPlugins, maxPluginHeader)
	}
	var err error
	req.Params.Plugins, err = appliance.ParsePlugins(text, headerPlugins)
	return err
}

// pluginSummary is what the plugins of the first choice did and cost; empty where there
// were none.
func pluginSummary(results []*appliance.Result) string {
	if len(results) == 0 || results[0] == nil {
		return ""
	}
	return appliance.PluginSummary(results[0].Plugins)
}
