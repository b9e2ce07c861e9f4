package appliance

import "ganglion/gpu/engine"

// loaded makes an engine a Model: Go wants the interface type of Vocabulary in the
// method's signature.
type loaded struct{ *engine.Engine }

var (
	_ Model     = loaded{}
	_ Stoppable = loaded{}
)

// FromEngine makes a loaded engine a Model of the service.
func FromEngine(e *engine.Engine) Model { return loaded{e} }

// Vocabulary is the engine's tokenizer.
func (l loaded) Vocabulary() Vocabulary { return l.Tokenizer() }
