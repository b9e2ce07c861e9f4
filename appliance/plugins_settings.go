package appliance

import (
	"fmt"
	"strings"

	"ganglion/plugins/abi"
)

// PluginChoices are the plugins of the settings: of requests that name none, of requests
// for one model, and of every request.
func (s *Settings) PluginChoices() (byDefault []PluginChoice, byModel map[string][]PluginChoice, required []PluginChoice, err error) {
	if byDefault, err = ParsePlugins(s.Plugins, "--plugins"); err != nil {
		return nil, nil, nil, err
	}
	if required, err = ParsePlugins(s.RequiredPlugins, "--required-plugins"); err != nil {
		return nil, nil, nil, err
	}
	byModel = map[string][]PluginChoice{}
	for _, entry := range s.ModelPlugins {
		model, list, ok := strings.Cut(entry, "=")
		if model = strings.TrimSpace(model); !ok || model == "" {
			return nil, nil, nil, fmt.Errorf("--model-plugins %q is not MODEL=PLUGINS", entry)
		}
		if byModel[model], err = ParsePlugins(list, "--model-plugins"); err != nil {
			return nil, nil, nil, err
		}
	}
	return byDefault, byModel, required, nil
}

// ShadowChoices are the plugins of the settings that only watch.
func (s *Settings) ShadowChoices() ([]PluginChoice, error) {
	return ParsePlugins(s.ShadowPlugins, "--shadow-plugins")
}

func (s *Settings) checkPlugins() error {
	switch s.PluginSigning {
	case "unsigned-ok", "warn", "require":
	default:
		return fmt.Errorf("--plugin-signing %q is none of unsigned-ok, warn and require", s.PluginSigning)
	}
	if s.PluginFuel < 0 || s.PluginFuel > abi.MaxStepFuel {
		return fmt.Errorf("--plugin-fuel %d is not 0 to %d", s.PluginFuel, abi.MaxStepFuel)
	}
	if _, err := s.ShadowChoices(); err != nil {
		return err
	}
	_, _, _, err := s.PluginChoices()
	return err
}
