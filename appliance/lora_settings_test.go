package appliance

import (
	"reflect"
	"strings"
	"testing"
)

func TestLoRASettings(t *testing.T) {
	const toml = "lora = [\"file.gguf:0.25\", \"other.gguf\"]\n"
	env := map[string]string{"GANGLION_LORA": "env.gguf:-1, b/env2.gguf:0"}
	flag := map[string][]string{"lora": {"C:\\x.gguf", "y.gguf:2"}}
	for _, tt := range []struct {
		name   string
		toml   string
		env    map[string]string
		flags  map[string][]string
		want   []LoRA
		shown  string
		origin string
	}{
		{"default", "", nil, nil, nil, "", "default"},
		{"file", toml, nil, nil, []LoRA{{"file.gguf", 0.25}, {"other.gguf", 1}}, "file.gguf:0.25,other.gguf:1", "file"},
		{"environment", toml, env, nil, []LoRA{{"env.gguf", -1}, {"b/env2.gguf", 0}}, "env.gguf:-1,b/env2.gguf:0", "environment GANGLION_LORA"},
		{"flag", toml, env, flag, []LoRA{{"C:\\x.gguf", 1}, {"y.gguf", 2}}, "C:\\x.gguf:1,y.gguf:2", "flag --lora"},
	} {
		s, resolved, err := loadFrom(t, tt.toml, tt.env, tt.flags)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		r := resolved["lora"]
		if !reflect.DeepEqual(s.LoRA, tt.want) || r.Value != tt.shown || !strings.HasPrefix(r.Origin, tt.origin) {
			t.Errorf("%s: %v, shown %+v", tt.name, s.LoRA, r)
		}
	}
}

func TestLoRASettingsAreRefused(t *testing.T) {
	for _, tt := range []struct{ value, says string }{
		{"x.gguf:inf", "the scale +Inf is not in [-100, 100]"},
		{"x.gguf:NaN", "the scale NaN"},
		{"x.gguf:1e999", "the scale +Inf"},
		{"x.gguf:-101", "the scale -101"},
		{":1", "names no file"},
		{"", "names no file"},
	} {
		_, _, err := loadFrom(t, "", nil, map[string][]string{"lora": {tt.value}})
		if err == nil || !strings.Contains(err.Error(), "flag --lora") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: error %v, want %q", tt.value, err, tt.says)
		}
	}
	_, _, err := loadFrom(t, "lora = [\"a/x.gguf\", \"b/x.gguf\"]\n", nil, nil)
	if err == nil || !strings.Contains(err.Error(), `--lora names two adapters "x"`) {
		t.Errorf("one name twice: error %v", err)
	}
}
