package api

import (
	"ganglion/appliance"
)

// Bounds of one request that fans out into several completions.
const (
	MaxChoices     = 16 // prompts × n
	MaxTopLogprobs = 20 // alternatives per token
)

// Logprobs is the form in which log-probabilities were asked for.
type Logprobs int

// The forms.
const (
	NoLogprobs     Logprobs = iota // absent, null, false
	LogprobNumbers                 // true: one number per token, as the contract says
	LogprobObject                  // an integer: the object of the OpenAI API
)

// CompletionRequest is a decoded body of POST /v1/completions.
type CompletionRequest struct {
	Prompts      []Prompt // at least one; a choice for each, or N for each
	N            int      // choices per prompt, at least 1
	Logprobs     Logprobs
	IncludeUsage bool // stream_options.include_usage: usage in a chunk of its own

	// MaxAlias tells that the limit was written as max_tokens, so that an error
	// about it can name the field that was sent.
	MaxAlias bool

	// Params holds every other field. Its prompt is unset and its identity is the
	// caller's to fill in.
	Params appliance.Request
}

// Prompt is one prompt: text, or tokens when they are not nil.
type Prompt struct {
	Text   string
	Tokens []int32
}

// Choices is the number of completions the request asks for.
func (r *CompletionRequest) Choices() int { return len(r.Prompts) * r.N }

// Choice is the request of one completion, in the order of the answer: all choices
// of the first prompt, then those of the second. Where a seed is given the choices
// of one prompt count up from it, since equal seeds would give equal texts.
func (r *CompletionRequest) Choice(i int) *appliance.Request {
	c := r.Params
	p := r.Prompts[i/r.N]
	c.Prompt, c.PromptTokens = p.Text, p.Tokens
	if k := i % r.N; k > 0 && c.Seed != nil {
		seed := *c.Seed + int64(k)
		c.Seed = &seed
	}
	return &c
}
