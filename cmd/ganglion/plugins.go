package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
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
	inline   inlinePlugins
	costs    pluginCosts
	patience time.Duration // for plugins that are being loaded
	ends     sync.Map      // the first token that ends a text, by the hash of a model
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
	p := &plugins{log: logger, inline: newInlinePlugins(), patience: maxPluginWait, watching: make(chan struct{})}
	if p.store, err = host.OpenStore(filepath.Join(s.paths.State, "plugins")); err != nil {
		return nil, err
	}
	if p.runtime, err = host.New(s.pluginHost(logger)); err != nil {
		return nil, err
	}
	dir := s.pluginDir()
	if s.e.executable == "" { // nothing bounds what compiling files of others takes
		logger.Warn("the place of this program is unknown: plugins of the folder are not loaded")
		dir = ""
	}
	p.registry, err = registry.New(registry.Options{
		Runtime: p.runtime, BuiltIn: builtin.Files(), Dir: dir, Policy: registry.Policy(s.PluginSigning), Keys: keys, Script: js.Module,
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

// choosePlugins says to a service which plugins run in which request.
func (s *settings) choosePlugins(c *appliance.Config) (err error) {
	if c.DefaultPlugins, c.ModelPlugins, c.RequiredPlugins, err = s.PluginChoices(); err != nil {
		return usage(err)
	}
	c.InlinePlugins = s.InlinePlugins
	if c.ShadowPlugins, err = s.ShadowChoices(); err != nil {
		return usage(err)
	}
	return nil
}

// runPlugins gives a service that completes one prompt the plugins that a server with
// these settings would run, and tells how many slots that takes. The caller calls end once
// the service is closed. Where no plugin is named none is opened.
func (s *settings) runPlugins(ctx context.Context, c *appliance.Config) (slots int, end func(), err error) {
	if err := s.choosePlugins(c); err != nil {
		return 0, nil, err
	}
	named := slices.Concat(c.DefaultPlugins, c.RequiredPlugins)
	for _, list := range c.ModelPlugins {
		named = append(named, list...)
	}
	if len(named)+len(c.ShadowPlugins) == 0 {
		return 1, func() {}, nil
	}
	p, err := s.openPlugins(c.Logger)
	if err != nil {
		return 0, nil, err
	}
	p.patience = runPluginWait
	c.Plugins = p
	slots = 1
	for _, n := range named {
		found, err := p.Find(ctx, n.Name, n.Versions)
		if err != nil {
			continue // the request says so, if it names it
		}
		slots = max(slots, slotsFor(found.Manifest()))
		found.Release()
	}
	return slots, func() {
		if err := p.close(); err != nil {
			c.Logger.Warn("plugins did not close cleanly", "error", err)
		}
	}, nil
}

// slotsFor is how many slots a request with a plugin may take.
func slotsFor(m *abi.Manifest) int {
	if m.Can(abi.CapAuxSeq) {
		return 1 + abi.MaxAuxiliary
	}
	return 1
}

// close ends the plugins, once no request runs any more.
func (p *plugins) close() error {
	p.stop()
	<-p.watching
	p.inline.close()
	return errors.Join(p.registry.Close(), p.runtime.Close())
}

// maxPluginWait is how long a request to a server waits for plugins to load after the start:
// then it may come again. Who runs one prompt cannot, and may interrupt it.
const (
	maxPluginWait = 30 * time.Second
	runPluginWait = time.Hour
)

// Find implements appliance.Plugins.
func (p *plugins) Find(ctx context.Context, name, versions string) (appliance.Plugin, error) {
	in, err := registry.ParseRange(versions)
	if err != nil {
		return nil, err
	}
	waits, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	found, err := p.registry.Open(waits, name, in)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		e := appliance.Errorf(appliance.CodeLoading, "plugins", "plugin %.64q is being loaded; try again in a moment", name)
		e.RetryAfter = 2 * time.Second
		return nil, e
	case errors.Is(err, registry.ErrUnknown), errors.Is(err, registry.ErrVersion):
		return nil, errors.Join(appliance.ErrNoPlugin, err)
	case err != nil:
		return nil, err
	}
	return hosted{found, p, new(host.LogCount)}, nil
}

// Ended implements appliance.Plugins.
func (p *plugins) Ended(r *appliance.PluginReport) {
	p.costs.add(r, time.Now().UTC())
	p.registry.Report(registry.Ended{Hash: r.Hash, Name: r.Name, Version: r.Version, Settings: r.Settings, Reason: r.Code()})
}

// hosted is a plugin as the appliance sees it in one request.
type hosted struct {
	*host.Plugin
	all    *plugins
	logged *host.LogCount // of all instances
}

// Release implements appliance.Plugin.
func (h hosted) Release() { h.Plugin.Close() }

// Usable implements appliance.Plugin.
func (h hosted) Usable(settings string) error {
	if h.all.registry == nil {
		return nil
	}
	return h.all.registry.Usable(h.Hash(), settings)
}

// Open implements appliance.Plugin.
func (h hosted) Open(ctx context.Context, o appliance.PluginOpen) (pipeline.Instance, error) {
	var sequences host.Sequences
	if o.Sequences != nil {
		sequences = o.Sequences
	}
	store := h.all.storeOf(h.Plugin)
	if o.Shadow {
		store = forgetful{store}
	}
	i, err := h.Plugin.Open(ctx, host.Open{
		Config: o.Config,
		Request: host.Request{
			Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP,
			PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty,
			MaxTokens: o.MaxTokens, Seed: o.Seed, Stream: o.Stream,
		},
		Model:    host.Model{Name: o.Model, Vocab: o.Size, Context: o.Context, Tokenizer: o.Vocab.Family()},
		Sequence: o.Sequence, Prompt: o.PromptTokens, Text: o.Prompt,
		Services: host.Services{
			Vocab: h.all.vocabulary(o.Vocab, o.Hash), Logged: h.logged, Store: store, Text: o.Text, Clock: o.Clock, Meta: o.Meta, Sequences: sequences,
			Log: h.all.log.With("request_id", o.Request, "plugin", h.Manifest().Name),
		},
		Spent: o.Spent,
	})
	if i == nil || err != nil {
		return nil, coded(err)
	}
	return guest{i}, nil
}

// storeOf is what a plugin remembers, kept apart from what others of its name do.
func (p *plugins) storeOf(of *host.Plugin) host.Store {
	owner := ""
	if p.registry != nil {
		owner = p.registry.Owner(of.Hash())
	}
	if p.store == nil || owner == "" {
		return p.store
	}
	return ownStore{p.store, "." + owner}
}

// ownStore keeps values under a name that no plugin has.
type ownStore struct {
	host.Store
	suffix string
}

// Read implements host.Store.
func (s ownStore) Read(plugin string) map[string][]byte { return s.Store.Read(plugin + s.suffix) }

// Commit implements host.Store.
func (s ownStore) Commit(plugin string, writes map[string][]byte) error {
	return s.Store.Commit(plugin+s.suffix, writes)
}

// forgetful is a store for plugins that only watch: what they write is not kept.
type forgetful struct{ host.Store }

// Commit implements host.Store.
func (forgetful) Commit(string, map[string][]byte) error { return nil }

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
	end  int32 // the first token that ends a text, −1: there is none
}

// vocabulary makes what plugins see of a model's vocabulary. Its end is looked for once.
func (p *plugins) vocabulary(v appliance.Vocabulary, hash string) vocabulary {
	end, known := p.ends.Load(hash)
	if !known {
		end = int32(-1)
		for id := range int32(v.VocabSize()) {
			if v.IsEOG(id) {
				end = id
				break
			}
		}
		p.ends.Store(hash, end)
	}
	return vocabulary{v, hash, end.(int32)}
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
		return max(v.end, 0), v.end >= 0
	}
	return 0, false
}
