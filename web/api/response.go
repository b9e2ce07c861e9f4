package api

import (
	"encoding/json"

	"ganglion/appliance"
)

// ObjectCompletion is the fixed value of object in every answer and chunk.
const ObjectCompletion = "completion"

// Completion is an answer, or with Usage unset a chunk of a stream.
type Completion struct {
	ID       string    `json:"id"`
	Object   string    `json:"object"`
	Created  int64     `json:"created"`
	Model    string    `json:"model"`
	Choices  []Choice  `json:"choices"`
	Usage    *Usage    `json:"usage,omitempty"`
	Ganglion *Ganglion `json:"ganglion,omitempty"` // extension, on Ganglion-Details: 1
}

// Choice is one choice of an answer. Logprobs is nil, []float64 or *LogprobsObject;
// FinishReason is nil in every chunk but a choice's last.
type Choice struct {
	Text         string                  `json:"text"`
	Index        int                     `json:"index"`
	Logprobs     any                     `json:"logprobs"`
	FinishReason *appliance.FinishReason `json:"finish_reason"`
	Details      *Details                `json:"details,omitempty"`  // extension
	Ganglion     *Ganglion               `json:"ganglion,omitempty"` // extension, where there are several choices
}

// Usage counts the tokens of a request.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// LogprobsObject is the form of log-probabilities in the OpenAI API. TextOffset
// counts Unicode characters from the start of the completion.
type LogprobsObject struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

// Details are the tokens of a choice or chunk.
type Details struct {
	Tokens []TokenDetail `json:"tokens"`
}

// TokenDetail is one generated token. Offset counts bytes of the completion.
type TokenDetail struct {
	ID      int32       `json:"id"`
	Text    string      `json:"text"`
	Logprob float64     `json:"logprob"`
	Offset  int         `json:"offset"`
	Top     []TopDetail `json:"top"`

	Changes []TokenChange `json:"changes,omitempty"` // what plugins did to it
}

// TokenChange is what a plugin, or in its place a built-in stage, did to a token. From is the token that stood there or would
// have come, where there is one.
type TokenChange struct {
	Plugin      string      `json:"plugin,omitempty"`
	Stage       string      `json:"stage,omitempty"`
	Kind        string      `json:"kind"`
	From        *ChangeFrom `json:"from,omitempty"`
	Left        int         `json:"left,omitempty"`        // tokens that a cut left
	Temperature *float64    `json:"temperature,omitempty"` // that was set
}

// ChangeFrom is a token by id and text.
type ChangeFrom struct {
	ID   int32  `json:"id"`
	Text string `json:"text"`
}

// TopDetail is one of the most likely tokens at a step.
type TopDetail struct {
	ID      int32   `json:"id"`
	Text    string  `json:"text"`
	Logprob float64 `json:"logprob"`
}

// Ganglion tells how a completion came about.
type Ganglion struct {
	ID           string            `json:"id"` // of the record in the log
	Seed         int64             `json:"seed"`
	Params       []appliance.Param `json:"params"`
	Timings      Timings           `json:"timings"`
	CachedTokens int               `json:"cached_tokens"`
	Drafted      int               `json:"drafted_tokens"`
	Accepted     int               `json:"accepted_tokens"`
	Warnings     []string          `json:"warnings"`
	Model        string            `json:"model"`
	Backend      string            `json:"backend"`
	Numerics     string            `json:"numerics"`

	Plugins    []appliance.PluginReport   `json:"plugins,omitempty"`
	PluginMeta map[string]json.RawMessage `json:"plugin_meta,omitempty"` // by "plugin.key"
}

// Timings are the phases of a completion.
type Timings struct {
	QueueMS         float64 `json:"queue_ms"`
	PrefillMS       float64 `json:"prefill_ms"`
	DecodeMS        float64 `json:"decode_ms"`
	FirstTokenMS    float64 `json:"first_token_ms"`
	TokensPerSecond float64 `json:"tokens_per_second"`
}

// ErrorBody is the body of every refusal.
type ErrorBody struct {
	Error Error `json:"error"`
}

// Error is the error object of the OpenAI API. Param and Code are null where there
// is none.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`

	// Where a plugin made the request fail.
	Plugin  string `json:"plugin,omitempty"`
	Version string `json:"version,omitempty"`
	Step    *int   `json:"step,omitempty"` // generated token, −1 before the first
}

// ModelList is the answer of GET /v1/models.
type ModelList struct {
	Object string      `json:"object"` // "list"
	Data   []ModelItem `json:"data"`
}

// ModelItem is one model of the list. The fields from Source on are extensions.
type ModelItem struct {
	ID        string `json:"id"`
	Object    string `json:"object"` // "model"
	Created   int64  `json:"created"`
	OwnedBy   string `json:"owned_by"`
	Source    string `json:"source"`
	Bytes     int64  `json:"bytes"`
	Path      string `json:"path,omitempty"`
	Available bool   `json:"available"`
	Loaded    bool   `json:"loaded"`
}

// TokenList is the answer of POST /v1/tokenize and, with More, of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenItem `json:"tokens"`
	More   *bool       `json:"more,omitempty"`
}

// TokenItem is one token of the vocabulary.
type TokenItem struct {
	ID   int32  `json:"id"`
	Text string `json:"text"`
}
