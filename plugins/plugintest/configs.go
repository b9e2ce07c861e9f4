package plugintest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
)

const mostConfigs = 200

// manifest is check 2: the plugin opens with every configuration at the edges of what the
// schema allows. Texts that were made up it may refuse, in order: no schema can say what a
// regular expression or the name of a script is.
func (k *kit) manifest() error {
	m := k.m
	for _, f := range []struct{ name, value string }{{"title", m.Title}, {"description", m.Description}, {"license", m.License}} {
		if f.value == "" {
			k.note("the manifest has no %s", f.name)
		}
	}
	configs := configsOf(m.Schema.Raw())
	if k.o.Config != nil {
		configs = []configuration{{text: k.o.Config}}
	}
	opened, filled, refused := 0, 0, 0
	var first error
	for _, c := range configs {
		full, err := m.Schema.Fill(c.text)
		if err != nil {
			if k.o.Config != nil {
				return fmt.Errorf("the configuration: %w", err)
			}
			first = orFirst(first, fmt.Errorf("%s: %w", c.text, err))
			continue // a pattern or a bound between properties that was not guessed
		}
		filled++
		interested, err := k.tryOpen(k.plugin, full)
		var e *host.Error
		if c.guessed && errors.As(err, &e) && e.Code == host.CodeOpen {
			refused++
			continue
		}
		if err != nil {
			return fmt.Errorf("the schema allows the configuration %s, but: %w", full, err)
		}
		if interested {
			if opened++; k.config == nil {
				k.config = full
			}
		}
	}
	if filled == 0 {
		return skipOr(first, "no configuration was found that the schema allows: name one")
	}
	k.idle = opened == 0
	k.note("%d configurations, %d of them open it, %d made-up texts it refuses", filled, opened, refused)
	if k.idle {
		k.note("the plugin is interested in none of them")
	}
	return nil
}

func orFirst(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func skipOr(err error, format string) error {
	if err != nil {
		return fmt.Errorf("%s (%w)", format, err)
	}
	return skip("%s", format)
}

// tryOpen opens a plugin in a small vocabulary and closes it again.
func (k *kit) tryOpen(p *host.Plugin, config json.RawMessage) (interested bool, err error) {
	s := &session{ctx: k.ctx, sc: &scene{vocab: k.vocabularyFor(p.Manifest()), steps: 16}, plugin: p}
	s.row = make([]float32, s.sc.vocab.Size())
	in, err := p.Open(s.ctx, host.Open{
		Config: config, Request: host.Request{Temperature: 1, TopP: 1, MaxTokens: 16, Seed: 1},
		Model: host.Model{Name: "plugintest", Vocab: s.sc.vocab.Size(), Context: 4096}, Prompt: 3, Text: "abc", Services: s.services(),
	})
	if err != nil {
		return false, err
	}
	if in == nil {
		return false, nil
	}
	return true, in.Close()
}

// configuration is one that a schema allows, or may allow.
type configuration struct {
	text    []byte
	guessed bool // with a text that was made up
}

// value is a value of a property.
type value struct {
	v       any
	guessed bool
}

// configsOf lists configurations: with all defaults, and for each property with the values
// at its edges.
func configsOf(schema json.RawMessage) (out []configuration) {
	v, err := abi.ParseJSON(schema)
	if err != nil {
		return nil // the manifest was read by the same reader
	}
	object, _ := v.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	base := map[string]any{}
	baseGuessed := false
	required, _ := object["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		p, _ := properties[name].(map[string]any)
		if _, has := p["default"]; has {
			continue
		}
		if values := edgesOf(p, 0); len(values) > 0 {
			base[name] = values[0].v
			baseGuessed = baseGuessed || values[0].guessed
		}
	}
	add := func(c map[string]any, guessed bool) {
		if b, err := json.Marshal(c); err == nil && len(out) < mostConfigs {
			out = append(out, configuration{b, guessed})
		}
	}
	add(base, baseGuessed)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, _ := properties[name].(map[string]any)
		for _, e := range edgesOf(p, 0) {
			c := maps.Clone(base)
			c[name] = e.v
			add(c, baseGuessed || e.guessed)
		}
	}
	return out
}

// edgesOf lists values that a schema allows, or may allow: those at its edges.
func edgesOf(p map[string]any, depth int) (out []value) {
	if c, ok := p["const"]; ok {
		return []value{{v: c}}
	}
	if e, ok := p["enum"].([]any); ok {
		for _, v := range e {
			out = append(out, value{v: v})
		}
		return out
	}
	if d, ok := p["default"]; ok {
		out = append(out, value{v: d})
	}
	kinds, ok := p["type"].([]any)
	if !ok {
		kinds = []any{p["type"]}
	}
	for _, kind := range kinds {
		switch kind {
		case "null":
			out = append(out, value{v: nil})
		case "boolean":
			out = append(out, value{v: false}, value{v: true})
		case "integer", "number":
			out = append(out, numbersOf(p)...)
		case "string":
			out = append(out, stringsOf(p)...)
		case "array":
			out = append(out, arraysOf(p, depth)...)
		}
	}
	return out
}

func numbersOf(p map[string]any) (out []value) {
	for _, name := range []string{"minimum", "maximum"} {
		if v, ok := p[name]; ok {
			out = append(out, value{v: v})
		}
	}
	if len(out) == 0 {
		out = append(out, value{v: json.Number("1")})
	}
	return out
}

// stringsOf makes texts up: a word that no plugin waits for, and the shortest text.
func stringsOf(p map[string]any) []value {
	least := 0
	if n, ok := p["minLength"].(json.Number); ok {
		if i, err := n.Int64(); err == nil && i < 1<<16 {
			least = int(i)
		}
	}
	word := "example"
	if n, ok := p["maxLength"].(json.Number); ok {
		if i, err := n.Int64(); err == nil && i < int64(len(word)) {
			word = word[:max(i, 0)]
		}
	}
	for len(word) < least {
		word += "s"
	}
	return []value{{word, true}, {strings.Repeat("a", least), true}}
}

func arraysOf(p map[string]any, depth int) (out []value) {
	items, _ := p["items"].(map[string]any)
	if values := edgesOf(items, depth+1); depth < 2 && len(values) > 0 {
		all := []any{}
		for _, v := range values {
			all = append(all, v.v)
		}
		out = append(out, value{[]any{values[0].v}, values[0].guessed}, value{all, true})
	}
	return append(out, value{v: []any{}})
}
