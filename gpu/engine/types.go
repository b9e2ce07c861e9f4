package engine

import "ganglion/gpu/ops"

// Row is one token to run: it is appended to its slot's sequence.
type Row struct {
	Slot  int
	Token int32
	Want  bool     // a head is wanted for this row
	Read  ops.Want // what to read back, when wanted

	// Embed, when not nil, is the row itself: [Plan.EmbedWidth], of a picture or sound. Token
	// is below zero then, and equal for equal rows alone, since the books of tokens in place
	// compare it.
	Embed []float32
	// Rotary holds the row's positions (ops.Batch.Rotary) where Turned is set, else they are
	// its position in the sequence.
	Rotary [ops.Axes]int32
	Turned bool
	// Until is the end of what the row sees behind itself (ops.Span), 0 for nothing.
	Until int
}

// Head is what came back for one wanted row.
type Head = ops.Head

// Info describes a loaded model and where it runs.
type Info struct {
	Name         string // general.name or the file's base name
	Path         string // file it was loaded from
	Architecture string // GGUF general.architecture
	Quantization string // what the file says, such as "Q4_K_M", else the most common weight type
	Parameters   int64  // number of weights
	Hash         string // tells model files apart (gguf.File.Hash)
	FileBytes    int64

	Vocab        int
	EmbedWidth   int // of Row.Embed
	Context      int // positions per sequence as loaded
	TrainContext int // GGUF <arch>.context_length
	Slots        int // sequences at once
	MaxRows      int // rows per batch

	Backend  string // "cpu", "ref", …
	Device   string
	Numerics string // "exact" or "fast"
	KV       string // "f16", "f32", "q8_0"
	Kernels  string // kernel-set version
	Threads  int

	Moves int    // how often it went on elsewhere because a device failed while it ran
	Moved string // what happened the last time, when it was loaded or ran, for people; empty: nothing

	WeightBytes, KVBytes, ScratchBytes int64

	// Parts tells what lies where, in the order in which a batch runs: one part, or two
	// where a device has too little memory. Their bytes add up to those above.
	Parts []ops.Part

	// Adapters are the LoRA files that were loaded along, by id.
	Adapters []AdapterInfo

	// Sampling holds the file's default sampling values (general.sampling.*).
	Sampling Defaults
}

// Defaults are sampling values a model file suggests; nil means it has none.
type Defaults struct {
	Temperature, TopP, MinP *float64
	TopK                    *int64
}
