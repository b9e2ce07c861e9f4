package main

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"ganglion/appliance"
	"ganglion/plugins/registry"
	"ganglion/web/api"
)

// pluginCosts sums what plugins did and cost since the start, by the hash of their file.
// It is safe for concurrent use.
type pluginCosts struct {
	mu sync.Mutex
	by map[string]*pluginSum
}

type pluginSum struct {
	api.PluginCost
	micros, fuel         float64 // of all tokens
	onceMicros, onceFuel float64 // of all requests
}

// add takes in how one request went.
func (c *pluginCosts) add(r *appliance.PluginReport, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]*pluginSum{}
	}
	s := c.by[r.Hash]
	if s == nil {
		s = &pluginSum{}
		c.by[r.Hash] = s
	}
	n := float64(max(r.Tokens, 1)) // as the report divided
	s.Requests++
	s.Tokens += int64(r.Tokens)
	s.Changed += int64(r.Changed)
	s.micros += r.MicrosPer * n
	s.fuel += r.FuelPer * n
	s.onceMicros += r.OnceUS
	s.onceFuel += float64(r.OnceFuel)
	if r.Error != "" {
		s.Failures++
		s.LastError, s.LastFailureAt = r.Error, &now
	}
}

// of is what one plugin cost.
func (c *pluginCosts) of(hash string) api.PluginCost {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.by[hash]
	if s == nil {
		return api.PluginCost{}
	}
	out := s.PluginCost
	n := float64(max(s.Tokens, 1))
	out.MicrosPer, out.FuelPer = s.micros/n, s.fuel/n
	n = float64(max(s.Requests, 1))
	out.OnceUS, out.OnceFuel = s.onceMicros/n, s.onceFuel/n
	return out
}

// keep forgets all plugins but some, so that a server whose plugins change for years does
// not grow.
func (c *pluginCosts) keep(hashes map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.by, func(hash string, _ *pluginSum) bool { return !hashes[hash] })
}

// pluginPage is the plugins as the web sees them.
type pluginPage struct{ h *house }

// List implements web.Plugins.
func (p pluginPage) List() api.PluginList {
	r := p.h.plugins.registry
	out := api.PluginList{
		Plugins: []api.PluginItem{}, Rejected: []api.RejectedPlugin{}, Loading: !r.Ready(), Folder: p.h.s.pluginDir(),
	}
	list, rejected := r.List()
	hashes := map[string]bool{}
	for i := range list {
		out.Plugins = append(out.Plugins, p.item(&list[i]))
		hashes[list[i].Hash] = true
	}
	p.h.plugins.costs.keep(hashes)
	for _, x := range rejected {
		out.Rejected = append(out.Rejected, api.RejectedPlugin{Place: x.Place, Hash: x.Hash, Reason: x.Reason, At: x.At})
	}
	out.Defaults, out.Required, out.Shadow = p.h.pluginNames()
	return out
}

// item describes one plugin.
func (p pluginPage) item(in *registry.Info) api.PluginItem {
	m := in.Manifest
	item := api.PluginItem{
		Name: m.Name, Version: m.Version, Hash: in.Hash, Place: in.Place, BuiltIn: in.Signature == registry.BuiltIn,
		Signature: string(in.Signature), Key: in.Key, Slot: string(m.Slot), Permissions: permissions(m), OnError: m.OnError,
		Title: m.Title, Description: m.Description, License: m.License, Homepage: m.Homepage, ConfigSchema: m.Schema.Raw(),
		LoadedAt: in.Loaded, Update: in.Update, Cost: p.h.plugins.costs.of(in.Hash),
	}
	if q := in.Quarantined; q != nil {
		item.Quarantine = &api.Quarantine{Reason: q.Reason, Since: q.Since}
	}
	return item
}

// Clear implements web.Plugins.
func (p pluginPage) Clear(hash string) (bool, error) { return p.h.plugins.registry.Clear(hash) }

// Add implements web.Plugins.
func (p pluginPage) Add(ctx context.Context, name string, file []byte) (api.PluginAdded, error) {
	if !registry.AddedName(name) {
		return api.PluginAdded{}, appliance.Errorf(appliance.CodeInvalid, "name", "name: it must be a plain file name that ends in .wasm or .js")
	}
	m, err := p.h.plugins.registry.Add(ctx, name, file)
	switch {
	case errors.Is(err, registry.ErrTaken):
		return api.PluginAdded{}, appliance.Errorf(appliance.CodeExists, "name", "name: %v", err)
	case errors.Is(err, registry.ErrRejected):
		return api.PluginAdded{}, appliance.Errorf(appliance.CodePluginFile, "", "%v", err)
	case err != nil:
		return api.PluginAdded{}, err
	}
	return api.PluginAdded{Name: m.Name, Version: m.Version}, nil
}

// pluginNames are the plugins that the settings name, as far as they concern the model
// that serves.
func (h *house) pluginNames() (byDefault, required, shadow []string) {
	all, byModel, must, err := h.s.PluginChoices()
	if err != nil { // they were checked at the start
		all, must = nil, nil
	}
	if m := h.service.Status().Model; m != nil {
		if list, ok := byModel[m.Name]; ok {
			all = list
		}
	}
	watch, err := h.s.ShadowChoices()
	if err != nil {
		watch = nil
	}
	return choiceNames(all), choiceNames(must), choiceNames(watch)
}

func choiceNames(list []appliance.PluginChoice) []string {
	names := []string{}
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}
