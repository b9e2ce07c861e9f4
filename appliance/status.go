package appliance

import (
	"ganglion/appliance/media/film"
	"ganglion/gpu/engine"
)

// State is what the appliance can do right now.
type State string

// The states of the appliance.
const (
	StateNoModel State = "no_model"
	StateLoading State = "loading"
	StateReady   State = "ready"
)

// Status is a snapshot for health checks and the page.
type Status struct {
	State    State
	Model    *engine.Info    // the serving model, nil when there is none
	Encoder  *EncoderInfo    // of media, of the serving model; nil when it takes text only
	Films    film.Status     // of the decoder of films, and of sounds that Go does not decode
	Adapters []AdapterStatus // of the serving model, by id
	Loading  *Progress       // the model being loaded, nil when none is
	Error    string          // why the last load failed, empty after a success
	Running  int             // sequences being decoded
	Queued   int             // requests waiting for a slot
	QueueMax int
}

// AdapterStatus is a loaded adapter and its strength for requests that name none.
type AdapterStatus struct {
	engine.AdapterInfo
	Scale float64
}

// Progress is how far a load has come, in bytes of weights.
type Progress struct {
	Name        string
	Done, Total int64
}

// Found is a model file discovered on this machine, read-only and in place.
type Found struct {
	ID        string `json:"id"`   // stable, safe in a URL
	Name      string `json:"name"` // file name without ".gguf", as it is
	Path      string `json:"path"`
	Source    string `json:"source"` // "flag", "embedded", "Ganglion", "folder", "Hugging Face", "llama.cpp", "LM Studio", "Ollama", "Jan", "config"
	Bytes     int64  `json:"bytes"`
	Available bool   `json:"available"` // false: its folder cannot be read right now
	Note      string `json:"note,omitempty"`
}
