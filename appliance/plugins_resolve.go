package appliance

import (
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
	required bool
}

// choosePlugins resolves which plugins a request runs: those that it names, else those
// of the model, else those of the server, and always those that the operator requires.
// The caller releases them. The error is an *Error.
func (s *scheduler) choosePlugins(r *Request) (list []chosen, from Origin, err error) {
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
		if list, err = s.addPlugin(list, c, true); err != nil {
			return list, from, err
		}
	}
	for _, c := range choices {
		required := func(have chosen) bool { return have.required && have.plugin.Manifest().Name == c.Name }
		if slices.ContainsFunc(list, required) {
			continue
		}
		if list, err = s.addPlugin(list, c, false); err != nil {
			return list, from, err
		}
	}
	return list, from, nil
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
func (s *scheduler) addPlugin(list []chosen, c PluginChoice, required bool) ([]chosen, error) {
	switch {
	case c.Inline:
		return list, Errorf(CodeInvalid, c.At, "%s: this server takes no code with a request; name an installed plugin", c.At)
	case len(list) == MaxPlugins:
		return list, Errorf(CodeInvalid, c.At, "%s: more than %d plugins", c.At, MaxPlugins)
	case s.cfg.Plugins == nil:
		return list, Errorf(CodeInvalid, c.At, "%s: no plugin is called %s: this server has none", c.At, quote(c.Name))
	}
	p, err := s.cfg.Plugins.Find(c.Name, c.Versions)
	switch {
	case errors.Is(err, ErrNoPlugin):
		return list, Errorf(CodeInvalid, c.At, "%s: no plugin is called %s", c.At, quote(named(c)))
	case err != nil:
		return list, Errorf(CodeInvalid, c.At, "%s: plugin %s cannot be used: %s", c.At, quote(named(c)), err)
	}
	list = append(list, chosen{plugin: p, required: required})
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
	config, err := m.Schema.Fill(c.Config)
	if err != nil {
		at := c.At
		message := err.Error()
		var f *abi.Fault
		if errors.As(err, &f) {
			message = f.Message
			if strings.HasPrefix(at, "/") {
				at += "/config"
			} else {
				at += " " + m.Name
			}
			at += f.Pointer
		}
		return Errorf(CodeInvalid, at, "%s: %s", at, message)
	}
	p.config = config
	switch p.policy = pipeline.Policy(m.OnError); c.OnError {
	case "":
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

// pluginError makes a plugin's failure one that the user may see.
func pluginError(e *pipeline.Error) *Error {
	return &Error{
		Code: CodePlugin, Message: fmt.Sprintf("plugin %s@%s failed: %s: %s", e.Plugin, e.Version, e.Code, e.Message),
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
