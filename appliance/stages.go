package appliance

import (
	"ganglion/plugins/pipeline"
	"ganglion/plugins/sampling"
)

// stageNotes are what built-in stages did to the token that is being made, of a sequence
// without plugins.
type stageNotes struct{ list []pipeline.Change }

var _ sampling.Watcher = (*stageNotes)(nil)

// Watch implements sampling.Watcher.
func (n *stageNotes) Watch(_ *sampling.Distribution, _ float64, e sampling.Effect) {
	n.list = append(n.list, pipeline.Built(&e))
}

// take returns what was noted of the latest token; nil where nobody takes notes.
func (n *stageNotes) take(v Vocabulary) []TokenChange {
	if n == nil {
		return nil
	}
	changes := changesOf(n.list, v)
	n.list = n.list[:0]
	return changes
}
