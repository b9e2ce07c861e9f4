package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

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

// pluginsOf is the same of a request that failed.
func pluginsOf(err error) string {
	var e *appliance.Error
	if !errors.As(err, &e) {
		return ""
	}
	return appliance.PluginSummary(e.Reports)
}

// tellPlugins writes the header, or the trailer where the answer has begun.
func tellPlugins(w *response, summary string) {
	switch {
	case summary == "":
	case w.status == 0:
		w.Header().Set(headerPlugins, summary)
	default:
		w.Header().Set(http.TrailerPrefix+headerPlugins, summary)
	}
}

// pluginMeta is what plugins left as it goes out; nil where that is nothing.
func pluginMeta(values map[string]string) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for key, value := range values {
		if out == nil {
			out = make(map[string]json.RawMessage, len(values))
		}
		if json.Valid([]byte(value)) {
			out[key] = json.RawMessage(value)
		}
	}
	return out
}

// listPlugins tells the page which plugins there are.
func (s *Server) listPlugins(w *response, _ *http.Request, _ httprouter.Params) error {
	list := api.PluginList{Plugins: []api.PluginItem{}, Rejected: []api.RejectedPlugin{}, Defaults: []string{}, Required: []string{}, Shadow: []string{}}
	if s.cfg.Plugins != nil {
		list = s.cfg.Plugins.List()
		list.Upload = s.cfg.PluginUpload
	}
	w.json(http.StatusOK, encode(list))
	return nil
}

// clearPlugin takes a plugin out of quarantine.
func (s *Server) clearPlugin(w *response, r *http.Request, _ httprouter.Params) error {
	data, release, err := s.readBody(w, r, smallBody)
	defer release()
	if err != nil {
		return err
	}
	hash, err := api.DecodeClear(data)
	if err != nil {
		return err
	}
	if s.cfg.Plugins == nil {
		return appliance.Errorf(appliance.CodeNotFound, "hash", "hash: there is no such plugin")
	}
	cleared, err := s.cfg.Plugins.Clear(hash)
	if err != nil {
		return err
	}
	w.json(http.StatusOK, encode(api.Cleared{Cleared: cleared}))
	return nil
}

// uploadPlugin takes a plugin's file, where the operator allows that. It is tried before
// it gets its name, so nothing stays of one that does not work.
func (s *Server) uploadPlugin(w *response, r *http.Request, p httprouter.Params) error {
	if s.cfg.Plugins == nil || !s.cfg.PluginUpload {
		w.Header().Set("Connection", "close") // the body will not be read
		return appliance.Errorf(appliance.CodeNotFound, "", "this server takes no plugins; its operator allows it with --plugin-upload")
	}
	file, release, err := s.readBody(w, r, s.cfg.MaxPlugin)
	defer release()
	if err != nil {
		return err
	}
	added, err := s.cfg.Plugins.Add(r.Context(), p.ByName("name"), file)
	var known *appliance.Error
	switch {
	case err == nil:
		w.json(http.StatusCreated, encode(added))
		return nil
	case errors.As(err, &known), r.Context().Err() != nil:
		return err
	}
	return diskError(err)
}
