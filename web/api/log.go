package api

import (
	"encoding/json"
	"time"

	"ganglion/appliance"
)

// RecordList is the answer of GET /v1/log. Next is the value of before that
// continues the list, null at its end.
type RecordList struct {
	Records []RecordSummary `json:"records"`
	Next    *string         `json:"next"`
}

// RecordSummary is one row of the list. Prompt and Text are their first 200
// characters.
type RecordSummary struct {
	ID               string    `json:"id"`
	CreatedAt        time.Time `json:"created_at"`
	Model            string    `json:"model"`
	Outcome          string    `json:"outcome"`
	Prompt           string    `json:"prompt"`
	Text             string    `json:"text"`
	PromptTokens     int       `json:"prompt_tokens"`
	CompletionTokens int       `json:"completion_tokens"`
	CachedTokens     int       `json:"cached_tokens"`
	DraftedTokens    int       `json:"drafted_tokens"`
	AcceptedTokens   int       `json:"accepted_tokens"`
	QueueMS          float64   `json:"queue_ms"`
	PrefillMS        float64   `json:"prefill_ms"`
	DecodeMS         float64   `json:"decode_ms"`
	FirstTokenMS     float64   `json:"first_token_ms"`
	Seed             int64     `json:"seed"`
	Stream           bool      `json:"stream"`
	Backend          string    `json:"backend"`
	Numerics         string    `json:"numerics"`
}

// Record is the answer of GET /v1/log/{id}: everything, with Prompt and Text whole.
// Request is the body as received.
type Record struct {
	RecordSummary
	Route        string            `json:"route"`
	Client       string            `json:"client"`
	Params       []appliance.Param `json:"params"`
	ModelHash    string            `json:"model_hash"`
	Device       string            `json:"device"`
	Moved        string            `json:"moved"` // which device failed meanwhile, empty: none
	Kernels      string            `json:"kernels"`
	SampleMS     float64           `json:"sample_ms"`
	ErrorCode    string            `json:"error_code"`
	ErrorMessage string            `json:"error_message"`
	EndedAt      *time.Time        `json:"ended_at"`
	Tokens       []TokenDetail     `json:"tokens"`
	Request      string            `json:"request"`

	Media []appliance.MediaNote `json:"media"`

	Plugins    []appliance.PluginReport   `json:"plugins"`
	PluginMeta map[string]json.RawMessage `json:"plugin_meta,omitempty"` // by "plugin.key"
}

// FoundList is the answer of GET /v1/models/found.
type FoundList struct {
	Models []appliance.Found `json:"models"`
}

// Uploaded is the answer of PUT /v1/models/files/{name}.
type Uploaded struct {
	ID string `json:"id"`
}

// Text is the answer of POST /v1/detokenize.
type Text struct {
	Text string `json:"text"`
}
