package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"ganglion/appliance"
	"ganglion/gpu/tokenizer"
	"ganglion/plugins/abi"
	"ganglion/plugins/builtin"
	"ganglion/plugins/host"
	"ganglion/plugins/js"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/registry"
	"ganglion/plugins/sign"
)

// plugins are the plugins that the settings name, running and watched.
type plugins struct {
	runtime  *host.Runtime
	registry *registry.Registry
	store    host.Store
	log      *slog.Logger
	stop     context.CancelFunc
	watching chan struct{} // closed when the folder is no longer watched
}

func (s *settings) pluginDir() string {
	if s.PluginDir != "" {
		return s.PluginDir
	}
	return filepath.Join(s.paths.Data, "plugins")
}

// openPlugins opens the plugins of the binary and of the folder. They load in the
// background: a request that names one waits for that.
func (s *settings) openPlugins(logger *slog.Logger) (*plugins, error) {
	keys, err := sign.ReadKeys(s.pluginKeysDir())
	if err != nil {
		return nil, fail(exitUsage, "", "%v", err)
	}
	p := &plugins{log: logger, watching: make(chan struct{})}
	if p.store, err = host.OpenStore(filepath.Join(s.paths.State, "plugins")); err != nil {
		return nil, err
	}
	if p.runtime, err = host.New(s.pluginHost(logger)); err != nil {
		return nil, err
	}
	p.registry, err = registry.New(registry.Options{
		Runtime: p.runtime, BuiltIn: builtin.Files(), Dir: s.pluginDir(), Policy: registry.Policy(s.PluginSigning), Keys: keys, Script: js.Module,
		State: filepath.Join(s.paths.State, "plugins-quarantined.json"), Log: logger,
	})
	if err != nil {
		return nil, errors.Join(err, p.runtime.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		defer close(p.watching)
		p.registry.Run(ctx)
	}()
	return p, nil
}

// close ends the plugins, once no request runs any more.
func (p *plugins) close() error {
	p.stop()
	<-p.watching
	return errors.Join(p.registry.Close(), p.runtime.Close())
}

// maxPluginWait is how long a request waits for plugins to load after the start.
const maxPluginWait = 30 * time.Second

// Find implements appliance.Plugins.
func (p *plugins) Find(name, versions string) (appliance.Plugin, error) {
	in, err := registry.ParseRange(versions)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxPluginWait)
	defer cancel()
	found, err := p.registry.Open(ctx, name, in)
	switch {
	case errors.Is(err, registry.ErrUnknown), errors.Is(err, registry.ErrVersion):
		return nil, errors.Join(appliance.ErrNoPlugin, err)
	case err != nil:
		return nil, err
	}
	return hosted{found, p}, nil
}

// Ended implements appliance.Plugins.
func (p *plugins) Ended(r *appliance.PluginReport) {
	p.registry.Report(r.Hash, r.Name, r.Version, r.Code())
}

// hosted is a plugin as the appliance sees it.
type hosted struct {
	*host.Plugin
	all *plugins
}

// Release implements appliance.Plugin.
func (h hosted) Release() { h.Plugin.Close() }

// Open implements appliance.Plugin.
func (h hosted) Open(o appliance.PluginOpen) (pipeline.Instance, error) {
	i, err := h.Plugin.Open(host.Open{
		Config: o.Config,
		Request: host.Request{
			Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP,
			PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty,
			MaxTokens: o.MaxTokens, Seed: o.Seed, Stream: o.Stream,
		},
		Model:    host.Model{Name: o.Model, Vocab: o.Size, Context: o.Context},
		Sequence: o.Sequence, Prompt: o.PromptTokens, Text: o.Prompt,
		Services: host.Services{
			Vocab: vocabulary{o.Vocab, o.Hash}, Store: h.all.store, Text: o.Text, Clock: o.Clock, Meta: o.Meta,
			Log: h.all.log.With("request_id", o.Request, "plugin", h.Manifest().Name),
		},
	})
	if i == nil || err != nil {
		return nil, coded(err)
	}
	return guest{i}, nil
}

// guest is an instance whose errors carry their codes.
type guest struct{ *host.Instance }

// Call implements pipeline.Instance.
func (g guest) Call(h abi.Hook) (abi.Action, int64, error) {
	actions, fuel, err := g.Instance.Call(h)
	if err != nil {
		err = coded(err)
	}
	return actions, fuel, err
}

// pluginFailure is an error of a plugin with its code, as the pipeline asks for it.
type pluginFailure struct{ e *host.Error }

// PluginCode is the code.
func (f pluginFailure) PluginCode() string { return string(f.e.Code) }

// Error is the message alone: the pipeline says which plugin it is of.
func (f pluginFailure) Error() string { return f.e.Message }

// coded gives an error of a plugin its code.
func coded(err error) error {
	var e *host.Error
	if errors.As(err, &e) {
		return pluginFailure{e}
	}
	return err
}

// vocabulary is a model's vocabulary as plugins see it.
type vocabulary struct {
	appliance.Vocabulary
	hash string
}

func (v vocabulary) Size() int             { return v.VocabSize() }
func (v vocabulary) Key() string           { return v.hash }
func (v vocabulary) Bytes(id int32) []byte { return v.AppendPiece(nil, id, false) }
func (v vocabulary) EOG(id int32) bool     { return v.IsEOG(id) }

func (v vocabulary) Control(id int32) bool {
	return len(v.AppendPiece(nil, id, false)) == 0 && len(v.AppendPiece(nil, id, true)) > 0
}

func (v vocabulary) Encode(text []byte, special, begin bool) []int32 {
	return v.Vocabulary.Encode(string(text), tokenizer.EncodeOptions{AddSpecial: begin, ParseSpecial: special})
}

func (v vocabulary) Decode(ids []int32) (b []byte) {
	for _, id := range ids {
		b = v.AppendPiece(b, id, false)
	}
	return b
}

// Special knows the beginning of a text and, as its end, the first token that ends one.
func (v vocabulary) Special(role int) (int32, bool) {
	switch role {
	case 0:
		return v.BOS()
	case 1, 2:
		for id := range int32(v.VocabSize()) {
			if v.IsEOG(id) {
				return id, true
			}
		}
	}
	return 0, false
}
