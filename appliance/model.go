package appliance

import (
	"ganglion/gpu/engine"
	"ganglion/gpu/tokenizer"
)

// Model is a loaded model as the service drives it; *engine.Engine satisfies it,
// and so does appliancetest.Scripted. Acquire, Release and Run are called by the
// scheduler goroutine alone; the others from any goroutine.
type Model interface {
	// Info describes the model, its limits and where it runs; it never changes.
	Info() engine.Info
	// Vocabulary encodes prompts and renders tokens.
	Vocabulary() Vocabulary
	// Acquire takes a free slot for a prompt, preferring the slot that already
	// holds its longest prefix, and tells how many prompt tokens are in place
	// (always fewer than len(prompt)). ok is false when no slot is free.
	Acquire(prompt []int32) (slot, cached int, ok bool)
	// Release gives a slot back; its tokens stay for later prompts to reuse.
	Release(slot int)
	// Run appends the rows' tokens to their slots in one batch and fills one head
	// for each row that wants one, in row order. At most Info().MaxRows rows; rows
	// of one slot stand together. Heads are valid until the next Run.
	Run(rows []engine.Row) ([]engine.Head, error)
	Close() error
}

// Vocabulary is what the service needs of a tokenizer; *tokenizer.Tokenizer
// satisfies it. All methods are safe for concurrent use.
type Vocabulary interface {
	Encode(text string, o tokenizer.EncodeOptions) []int32
	AppendPiece(dst []byte, id int32, special bool) []byte
	Text(id int32) string
	VocabSize() int
	IsEOG(id int32) bool
	BOS() (int32, bool)
	AddBOS() bool
	Suppressed() []int32
}
