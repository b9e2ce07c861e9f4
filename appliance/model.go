package appliance

import (
	"ganglion/gpu/engine"
	"ganglion/gpu/tokenizer"
)

// Model is a loaded model as the service drives it; *engine.Engine satisfies it,
// and so does appliancetest.Scripted. Acquire, SetAdapters, Release, Mark, Truncate and Run
// are called by the scheduler goroutine alone; the others from any goroutine.
type Model interface {
	// Info describes the model, its limits and where it runs. Backend, Device, Moves,
	// Moved and the sizes change when a device fails; the rest never does.
	Info() engine.Info
	// Vocabulary encodes prompts and renders tokens.
	Vocabulary() Vocabulary
	// Acquire takes a free slot for a prompt, with the longest prefix of it that is
	// cached in place, and tells how many tokens that is (always fewer than
	// len(prompt)). salt separates sequences whose results differ for the same
	// tokens. ok is false when no slot is free.
	Acquire(prompt []int32, salt uint64) (slot, cached int, ok bool)
	// SetAdapters says which adapters act on a slot that was just acquired with
	// engine.Salt of the list; without it none does.
	SetAdapters(slot int, adapters []engine.AdapterScale) error
	// Release gives a slot back; its tokens stay for later prompts to reuse.
	Release(slot int)
	// Mark keeps a snapshot of recurrent state at the slot's present length, for a
	// later Truncate; the latest counts. It does nothing where every length can be
	// gone back to.
	Mark(slot int) error
	// Truncate takes the slot's tokens from position n on back. kept is less than n
	// when an older snapshot had to be restored: the tokens from kept on must then be
	// run again.
	Truncate(slot, n int) (kept int, err error)
	// Run appends the rows' tokens to their slots in one batch and fills one head
	// for each row that wants one, in row order; a head in error ends its sequence alone. At most Info().MaxRows rows; rows
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
	Family() string // "bpe", "spm", "unigram" or "wpm"
}
