package appliance

import "time"

// Request is one completion request, decoded and checked for shape by the edge
// that received it. Nil pointers and slices mean "absent": the service resolves
// them to the model's or the server's default and records where each value came
// from. A Request is not changed after Start.
type Request struct {
	ID       string    // unique; the edge makes it (NewID)
	Received time.Time // when the first byte arrived
	Client   string    // user agent, shortened; never an address
	Route    string    // "POST /v1/completions", "cli run", …
	Body     []byte    // bytes as received, for the record; nil outside HTTP

	Prompt       string
	PromptTokens []int32 // extension: the prompt as token ids; used when not nil
	Media        []Media // in order of appearance

	MaxTokens        *int64
	Temperature      *float64
	TopP             *float64
	MinP             *float64 // extension
	TopK             *int64
	Seed             *int64
	Stop             []string
	PresencePenalty  *float64
	FrequencyPenalty *float64
	LogitBias        []Bias
	LoRA             []AdapterChoice // extension: the adapters that act, none where it is empty and not nil
	Logprobs         bool
	TopLogprobs      int // extension: alternatives per token, 0 = none
	Stream           bool
	Speculate        Speculation // extension; empty: as configured

	Plugins []PluginChoice // extension; nil: the model's or the server's, empty: none
}

// Bias is one entry of logit_bias.
type Bias struct {
	Key   string // as written, for error messages
	ID    int64  // parsed; the service checks it against the vocabulary
	Value float64
}

// MediaKind is a kind of media a request may carry.
type MediaKind string

// The kinds of media.
const (
	Image MediaKind = "images"
	Audio MediaKind = "audios"
	Video MediaKind = "videos"
)

// Media is one checked media item: its kind, its place in the request
// ("images[2]") and its raw bytes.
type Media struct {
	Kind  MediaKind
	Param string
	MIME  string // found from the bytes
	Data  []byte
	// Frames are the pictures of a video that was sent as a list of them; Data is
	// nil then.
	Frames []Media
}

// Origin says where a resolved parameter's value came from.
type Origin string

// The origins, strongest first.
const (
	FromRequest Origin = "request"
	FromModel   Origin = "model"   // general.sampling.* of the file
	FromConfig  Origin = "config"  // server configuration
	FromDefault Origin = "default" // built in
	FromRandom  Origin = "random"  // drawn for this request (seed)
	FromLimit   Origin = "limit"   // clamped to the room left
)

// Param is one resolved parameter.
type Param struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Origin Origin `json:"origin"`
}
