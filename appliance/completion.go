package appliance

import "time"

// FinishReason tells why a completion ended.
type FinishReason string

// The finish reasons of the contract.
const (
	FinishStop   FinishReason = "stop"
	FinishLength FinishReason = "length"
	FinishFilter FinishReason = "content_filter" // extension: a plugin ended the text
)

// Token is one generated token that counts in completion_tokens.
type Token struct {
	ID      int32
	Text    string  // this token's share of the text as rendered, may be empty
	Logprob float64 // natural log, finite, ≤ 0, of the model's own distribution
	Top     []Alternative
	Offset  int // byte offset of the token's text in the completion
	Changes []TokenChange
}

// TokenChange is what a plugin or a built-in stage did to a token; Request.PluginChanges and
// Request.StageChanges ask for it.
type TokenChange struct {
	Plugin      string
	Stage       string       // a built-in one, in the place of a plugin
	Kind        string       // a pipeline.Kind
	From        *Alternative // the token that stood here before or would have come, without its probability; nil: none
	Left        int          // tokens that it left where it cut them; 0: it cut none
	Temperature *float64     // that it set; nil: it set none
}

// Alternative is one of the most likely tokens at a step.
type Alternative struct {
	ID      int32
	Text    string
	Logprob float64
}

// Chunk is a piece of a completion, released as soon as no stop string can take
// it back. Text is valid UTF-8. Tokens are the tokens decided since the last
// chunk. Finish is set on the last chunk alone, which may have no text.
type Chunk struct {
	Text   string
	Tokens []Token
	Finish FinishReason
}

// Usage counts tokens. Cached prompt tokens are part of PromptTokens.
type Usage struct {
	PromptTokens     int
	CompletionTokens int
	CachedTokens     int
}

// Timings are wall-clock durations of the phases of one request.
type Timings struct {
	Queue, Prefill, Decode time.Duration
	FirstToken             time.Duration // from arrival to the first token
}

// Result is a finished completion.
type Result struct {
	ID      string
	Created time.Time
	Model   string
	Text    string
	Tokens  []Token
	Finish  FinishReason
	Usage   Usage

	DraftedTokens, AcceptedTokens int // guessed ahead and run; of these, those that became text

	Timings  Timings
	Params   []Param
	Seed     int64
	Backend  string   // where the text was ended
	Warnings []string // such as "the prompt ends in a space"
	Plugins  []PluginReport
	// PluginMeta are JSON values that plugins left, by plugin and key.
	PluginMeta map[string]string
}
