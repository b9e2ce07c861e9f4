package host

import (
	"log/slog"
	"sync/atomic"

	"ganglion/plugins/sampling"
)

// Vocabulary is what plugins may ask about the tokens of a model. It is safe for
// concurrent use and does not change.
type Vocabulary interface {
	Size() int
	// Key names the vocabulary: two of the same key are equal. Masks and tries are kept
	// under it.
	Key() string
	// Bytes are what a token stands for in a text; nil for control tokens. They are only
	// read.
	Bytes(id int32) []byte
	Encode(text []byte, special, begin bool) []int32
	Decode(ids []int32) []byte
	// Special is the id of a token of a role: 0 BOS, 1 EOS, 2 EOT, 3 UNK, 4 PAD.
	Special(role int) (id int32, ok bool)
	EOG(id int32) bool
	Control(id int32) bool
}

// Store keeps what plugins remember from one request to the next. It is safe for
// concurrent use.
type Store interface {
	// Read gives all values of a plugin. The map is never changed afterwards.
	Read(plugin string) map[string][]byte
	// Commit takes the writes of one request in: nil deletes. The values are the store's
	// from then on. It refuses what is more than MaxStoreBytes for a plugin.
	Commit(plugin string, writes map[string][]byte) error
}

// Sequences are the auxiliary sequences of a request: the same generated tokens behind
// another prompt.
type Sequences interface {
	Open(prompt []int32) (seq int, err error)
	// Row are the logits of the step in a sequence, [vocabulary], valid until the call
	// returns; nil where there are none.
	Row(seq int) []float32
	Stats(seq int) (s Stats, ok bool)
}

// Stats are facts about a row of logits: finite ones, at temperature 1.
type Stats = sampling.Stats

// Services are what an instance may use. What is nil is not there.
type Services struct {
	Vocab     Vocabulary
	Store     Store
	Sequences Sequences
	Log       *slog.Logger
	// Logged counts what the plugin logs in a request; instances that take one another's
	// place share it. nil is a count of the instance alone.
	Logged *LogCount
	// Text are at least the last n bytes of the generated text, held back ones included,
	// or all of it. They are only read.
	Text func(n int) []byte
	// Clock is the time since the request began, in milliseconds.
	Clock func() int64
	// Meta takes a value of the request's log row: JSON.
	Meta func(key string, value []byte)
}

// LogCount is how much a plugin logged in one request. Instances of one sequence and of
// several may share it; it is safe for concurrent use, and its zero value is ready.
type LogCount struct{ bytes, lines atomic.Int64 }

// take counts a line; false where it is over the quota.
func (c *LogCount) take(n int) bool {
	return c.lines.Add(1) <= maxLogLines && c.bytes.Add(int64(n+logLine)) <= maxLog
}
