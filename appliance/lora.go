package appliance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ganglion/gpu/engine"
)

// MaxAdapters is how many LoRA adapters a server loads, and a request names.
const MaxAdapters = engine.MaxAdapters

// LoRA is an adapter to load with every model, and how strongly it acts on requests
// that say nothing of adapters. A model that it does not fit is not loaded.
type LoRA struct {
	Path  string
	Scale float64 // 0: only where a request asks for it
}

// Name is what requests call the adapter: its file's name without ".gguf".
func (l LoRA) Name() string { return engine.AdapterName(l.Path) }

func (l LoRA) String() string { return l.Path + ":" + strconv.FormatFloat(l.Scale, 'g', -1, 64) }

// AdapterFiles is what the engine loads.
func AdapterFiles(list []LoRA) []engine.AdapterFile {
	var files []engine.AdapterFile
	for _, l := range list {
		files = append(files, engine.AdapterFile{Path: l.Path, Name: l.Name()})
	}
	return files
}

// DefaultAdapters are the strengths of requests that say nothing of adapters, for a
// model that was loaded with AdapterFiles of the same list.
func DefaultAdapters(list []LoRA) []engine.AdapterScale {
	var scales []engine.AdapterScale
	for id, l := range list {
		scales = append(scales, engine.AdapterScale{ID: id, Scale: float32(l.Scale)})
	}
	return scales
}

// AdapterChoice is an adapter that a request asks for.
type AdapterChoice struct {
	Name  string
	ID    *int64   // its place in the server's list, instead of the name
	Scale *float64 // nil: 1
}

// parseLoRA reads PATH or PATH:SCALE. What stands behind the last colon is part of the
// path unless it is a number, for paths may hold colons.
func parseLoRA(v string) (LoRA, error) {
	l := LoRA{Path: v, Scale: 1}
	if at := strings.LastIndexByte(v, ':'); at >= 0 {
		if scale, err := strconv.ParseFloat(v[at+1:], 64); err == nil || errors.Is(err, strconv.ErrRange) {
			l.Path, l.Scale = v[:at], scale
		}
	}
	switch {
	case l.Path == "":
		return LoRA{}, fmt.Errorf("%q names no file", v)
	case !adapterSpan.holds(l.Scale):
		return LoRA{}, fmt.Errorf("%q: the scale %g is not in %s", v, l.Scale, adapterSpan)
	}
	return l, nil
}

// loraFault says what is wrong with a list of adapters; empty when nothing is.
func loraFault(list []LoRA) string {
	if len(list) > MaxAdapters {
		return fmt.Sprintf("names %d adapters, at most %d can be loaded", len(list), MaxAdapters)
	}
	for i, l := range list {
		same := func(o LoRA) bool { return o.Name() == l.Name() }
		switch {
		case l.Path == "":
			return "names no file"
		case !adapterSpan.holds(l.Scale):
			return fmt.Sprintf("%q: the scale %g is not in %s", l.Path, l.Scale, adapterSpan)
		case slices.ContainsFunc(list[:i], same):
			return fmt.Sprintf("names two adapters %q; rename a file, for requests know them by name", l.Name())
		}
	}
	return ""
}

// loraRow is the list of adapters.
func loraRow() settingRow {
	const doc = "LoRA adapter (.gguf) to load with the model; with :SCALE the strength for requests that name none, 1 without"
	r := listRow("lora", ",", doc, nil)
	r.set = func(s *Settings, values []string) error {
		var list []LoRA
		for _, v := range values {
			l, err := parseLoRA(v)
			if err != nil {
				return err
			}
			list = append(list, l)
		}
		s.LoRA = list
		return nil
	}
	r.get = func(s *Settings) string {
		var texts []string
		for _, l := range s.LoRA {
			texts = append(texts, l.String())
		}
		return strings.Join(texts, r.separator)
	}
	return r
}

func (s *Settings) checkLoRA() error {
	if fact := loraFault(s.LoRA); fact != "" {
		return fmt.Errorf("--lora %s", fact)
	}
	return nil
}

// lora resolves which adapters act: those the request lists and no others, else the
// server's default.
func (s *resolver) lora() {
	known := s.info.Adapters
	scales, from := make([]float64, len(known)), FromDefault
	switch {
	case s.r.LoRA != nil:
		from = FromRequest
		s.choices(scales)
	case len(s.cfg.LoRA) > 0:
		scales, from = s.cfg.defaultScales(known), FromConfig
	}
	for i, a := range known {
		s.add("lora["+quote(a.Name)+"]", scales[i], from)
		if scales[i] != 0 {
			s.out.adapters = append(s.out.adapters, engine.AdapterScale{ID: i, Scale: float32(scales[i])})
		}
	}
}

// defaultScales are the strengths of a model's adapters for requests that name none.
func (c *Config) defaultScales(known []engine.AdapterInfo) []float64 {
	scales := make([]float64, len(known))
	for i, a := range known {
		for _, l := range c.LoRA {
			if l.Name() == a.Name {
				scales[i] = l.Scale
			}
		}
	}
	return scales
}

// choices sets the strengths that the request asks for.
func (s *resolver) choices(scales []float64) {
	if n := len(s.r.LoRA); n > MaxAdapters {
		s.fail("lora", "lora has %d entries; at most %d are allowed", n, MaxAdapters)
		return
	}
	seen := make([]bool, len(scales))
	for i, c := range s.r.LoRA {
		at := "lora[" + strconv.Itoa(i) + "]"
		id := s.adapter(at, c)
		if s.err != nil {
			return
		}
		scale := 1.0
		if c.Scale != nil {
			scale = *c.Scale
		}
		switch {
		case seen[id]:
			s.fail(at, "%s names the adapter %s a second time", at, quote(s.info.Adapters[id].Name))
		case !adapterSpan.holds(scale):
			s.fail(at+".scale", "%s.scale is %g; it must be in %s", at, scale, adapterSpan)
		}
		scales[id], seen[id] = scale, true
	}
}

// adapter finds the adapter that a choice names.
func (s *resolver) adapter(at string, c AdapterChoice) int {
	known := s.info.Adapters
	if c.ID != nil {
		if *c.ID >= 0 && *c.ID < int64(len(known)) {
			return int(*c.ID)
		}
		s.fail(at+".id", "%s.id is %d; %s", at, *c.ID, knownAdapters(known))
		return -1
	}
	id := slices.IndexFunc(known, func(a engine.AdapterInfo) bool { return a.Name == c.Name })
	if id < 0 {
		s.fail(at+".name", "%s.name is %s; %s", at, quote(c.Name), knownAdapters(known))
	}
	return id
}

func knownAdapters(known []engine.AdapterInfo) string {
	if len(known) == 0 {
		return "no adapters are loaded"
	}
	var names []string
	for _, a := range known {
		names = append(names, strconv.Itoa(a.ID)+" "+quote(a.Name))
	}
	return "the adapters loaded are " + strings.Join(names, ", ")
}
