package api

import (
	"errors"
	"fmt"
	"math"
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
	"text": true, "special": true, "bos": true, "tokens": true, "id": true,
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
	if d.err == nil {
		p.Media, d.err = media.Read(media.Fields{
			Images: d.fields["images"], Audios: d.fields["audios"], Videos: d.fields["videos"],
		}, l)
	}
	if d.err != nil {
		return nil, d.err
	}
	p.Body = body
	return r, nil
}

// decoder reads the fields of one object. The first failure stays; readers called
// after it return nothing.
type decoder struct {
	fields map[string]jsontext.Value
	err    error
}

// open checks a body and finds its known fields.
func open(body []byte) (*decoder, error) {
	v, err := jsontext.Parse(body)
	if err != nil {
		return nil, textError(err)
	}
	if v.Kind() != jsontext.Object {
		return nil, appliance.Errorf(appliance.CodeInvalidType, "", "the body must be a JSON object, not %s", v.Kind())
	}
	d := &decoder{fields: make(map[string]jsontext.Value, 16)}
	for name, member := range v.Members() {
		if known[name] {
			d.fields[name] = member
		}
	}
	return d, nil
}

// textError turns a fault of the text into an error of the wire. A name is
// repeated only if it is one of ours: others may hold anything.
func textError(err error) error {
	var e *jsontext.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Fault {
	case jsontext.FaultUTF8:
		return appliance.Errorf(appliance.CodeInvalidUTF8, "", "the body is not UTF-8 at byte %d", e.Offset)
	case jsontext.FaultDuplicate:
		name := ""
		if known[e.Name] {
			name = e.Name
		}
		return appliance.Errorf(appliance.CodeDuplicateKey, name, "%sthe name at byte %d occurs twice in one object", prefix(name), e.Offset)
	}
	return appliance.Errorf(appliance.CodeInvalidJSON, "", "the body is not JSON that can be read: byte %d: %s", e.Offset, e.Message)
}

func prefix(param string) string {
	if param == "" {
		return ""
	}
	return param + ": "
}

func (d *decoder) fail(code appliance.Code, param, format string, args ...any) {
	if d.err == nil {
		d.err = appliance.Errorf(code, param, "%s: %s", param, fmt.Sprintf(format, args...))
	}
}

// wrong fails because a value has the wrong type.
func (d *decoder) wrong(param, want string, v jsontext.Value) {
	d.fail(appliance.CodeInvalidType, param, "must be %s, not %s", want, v.Kind())
}

// field is a field's value if it is there, is not null and nothing has failed.
func (d *decoder) field(name string) (jsontext.Value, bool) {
	v := d.fields[name]
	return v, d.err == nil && v.Present()
}

func (d *decoder) boolean(name string) bool {
	v, ok := d.field(name)
	if ok && v.Kind() != jsontext.Bool {
		d.wrong(name, "a boolean", v)
	}
	return ok && v.True()
}

func (d *decoder) number(name string) *float64 {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	f, ok := d.float(name, v)
	if !ok {
		return nil
	}
	return &f
}

func (d *decoder) float(param string, v jsontext.Value) (float64, bool) {
	if v.Kind() != jsontext.Number {
		d.wrong(param, "a number", v)
		return 0, false
	}
	f, ok := v.Float()
	if !ok {
		d.fail(appliance.CodeInvalid, param, "%s is beyond the range of numbers", shown(v))
	}
	return f, ok
}

// shown is a number as written, at most 64 characters of it.
func shown(v jsontext.Value) string {
	if raw := v.Raw(); len(raw) > 64 {
		return string(raw[:61]) + "..."
	}
	return string(v.Raw())
}

// whole reads an integer and tells how it stands to 64 bits.
func (d *decoder) whole(param string, v jsontext.Value) (int64, jsontext.Whole) {
	if v.Kind() != jsontext.Number {
		d.wrong(param, "an integer", v)
		return 0, jsontext.Fraction
	}
	n, whole := v.Int()
	if whole == jsontext.Fraction {
		d.fail(appliance.CodeInvalidType, param, "must be an integer, not %s", shown(v))
	}
	return n, whole
}

func (d *decoder) integer(name string) *int64 {
	return d.ranged(name, math.MinInt64, math.MaxInt64)
}

func (d *decoder) ranged(name string, low, high int64) *int64 {
	v, ok := d.field(name)
	if !ok {
		return nil
	}
	n, whole := d.whole(name, v)
	if d.err == nil && (whole != jsontext.IsInt || n < low || n > high) {
		d.fail(appliance.CodeInvalid, name, "must be an integer from %d to %d, not %s", low, high, shown(v))
	}
	if d.err != nil {
		return nil
	}
	return &n
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

func (d *decoder) text(param string, v jsontext.Value) string {
	if v.Kind() != jsontext.String {
		d.wrong(param, "a string", v)
		return ""
	}
	s, err := v.Text()
	if err != nil {
		d.fail(appliance.CodeInvalidUTF8, param, "holds a surrogate escape without its other half, which is no character")
	}
	return s
}

// word reads an optional string, which is not empty where it is given.
func (d *decoder) word(name string) string {
	v, ok := d.field(name)
	if !ok {
		return ""
	}
	s := d.text(name, v)
	if s == "" {
		d.fail(appliance.CodeInvalid, name, "must not be empty")
	}
	return s
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
