package appliance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
)

// chosen is a plugin that a request runs.
type chosen struct {
	plugin   Plugin
	config   []byte
	policy   pipeline.Policy
	settings string // PluginReport.Settings
	required bool
	inline   bool // the request brought it
}

// choosePlugins resolves which plugins a request runs: those that it names, else those
// of the model, else those of the server, and always those that the operator requires.
// The caller releases them. The error is an *Error.
func (s *scheduler) choosePlugins(ctx context.Context, r *Request) (list []chosen, from Origin, err error) {
	defer func() {
		if err != nil {
			release(list)
			list = nil
		}
	}()
	choices, from := r.Plugins, FromRequest
	if choices == nil {
		choices, from = s.cfg.defaultPlugins(s.info.Name)
	}
	// What the operator requires stands first in its slot, and a request's own choice of
	// it changes nothing of it.
	for _, c := range s.cfg.RequiredPlugins {
		if list, err = s.addPlugin(ctx, list, c, true); err != nil {
			return list, from, err
		}
	}
	for _, c := range choices {
		required := func(have chosen) bool { return have.required && have.plugin.Manifest().Name == c.Name }
		if slices.ContainsFunc(list, required) {
			continue
		}
		if list, err = s.addPlugin(ctx, list, c, false); err != nil {
			return list, from, err
		}
		if from == FromRequest {
			if err = list[len(list)-1].own(c); err != nil {
				return list, from, err
			}
		}
	}
	return list, from, nil
}

// own notes the settings that a request chose, if they are not the plugin's own, and
// whether it is run with them. The error is an *Error.
func (p *chosen) own(c PluginChoice) error {
	if c.Config == nil || p.inline {
		return nil
	}
	m := p.plugin.Manifest()
	if defaults, err := m.Schema.Fill(nil); err == nil && bytes.Equal(defaults, p.config) {
		return nil
	}
	sum := sha256.Sum256(p.config)
	p.settings = hex.EncodeToString(sum[:])
	if err := p.plugin.Usable(p.settings); err != nil {
		at := configPlace(c.At, m.Name)
		return Errorf(CodeInvalid, at, "%s: plugin %s: %s", at, quote(m.Name), err)
	}
	return nil
}

// configPlace is the place of a plugin's configuration in errors.
func configPlace(at, name string) string {
	if strings.HasPrefix(at, "/") {
		return at + "/config"
	}
	return at + " " + name
}

// defaultPlugins are the plugins of requests that name none.
func (c *Config) defaultPlugins(model string) ([]PluginChoice, Origin) {
	if list, ok := c.ModelPlugins[model]; ok {
		return list, FromModel
	}
	if len(c.DefaultPlugins) > 0 {
		return c.DefaultPlugins, FromConfig
	}
	return nil, FromDefault
}

// addPlugin finds a plugin and checks its configuration.
func (s *scheduler) addPlugin(ctx context.Context, list []chosen, c PluginChoice, required bool) ([]chosen, error) {
	switch {
	case c.Code != "" && !s.cfg.InlinePlugins:
		at := c.At + "/code"
		return list, Errorf(CodeForbiddenCode, at, "%s: this server takes no code with a request; name an installed plugin, or ask the operator for --inline-plugins", at)
	case len(list) == MaxPlugins:
		return list, Errorf(CodeInvalid, c.At, "%s: more than %d plugins", c.At, MaxPlugins)
	case s.cfg.Plugins == nil:
		return list, Errorf(CodeInvalid, c.At, "%s: no plugin is called %s: this server has none", c.At, quote(c.Name))
	}
	if c.Code != "" {
		return s.addInline(ctx, list, c)
	}
	p, err := s.cfg.Plugins.Find(ctx, c.Name, c.Versions)
	var own *Error
	switch {
	case err != nil && ctx.Err() != nil:
		return list, errCancelled
	case errors.As(err, &own):
		return list, own
	case errors.Is(err, ErrNoPlugin):
		return list, Errorf(CodeInvalid, c.At, "%s: no plugin is called %s", c.At, quote(named(c)))
	case err != nil:
		return list, Errorf(CodeInvalid, c.At, "%s: plugin %s cannot be used: %s", c.At, quote(named(c)), err)
	}
	list = append(list, chosen{plugin: p, required: required})
	return list, s.checkPlugin(&list[len(list)-1], list[:len(list)-1], c)
}

// addInline makes a plugin of code that a request brings.
func (s *scheduler) addInline(ctx context.Context, list []chosen, c PluginChoice) ([]chosen, error) {
	p, err := s.cfg.Plugins.Inline(ctx, c.Code)
	var e *Error
	switch {
	case errors.As(err, &e):
		return list, e
	case err != nil:
		at := c.At + "/code"
		return list, Errorf(CodeInvalid, at, "%s: the code is not taken: %s", at, err)
	}
	list = append(list, chosen{plugin: p, inline: true})
	if m := p.Manifest(); c.Name != "" && c.Name != m.Name || c.Versions != "" {
		return list, Errorf(CodeInvalid, c.At, "%s: the code is %s@%s; a name beside it must be that, and it has no other versions", c.At, m.Name, m.Version)
	}
	return list, s.checkPlugin(&list[len(list)-1], list[:len(list)-1], c)
}

func named(c PluginChoice) string {
	if c.Versions == "" {
		return c.Name
	}
	return c.Name + "@" + c.Versions
}

// checkPlugin completes a choice.
func (s *scheduler) checkPlugin(p *chosen, others []chosen, c PluginChoice) error {
	m := p.plugin.Manifest()
	for _, o := range others {
		switch other := o.plugin.Manifest(); {
		case other.Name == m.Name:
			return Errorf(CodeInvalid, c.At, "%s: plugin %s is named twice", c.At, quote(m.Name))
		case other.Slot == abi.SlotChoose && m.Slot == abi.SlotChoose:
			return Errorf(CodeInvalid, c.At, "%s: %s and %s both choose the token; one plugin may", c.At, quote(other.Name), quote(m.Name))
		}
	}
	if s.info.Vocab < m.MinVocab {
		return Errorf(CodeInvalid, c.At, "%s: plugin %s wants a vocabulary of %d tokens, the model's has %d", c.At, quote(m.Name), m.MinVocab, s.info.Vocab)
	}
	if kind := s.vocab.Family(); !m.FitsTokenizer(kind) {
		return Errorf(CodeInvalid, c.At, "%s: plugin %s is for tokenizers of kind %s, the model's is %s", c.At, quote(m.Name), strings.Join(m.Tokenizers, ", "), kind)
	}
	config, err := m.Schema.Fill(c.Config)
	if err != nil {
		at := c.At
		message := err.Error()
		var f *abi.Fault
		if errors.As(err, &f) {
			message = f.Message
			at = configPlace(at, m.Name) + f.Pointer
		}
		return Errorf(CodeInvalid, at, "%s: %s", at, message)
	}
	p.config = config
	switch p.policy = pipeline.Policy(m.OnError); c.OnError {
	case "":
		if p.required && p.policy == pipeline.Skip {
			p.policy = pipeline.Fail // else whoever makes it fail is rid of it
		}
	case string(pipeline.Fail), string(pipeline.Skip), string(pipeline.Restart):
		p.policy = pipeline.Policy(c.OnError)
	default:
		at := c.At
		if strings.HasPrefix(at, "/") {
			at += "/on_error"
		}
		return Errorf(CodeInvalid, at, "%s: on_error is %s; it must be \"fail\", \"skip\" or \"restart\"", at, quote(c.OnError))
	}
	return nil
}

// release gives plugins back.
func release(list []chosen) {
	for _, c := range list {
		c.plugin.Release()
	}
}

// pluginParams are the plugins as resolved parameters.
func pluginParams(list []chosen, from Origin) []Param {
	var out []Param
	for i, c := range list {
		m := c.plugin.Manifest()
		origin := from
		if c.required {
			origin = FromConfig
		}
		out = append(out, Param{Name: "plugins[" + strconv.Itoa(i) + "]", Origin: origin, Value: map[string]any{
			"name": m.Name, "version": m.Version, "hash": c.plugin.Hash(), "on_error": string(c.policy), "config": json.RawMessage(c.config),
		}})
	}
	return out
}

// pluginError makes a plugin's failure one that the user may see. A plugin that does not
// open refuses what the request asks of it, its configuration above all: it did not fail.
func pluginError(e *pipeline.Error) *Error {
	if e.Code == codeOpen {
		return pluginRefusal(e)
	}
	return &Error{
		Code: CodePlugin, Message: fmt.Sprintf("plugin %s@%s failed: %s: %s", e.Plugin, e.Version, e.Code, e.Message),
		Plugin: &PluginFault{Code: e.Code, Plugin: e.Plugin, Version: e.Version, Step: e.Step},
	}
}

// codeOpen is the code of a plugin that does not open.
const codeOpen = "open"

// pluginRefusal is the failure of a plugin that the request caused.
func pluginRefusal(e *pipeline.Error) *Error {
	return &Error{
		Code: CodeRefused, Param: "plugins", Message: fmt.Sprintf("plugin %s@%s refuses the request: %s", e.Plugin, e.Version, e.Message),
		Plugin: &PluginFault{Code: e.Code, Plugin: e.Plugin, Version: e.Version, Step: e.Step},
	}
}

// userError is an error of plugins as a request shows it.
func userError(err error) error {
	var e *pipeline.Error
	switch {
	case errors.As(err, &e):
		return pluginError(e)
	case errors.Is(err, pipeline.ErrRefused):
		return Errorf(CodeRefused, "prompt", "%s", err)
	case errors.Is(err, pipeline.ErrTwoChoosers):
		return Errorf(CodeInvalid, "plugins", "%s", err)
	}
	return err
}
