package api

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
	"ganglion/appliance/media"
)

// known are the fields that are read; all others have no effect.
var known = map[string]bool{
	"prompt": true, "images": true, "audios": true, "videos": true,
	"max_completion_tokens": true, "temperature": true, "top_p": true, "top_k": true,
	"stream": true, "stop": true, "seed": true, "presence_penalty": true,
	"frequency_penalty": true, "logit_bias": true, "logprobs": true,
	// extensions
	"max_tokens": true, "n": true, "min_p": true, "top_logprobs": true, "stream_options": true, "speculate": true, "lora": true, "plugins": true,
	// other routes
	"text": true, "special": true, "bos": true, "tokens": true, "id": true, "hash": true,
}

// DecodeCompletion reads the body of POST /v1/completions. Errors are
// *appliance.Error. The request refers to the body, which must not change.
func DecodeCompletion(body []byte, l media.Limits) (*CompletionRequest, error) {
	d, err := open(body)
	if err != nil {
		return nil, err
	}
	r := &CompletionRequest{N: 1}
	r.Prompts = d.prompts("prompt")
	p := &r.Params
	p.MaxTokens = d.limit("max_completion_tokens")
	if alias := d.limit("max_tokens"); p.MaxTokens == nil && alias != nil {
		p.MaxTokens, r.MaxAlias = alias, true
	}
	p.Temperature = d.number("temperature")
	p.TopP = d.number("top_p")
	p.MinP = d.number("min_p")
	p.TopK = d.integer("top_k")
	p.Seed = d.integer("seed")
	p.PresencePenalty = d.number("presence_penalty")
	p.FrequencyPenalty = d.number("frequency_penalty")
	p.Stop = d.stops("stop")
	p.LogitBias = d.biases("logit_bias")
	p.Stream = d.boolean("stream")
	r.Logprobs, p.TopLogprobs = d.logprobs()
	p.Logprobs = r.Logprobs != NoLogprobs
	p.LoRA = d.adapters("lora")
	p.Plugins = d.plugins("plugins")
	p.Speculate = appliance.Speculation(d.word("speculate"))
	r.IncludeUsage = d.includeUsage("stream_options")
	if n := d.ranged("n", 1, MaxChoices); n != nil {
		r.N = int(*n)
	}
	if d.err == nil && r.Choices() > MaxChoices {
		d.fail(appliance.CodeInvalid, "prompt", "asks for %d choices with n, at most %d are given", r.Choices(), MaxChoices)
	}
	if p.Media = d.media(l); p.Media != nil {
		p.Headers = new(appliance.Headers)
	}
	if d.err != nil {
		return nil, d.err
	}
	p.Body = withoutMedia(body, d)
	return r, nil
}

// reading has a place for each body whose media are read: it takes the time of a pass over
// their files, before a request has its place in the queue.
var reading = make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))

// media reads the fields of media.
func (d *decoder) media(l media.Limits) (items []appliance.Media) {
	f := media.Fields{Images: d.fields["images"], Audios: d.fields["audios"], Videos: d.fields["videos"]}
	if d.err != nil || !f.Images.Present() && !f.Audios.Present() && !f.Videos.Present() {
		return nil
	}
	reading <- struct{}{}
	defer func() { <-reading }()
	items, d.err = media.Read(f, l)
	return items
}

// withoutMedia is a body for the log: a note stands in the place of each field with media,
// for the log keeps what they were (appliance.MediaNote) and never their bytes.
func withoutMedia(body []byte, d *decoder) []byte {
	type place struct{ at, n int }
	var places []place
	for _, name := range []string{"images", "audios", "videos"} {
		v := d.fields[name]
		if n := len(v.Raw()); n > len("null") { // not null, [] and such
			places = append(places, place{v.Offset(body), n})
		}
	}
	if len(places) == 0 {
		return body
	}
	slices.SortFunc(places, func(a, b place) int { return a.at - b.at })
	var out []byte
	from := 0
	for _, p := range places {
		out = append(out, body[from:p.at]...)
		out = fmt.Appendf(out, `"%d bytes, left out of the log"`, p.n)
		from = p.at + p.n
	}
	return append(out, body[from:]...)
}

// limit reads a number of tokens: one that is too large for 64 bits is more than
// any room, like every other that is more than the room.
func (d *decoder) limit(name string) *int64 {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	n, whole := d.whole(name, v)
	if whole == jsontext.TooSmall {
		d.fail(appliance.CodeInvalid, name, "must not be negative, not %s", shown(v))
	}
	if d.err != nil {
		return nil
	}
	return &n
}

// prompts reads the prompt: a string, or as an extension an array of strings or of
// arrays of token ids. A flat array of numbers is refused: the contract knows no
// such prompt, and its numbers could be meant as either one prompt or many.
func (d *decoder) prompts(name string) []Prompt {
	v, ok := d.field(name)
	switch {
	case !ok:
		d.fail(appliance.CodeMissing, name, "is required")
		return nil
	case v.Kind() == jsontext.String:
		return []Prompt{{Text: d.text(name, v)}}
	case v.Kind() != jsontext.Array:
		d.wrong(name, "a string", v)
		return nil
	}
	var prompts []Prompt
	for i, e := range v.Elements() {
		param := fmt.Sprintf("%s[%d]", name, i)
		switch {
		case i >= MaxChoices:
			d.fail(appliance.CodeInvalid, name, "holds more than %d prompts", MaxChoices)
		case e.Kind() == jsontext.Array:
			prompts = append(prompts, Prompt{Tokens: d.tokens(param, e)})
		case e.Kind() == jsontext.String:
			prompts = append(prompts, Prompt{Text: d.text(param, e)})
		case e.Kind() == jsontext.Number:
			d.fail(appliance.CodeInvalidType, param, "must be a string, not a number; token ids are written as [[1,2,3]]")
		default:
			d.wrong(param, "a string", e)
		}
		if d.err != nil {
			return nil
		}
	}
	if len(prompts) == 0 {
		d.fail(appliance.CodeMissing, name, "is an empty array")
	}
	return prompts
}

// tokens reads token ids. The result is never nil, so that no ids are still a
// prompt of ids.
func (d *decoder) tokens(param string, v jsontext.Value) []int32 {
	ids := []int32{}
	for i, e := range v.Elements() {
		at := fmt.Sprintf("%s[%d]", param, i)
		n, whole := d.whole(at, e)
		if d.err == nil && (whole != jsontext.IsInt || n < 0 || n > math.MaxInt32) {
			d.fail(appliance.CodeInvalid, at, "%s is no token id", shown(e))
		}
		if d.err != nil {
			return nil
		}
		ids = append(ids, int32(n))
	}
	return ids
}

// stops reads the stop strings; a single string is an extension.
func (d *decoder) stops(name string) []string {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	one := func(param string, v jsontext.Value) string {
		s := d.text(param, v)
		if s == "" {
			d.fail(appliance.CodeInvalid, param, "must not be empty")
		}
		return s
	}
	switch v.Kind() {
	case jsontext.String:
		return []string{one(name, v)}
	case jsontext.Array:
	default:
		d.wrong(name, "an array of strings", v)
		return nil
	}
	var stops []string
	for i, e := range v.Elements() {
		stops = append(stops, one(fmt.Sprintf("%s[%d]", name, i), e))
		if d.err != nil {
			return nil
		}
	}
	return stops
}

// biases reads logit_bias. A key is a token id in decimal, written as a number is:
// no sign before it but a minus, no leading zeros, so that each id has one key.
func (d *decoder) biases(name string) []appliance.Bias {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	if v.Kind() != jsontext.Object {
		d.wrong(name, "an object", v)
		return nil
	}
	var biases []appliance.Bias
	for key, e := range v.Members() {
		id, err := strconv.ParseInt(key, 10, 64)
		switch {
		case strings.Trim(key, "-0123456789") != "" || key == "":
			d.fail(appliance.CodeInvalid, name, "name %d of the object is no token id", len(biases)+1)
		case err != nil || strconv.FormatInt(id, 10) != key:
			d.fail(appliance.CodeInvalid, biasParam(name, key), "the name is no token id")
		}
		if d.err != nil {
			return nil
		}
		f, _ := d.float(biasParam(name, key), e)
		if d.err != nil {
			return nil
		}
		biases = append(biases, appliance.Bias{Key: key, ID: id, Value: f})
	}
	return biases
}

// biasParam names an entry whose key is made of digits alone.
func biasParam(name, key string) string {
	if len(key) > 64 {
		key = key[:61] + "..."
	}
	return fmt.Sprintf("%s[%q]", name, key)
}

// logprobs reads logprobs and top_logprobs together: true asks for numbers, an
// integer for the object with that many alternatives, top_logprobs only says how
// many alternatives the details of a token have.
func (d *decoder) logprobs() (Logprobs, int) {
	top := 0
	if n := d.ranged("top_logprobs", 0, MaxTopLogprobs); n != nil {
		top = int(*n)
	}
	v, ok := d.field("logprobs")
	switch {
	case !ok:
		return NoLogprobs, top
	case v.Kind() == jsontext.Bool && v.True():
		return LogprobNumbers, top
	case v.Kind() == jsontext.Bool:
		return NoLogprobs, top
	case v.Kind() != jsontext.Number:
		d.wrong("logprobs", "a boolean", v)
		return NoLogprobs, 0
	}
	if n := d.ranged("logprobs", 0, MaxTopLogprobs); n != nil {
		top = max(top, int(*n))
	}
	return LogprobObject, top
}

func (d *decoder) includeUsage(name string) bool {
	v, ok := d.field(name)
	if !ok {
		return false
	}
	if v.Kind() != jsontext.Object {
		d.wrong(name, "an object", v)
		return false
	}
	for member, mv := range v.Members() {
		if member != "include_usage" || !mv.Present() {
			continue
		}
		if mv.Kind() != jsontext.Bool {
			d.wrong(name+".include_usage", "a boolean", mv)
		}
		return mv.True()
	}
	return false
}
