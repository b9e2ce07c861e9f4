package appliancetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"ganglion/appliance"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
)

// Plugins are plugins written in Go. The zero value has none; it is safe for concurrent
// use.
type Plugins struct {
	// Wait, when not nil, is what a plugin waits for before it opens.
	Wait func(ctx context.Context, name string) error

	mu    sync.Mutex
	list  map[string]*plugin
	refs  int
	ended map[string][]bool
	bad   map[string]int // failures by settings
}

var _ appliance.Plugins = (*Plugins)(nil)

// plugin is one of them.
type plugin struct {
	*Plugins
	code   *pipelinetest.Plugin
	opened func(appliance.PluginOpen)
}

// Add adds a plugin under the name of its manifest, with a schema of its configuration;
// an empty one allows none. What opens an instance is shown to opened, where it is not
// nil.
func (p *Plugins) Add(code *pipelinetest.Plugin, schema string, opened func(appliance.PluginOpen)) *Plugins {
	if schema == "" {
		schema = `{"type":"object","additionalProperties":false}`
	}
	s, err := abi.ParseSchema([]byte(schema))
	if err != nil {
		panic(err)
	}
	m := &code.Manifest
	m.Schema = s
	if m.Hooks == 0 {
		m.Hooks = code.Has()
	}
	if m.Version == "" {
		m.Version = "1.0.0"
	}
	if m.Draft == "" {
		m.Draft = abi.DraftSnapshot
	}
	if m.OnError == "" {
		m.OnError = abi.OnErrorFail
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil {
		p.list = map[string]*plugin{}
	}
	p.list[m.Name] = &plugin{p, code, opened}
	return p
}

// Find implements appliance.Plugins; a range of versions is one version. A plugin "loading"
// is never ready.
func (p *Plugins) Find(ctx context.Context, name, versions string) (appliance.Plugin, error) {
	if name == "loading" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.list[name]
	switch {
	case g == nil || versions != "" && versions != g.code.Manifest.Version:
		return nil, fmt.Errorf("%w: %s", appliance.ErrNoPlugin, name)
	case name == "quarantined":
		return nil, fmt.Errorf("it failed three times")
	}
	p.refs++
	return g, nil
}

// Inline implements appliance.Plugins: code is the name of a plugin.
func (p *Plugins) Inline(ctx context.Context, code string) (appliance.Plugin, error) {
	return p.Find(ctx, code, "")
}

// Ended implements appliance.Plugins.
func (p *Plugins) Ended(r *appliance.PluginReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = map[string][]bool{}
	}
	p.ended[r.Hash] = append(p.ended[r.Hash], r.Error != "")
	if r.Error != "" && r.Settings != "" {
		if p.bad == nil {
			p.bad = map[string]int{}
		}
		p.bad[r.Settings]++
	}
}

// Usable implements appliance.Plugin: settings may fail three times.
func (g *plugin) Usable(settings string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bad[settings] >= 3 {
		return errors.New("it failed three times with them")
	}
	return nil
}

// Failures returns by hash whether each request ended with a failure.
func (p *Plugins) Failures() map[string][]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.ended)
}

// Held returns how many plugins were found and not given back.
func (p *Plugins) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refs
}

func (g *plugin) Manifest() *abi.Manifest { return &g.code.Manifest }
func (g *plugin) Hash() string            { return "hash of " + g.code.Manifest.Name }

func (g *plugin) Open(ctx context.Context, o appliance.PluginOpen) (pipeline.Instance, error) {
	if g.Wait != nil {
		if err := g.Wait(ctx, g.code.Manifest.Name); err != nil {
			return nil, err
		}
	}
	if g.opened != nil {
		g.opened(o)
	}
	g.mu.Lock()
	defer g.mu.Unlock() // Opened is counted
	s := g.code.Spec(o.Size)
	return s.Open(o.Spent)
}

func (g *plugin) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refs--
}
