package appliance

import (
	"context"
	"time"
)

// Recorder keeps the request log. Begin is called before the first byte of an
// answer, End when it is over, for every request that Begin saw. Both return
// soon whatever the state of the log: a full, locked or damaged log never stops
// an answer. Recorders are safe for concurrent use.
type Recorder interface {
	Begin(ctx context.Context, r *Record)
	End(r *Record)
}

// Outcome is how a request ended.
type Outcome string

// The outcomes. A record without an end is "open" and becomes "interrupted" when
// the log is next opened.
const (
	OutcomeOpen        Outcome = "open"
	OutcomeStop        Outcome = "stop"
	OutcomeLength      Outcome = "length"
	OutcomeFilter      Outcome = "content_filter" // a plugin ended the text
	OutcomeCancelled   Outcome = "cancelled"
	OutcomeError       Outcome = "error"
	OutcomeInterrupted Outcome = "interrupted"
)

// Record is one request in the log. Begin receives the first part, End all.
// Text-bearing fields (Body, Prompt, Text, token texts) are left out by the
// recorder when it is set to keep no text.
type Record struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Route     string    `json:"route"`
	Client    string    `json:"client"`
	Stream    bool      `json:"stream"`

	Body   []byte      `json:"-"`
	Prompt string      `json:"prompt"`
	Media  []MediaNote `json:"media,omitempty"`
	Files  [][]byte    `json:"-"` // of Media, for recorders that keep them: at the beginning alone, and not in records that are read back
	Params []Param     `json:"params"`
	Seed   int64       `json:"seed"`

	Model     string `json:"model"`
	ModelHash string `json:"model_hash"`
	Backend   string `json:"backend"`
	Device    string `json:"device"`
	Numerics  string `json:"numerics"`
	Kernels   string `json:"kernels"` // kernel-set version

	// From here on known at the end, Backend and Device anew: where the text was ended.
	Moved            string    `json:"moved,omitempty"` // which device failed meanwhile and what the text went on with
	Outcome          Outcome   `json:"outcome"`
	ErrorCode        Code      `json:"error_code,omitempty"`
	ErrorMessage     string    `json:"error_message,omitempty"`
	EndedAt          time.Time `json:"ended_at"`
	Text             string    `json:"text"`
	Tokens           []Token   `json:"-"`
	PromptTokens     int       `json:"prompt_tokens"`
	CachedTokens     int       `json:"cached_tokens"`
	CompletionTokens int       `json:"completion_tokens"`
	DraftedTokens    int       `json:"drafted_tokens"`  // guessed ahead and run
	AcceptedTokens   int       `json:"accepted_tokens"` // of these, those that became text
	QueueMS          float64   `json:"queue_ms"`
	PrefillMS        float64   `json:"prefill_ms"`
	DecodeMS         float64   `json:"decode_ms"`
	FirstTokenMS     float64   `json:"first_token_ms"`
	SampleMS         float64   `json:"sample_ms"` // time inside the sampling chain

	Plugins    []PluginReport    `json:"plugins,omitempty"`     // what they did and cost
	PluginMeta map[string]string `json:"plugin_meta,omitempty"` // JSON values that they left, by plugin and key
}

// RecordQuery selects records for browsing, newest first.
type RecordQuery struct {
	Limit   int       // at most this many, 1 to 500
	Before  string    // continue after this record id; empty = from the newest
	Outcome Outcome   // empty = all
	Text    string    // substring of prompt or text; empty = all
	Since   time.Time // zero = all
}
