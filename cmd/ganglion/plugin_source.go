package main

import (
	"fmt"
	"strings"

	"ganglion/appliance"
	"ganglion/gpu/tokenizer"
	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/pipeline"
)

// pluginFile is the one plugin that `ganglion plugin run` runs, as the source of plugins of
// a service.
type pluginFile struct{ p *host.Plugin }

var (
	_ appliance.Plugins = (*pluginFile)(nil)
	_ appliance.Plugin  = (*pluginFile)(nil)
)

// Find implements appliance.Plugins.
func (f *pluginFile) Find(name, _ string) (appliance.Plugin, error) {
	if name != f.p.Manifest().Name {
		return nil, fmt.Errorf("%w: %s", appliance.ErrNoPlugin, name)
	}
	return f, nil
}

// Ended implements appliance.Plugins.
func (f *pluginFile) Ended(string, bool) {}

// Manifest implements appliance.Plugin, as do all others.
func (f *pluginFile) Manifest() *abi.Manifest { return f.p.Manifest() }
func (f *pluginFile) Hash() string            { return f.p.Hash() }
func (f *pluginFile) Release()                {}

func (f *pluginFile) Open(o appliance.PluginOpen) (pipeline.Instance, error) {
	services := host.Services{Text: o.Text, Clock: o.Clock, Meta: o.Meta}
	if t, ok := o.Vocab.(*tokenizer.Tokenizer); ok {
		services.Vocab = &pluginVocabulary{t: t, key: o.Model}
	}
	in, err := f.p.Open(host.Open{
		Config: o.Config,
		Request: host.Request{
			Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP,
			PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty,
			MaxTokens: o.MaxTokens, Seed: o.Seed, Stream: o.Stream,
		},
		Model:    host.Model{Name: o.Model, Vocab: o.Size, Context: o.Context},
		Sequence: o.Sequence, Prompt: o.PromptTokens, Services: services,
		Text: strings.Repeat(" ", o.PromptBytes), // its length alone is looked at
	})
	if in == nil {
		return nil, err
	}
	return in, err
}
