package appliance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
)

// MaxPlugins is how many plugins one request may run, those of the operator included.
const MaxPlugins = 16

// Plugins is where plugins come from. Its methods are safe for concurrent use.
type Plugins interface {
	// Find returns a plugin that is ready, by name and a range of versions, where an empty
	// one means any. It may wait for one that is being loaded, until ctx ends. The error
	// wraps ErrNoPlugin where there is none; one that is an *Error is for the user as it is,
	// and any other one says why the plugin may not be used now. The caller gives it back
	// with Release.
	Find(ctx context.Context, name, versions string) (Plugin, error)
	// Inline makes a plugin of code that a request brings, with what it may cost and without
	// the capabilities that reach beyond the request. The error says why the code is not
	// taken; where it is an *Error it is one for the user as it is. The caller gives the
	// plugin back with Release.
	Inline(ctx context.Context, code string) (Plugin, error)
	// Ended tells how a plugin that was found came through a request.
	Ended(r *PluginReport)
}

// ErrNoPlugin says that no plugin has a name, or none of its versions is in a range.
var ErrNoPlugin = errors.New("appliance: there is no such plugin")

// Plugin is a plugin that requests may use, safe for concurrent use.
type Plugin interface {
	Manifest() *abi.Manifest
	Hash() string // of its file
	// Usable says why the plugin is not run with settings that a request chose, by their
	// hash; nil: it is.
	Usable(settings string) error
	// Open makes an instance for one sequence, nil where the plugin is not interested in
	// the request. Where it has to wait for that and ctx ends, it returns ctx's error.
	Open(ctx context.Context, o PluginOpen) (pipeline.Instance, error)
	// Release gives the plugin back. Instances that are open stay usable.
	Release()
}

// PluginOpen is what a plugin hears of a request, and what it may use of it.
type PluginOpen struct {
	Request  string // id
	Config   []byte // JSON, checked, with its defaults
	Sequence int
	Seed     uint64
	Vocab    Vocabulary
	Model    string
	Hash     string // of the model's file
	Size     int    // of the vocabulary as the model has it
	Prompt   string // its text, empty where it came as tokens
	Context  int    // tokens that the sequence may have

	Temperature, TopP, MinP           float64
	TopK                              int
	PresencePenalty, FrequencyPenalty float64
	MaxTokens, PromptTokens           int
	Stream                            bool

	// Text returns at least the last n bytes of the generated text, with what is held
	// back, or all of it. The bytes are valid until the next hook.
	Text func(n int) []byte
	// Clock is the time since the request arrived, in milliseconds.
	Clock func() int64
	// Meta takes a value for the request's record.
	Meta func(key string, value []byte)
	// Sequences are the plugin's auxiliary sequences; nil where it may have none.
	Sequences Sequences
	// Shadow is set where the plugin only watches: what it stores is not kept.
	Shadow bool
	// Spent hears what opening took.
	Spent pipeline.Spent
}

// PluginChoice asks for a plugin.
type PluginChoice struct {
	Name     string
	Versions string // a range; empty: any
	Config   []byte // a JSON object; nil: all defaults
	OnError  string // a pipeline.Policy; empty: as the manifest says
	Code     string // that the request brings: a WebAssembly file in base64, or a script; empty: the plugin is there
	// At names the place of the choice in errors, as a JSON pointer or the header's name.
	At string
}

// ParsePlugins reads a list of plugins as the header Ganglion-Plugins and the settings
// write it: "xtc;probability=0.5, dry@2;on_error=skip". A value is JSON where it can be
// read as such, else text. At names the place in errors.
func ParsePlugins(text, at string) ([]PluginChoice, error) {
	list := []PluginChoice{}
	items, err := splitQuoted(text, ',')
	if err != nil {
		return nil, Errorf(CodeInvalid, at, "%s: %s", at, err)
	}
	for _, item := range items {
		if strings.TrimSpace(item) == "" {
			continue
		}
		c, err := parsePlugin(item)
		if err != nil {
			return nil, Errorf(CodeInvalid, at, "%s: %s", at, err)
		}
		c.At = at
		list = append(list, c)
	}
	return list, nil
}

// parsePlugin reads NAME@VERSIONS;key=value;….
func parsePlugin(item string) (c PluginChoice, err error) {
	parts, _ := splitQuoted(item, ';')
	c.Name, c.Versions, _ = strings.Cut(strings.TrimSpace(parts[0]), "@")
	if c.Name == "" {
		return c, fmt.Errorf("%s names no plugin", quote(item))
	}
	var config []byte
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(p, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok || key == "":
			return c, fmt.Errorf("%s is not key=value", quote(p))
		case key == "on_error":
			c.OnError = value
			continue
		}
		if _, err := abi.ParseJSON([]byte(value)); err != nil {
			value = quoteJSON(value)
		}
		config = append(config, ',')
		config = append(append(append(config, quoteJSON(key)...), ':'), value...)
	}
	if config != nil {
		config[0] = '{'
		c.Config = append(config, '}')
	}
	return c, nil
}

// quoteJSON writes text as a JSON string.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// splitQuoted splits a text at a separator outside of quotation marks, brackets and
// braces, so that values may be JSON.
func splitQuoted(s string, by byte) (parts []string, err error) {
	from, depth, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == by && depth == 0:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	if quoted || depth != 0 {
		return nil, fmt.Errorf("a quotation mark or bracket is not closed in %s", quote(s))
	}
	return append(parts, s[from:]), nil
}

// PluginReport is what a plugin did and cost in one request.
type PluginReport struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	Outcome string `json:"outcome"`         // ok, skipped, restarted, failed, not interested
	Error   string `json:"error,omitempty"` // code and message of the latest failure
	// Reason is why a plugin was skipped from the start, without a failure: greedy, where
	// it never changes the likeliest token, or unopened, where the request failed or was
	// cancelled before it opened.
	Reason    string  `json:"reason,omitempty"`
	Calls     int     `json:"calls"`
	MicrosPer float64 `json:"us_per_token"`
	FuelPer   float64 `json:"fuel_per_token"`
	OnceUS    float64 `json:"once_us"` // outside of tokens: opening, the prompt, the end
	OnceFuel  int64   `json:"once_fuel"`
	Changed   int     `json:"tokens_changed"`
	Rewritten int     `json:"texts_rewritten"`
	Rewinds   int     `json:"rewinds"`
	Shadow    bool    `json:"shadow,omitempty"` // it only watched
	// Choices are those of a plugin that only watched, where they were not the token that
	// came; everywhere else, as long as it watched, they were.
	Choices []ShadowChoice `json:"choices,omitempty"`
	Tokens  int            `json:"-"` // of the text, for sums
	// Settings is the hash of those that the request chose, where they are not the plugin's
	// defaults; empty: it ran with these, or with the operator's.
	Settings string `json:"-"`
}

// ShadowChoice is the token that a plugin which only watches would have had at one place.
type ShadowChoice struct {
	At   int    `json:"at"` // index of the generated token; that behind the last one: where the text ended
	ID   int32  `json:"id"`
	Text string `json:"text"`
}

// Code is the code of the latest failure; empty where there was none.
func (r *PluginReport) Code() string {
	code, _, _ := strings.Cut(r.Error, ":")
	return code
}

// Summary is the report as the header Ganglion-Plugins shows it.
func (r *PluginReport) Summary() string {
	s := r.Name + "@" + r.Version + " " + r.Outcome
	if why := cmp.Or(r.Code(), r.Reason); why != "" {
		s += "=" + why
	}
	if r.Calls > 0 {
		s += " " + strconv.FormatFloat(r.MicrosPer, 'f', 1, 64) + "us/tok fuel=" + strconv.FormatFloat(r.FuelPer, 'f', 0, 64)
	}
	if r.Calls > 0 || r.Changed > 0 {
		s += " changed=" + strconv.Itoa(r.Changed)
	}
	if r.OnceFuel > 0 {
		s += " once=" + strconv.FormatFloat(r.OnceUS, 'f', 1, 64) + "us once_fuel=" + strconv.FormatInt(r.OnceFuel, 10)
	}
	return s
}

// PluginSummary is the value of the header Ganglion-Plugins in an answer. Of shadows it
// says nothing: they are the operator's.
func PluginSummary(reports []PluginReport) string {
	own := OwnReports(reports)
	parts := make([]string, len(own))
	for i := range own {
		parts[i] = own[i].Summary()
	}
	return strings.Join(parts, "; ")
}

// OwnReports are the reports of a request's own plugins: what an answer tells, while the
// log has those of shadows too.
func OwnReports(reports []PluginReport) (own []PluginReport) {
	for _, r := range reports {
		if !r.Shadow {
			own = append(own, r)
		}
	}
	return own
}

// OwnMeta is what a request's own plugins left.
func OwnMeta(meta map[string]string) map[string]string {
	own := maps.Clone(meta)
	maps.DeleteFunc(own, func(key, _ string) bool { return strings.HasPrefix(key, shadowMeta) })
	return own
}

// PluginFault is how a plugin made a request fail.
type PluginFault struct {
	Code            string // trap, fuel, memory, action, nan, empty, quota, livelock, open, panic, error
	Plugin, Version string
	Step            int
}
