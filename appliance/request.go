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
	PromptTokens []int32  // extension: the prompt as token ids; used when not nil
	Media        []Media  // in order of appearance
	Headers      *Headers // shared by the choices of one request with media; may be nil

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
	// PluginChanges asks for what plugins did to each token. The log does not keep it.
	PluginChanges bool
	// StageChanges asks for what built-in stages did to each token as well, which costs several
	// draws from all candidates at each token.
	StageChanges bool
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
	Hints Hints
	// Frames are the pictures of a video that was sent as a list of them; Data is
	// nil then.
	Frames []Media
	// Limits are bounds of the server where they are not the usual ones.
	Limits MediaLimits
}

// MediaLimits bound a sound or a film; zero values are film.DefaultLimits.
type MediaLimits struct {
	Seconds int // that it lasts
	Frames  int // of a film that the model sees
}

// Hints are wishes of a descriptor about its item; zero values are the model's own way.
type Hints struct {
	MaxTokens  int     // of a picture
	FPS        float64 // frames of a video to look at in each second
	MaxFrames  int
	Start, End float64 // seconds of a video; End 0: to its end
	Reference  bool    // a video is seen as the reference sees it
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
