package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// Measured is what a plugin's hooks cost with one view.
type Measured struct {
	View       string            `json:"view"`
	Vocab      int               `json:"vocab"`
	Candidates int               `json:"candidates,omitempty"`
	Hooks      map[string]Figure `json:"hooks"`
}

// shape is a view to measure with.
type shape struct{ vocab, candidates int }

// Measure measures a plugin with 64, 256 and 1,024 candidates where it wants candidates,
// and with the largest vocabulary where it wants whole rows or masks. Each text has so
// many steps, and is made a few times: the least time of a call counts.
func Measure(ctx context.Context, file []byte, o Options, steps int) ([]Measured, error) {
	k := &kit{ctx: ctx, o: o, file: file, vocabularies: map[int]*Vocabulary{}}
	k.o.Others = nil
	if err := k.open(); err != nil {
		return nil, err
	}
	defer k.close()
	if err := k.pipeline(); err != nil {
		return nil, err
	}
	if err := k.manifest(); err != nil {
		return nil, err
	}
	if k.idle {
		return nil, errors.New("plugintest: the plugin is interested in no request of its default configurations: name one")
	}
	var out []Measured
	for _, s := range k.shapes() {
		m, err := k.measure(s, steps)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// shapes are the views that make a difference to this plugin.
func (k *kit) shapes() (out []shape) {
	const ordinary, largest = 32000, 262144
	v := &k.m.View
	whole := v.Logits == abi.LogitsFull || v.Mask
	if v.Logits == abi.LogitsTop {
		for _, n := range []int{64, 256, 1024} {
			out = append(out, shape{max(ordinary, k.m.MinVocab), n})
		}
	}
	if len(out) == 0 && !whole {
		out = append(out, shape{vocab: max(ordinary, k.m.MinVocab)})
	}
	if whole {
		out = append(out, shape{max(largest, k.m.MinVocab), v.N})
	}
	return out
}

// measure makes the same text three times.
func (k *kit) measure(sh shape, steps int) (Measured, error) {
	p := k.plugin
	if sh.candidates != k.m.View.N {
		file, err := withCandidates(k.withoutTests(), sh.candidates)
		if err == nil {
			p, err = k.compiled.Load(k.ctx, file)
		}
		if err != nil {
			return Measured{}, err
		}
		defer p.Close()
	}
	sc := k.ordinary(steps)
	sc.name, sc.vocab, sc.rows = "measuring", k.vocabulary(sh.vocab), 4
	var runs [][]call
	for range 3 {
		s := k.sessionOf(sc)
		s.plugin = p
		if err := s.play(); err != nil {
			return Measured{}, err
		}
		runs = append(runs, s.calls)
	}
	view := k.m.View.Logits
	if k.m.View.Mask {
		view += ", mask"
	}
	return Measured{View: view, Vocab: sh.vocab, Candidates: sh.candidates, Hooks: figuresOf(runs)}, nil
}

// withCandidates is a plugin's file with another view.n in its manifest.
func withCandidates(file []byte, n int) ([]byte, error) {
	m, err := wasm.Parse(file)
	if err != nil {
		return nil, err
	}
	text, _ := m.Custom(abi.SectionManifest)
	var manifest map[string]json.RawMessage
	var view map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &manifest), json.Unmarshal(manifest["view"], &view)); err != nil {
		return nil, fmt.Errorf("plugintest: %w", err)
	}
	view["n"] = json.RawMessage(fmt.Sprint(n))
	if manifest["view"], err = json.Marshal(view); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(manifest); err != nil {
		return nil, err
	}
	if file, err = wasm.DropCustom(file, abi.SectionManifest); err != nil {
		return nil, err
	}
	return wasm.AppendCustom(file, abi.SectionManifest, text), nil
}
