package appliance

import (
	"errors"
	"fmt"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// Drafted is a Model that comes with a smaller one to guess its tokens. Draft returns
// it; the scheduler that drives the one drives the other too.
type Drafted interface {
	Draft() Model
}

// drafted is a model with its smaller companion.
type drafted struct {
	Model
	small Model
}

var _ Drafted = drafted{}

// WithDraft joins a model with a smaller one that guesses its tokens. Both are closed
// together; after an error both still belong to the caller. The two must have the same
// vocabulary, for a token is passed from one to the other by its id.
func WithDraft(m, small Model) (Model, error) {
	if err := sameVocabulary(m.Vocabulary(), small.Vocabulary()); err != nil {
		return nil, fmt.Errorf("appliance: draft model %q cannot guess for %q: %w", small.Info().Name, m.Info().Name, err)
	}
	if a, b := m.Info().Slots, small.Info().Slots; b < a {
		return nil, fmt.Errorf("appliance: draft model %q has %d slots, %q has %d", small.Info().Name, b, m.Info().Name, a)
	}
	return drafted{m, small}, nil
}

// Draft implements Drafted.
func (d drafted) Draft() Model { return d.small }

// StopWith implements Stoppable where the model does.
func (d drafted) StopWith(stop *ops.Stop) {
	if m, ok := d.Model.(Stoppable); ok {
		m.StopWith(stop)
	}
}

// Rebuild implements Rebuilding where the model does.
func (d drafted) Rebuild(row func(slot, pos int, token int32) engine.Row) {
	if m, ok := d.Model.(Rebuilding); ok {
		m.Rebuild(row)
	}
}

// Close closes both models.
func (d drafted) Close() error { return errors.Join(d.small.Close(), d.Model.Close()) }

// sameVocabulary names the first token by which two vocabularies differ.
func sameVocabulary(want, got Vocabulary) error {
	if w, g := want.VocabSize(), got.VocabSize(); w != g {
		return fmt.Errorf("its vocabulary has %d tokens and not %d", g, w)
	}
	for id := range int32(want.VocabSize()) {
		if w, g := want.Text(id), got.Text(id); w != g {
			return fmt.Errorf("its token %d is %s and not %s", id, quote(g), quote(w))
		}
		if w, g := want.IsEOG(id), got.IsEOG(id); w != g {
			return fmt.Errorf("token %d (%s) ends a text in one of them alone", id, quote(want.Text(id)))
		}
	}
	return nil
}
