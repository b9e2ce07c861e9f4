package appliance

import (
	"math"
	"strconv"
	"unicode/utf8"

	"ganglion/gpu/engine"
	"ganglion/plugins/sampling"
)

// Limits of a request's parameters.
const (
	maxStops       = 1024
	maxStopBytes   = 64 << 10
	maxTopLogprobs = 20
	maxSeed        = 1<<53 - 1 // drawn seeds stay exact in JSON readers that use doubles
)

// settings are the parameters of one request, each with a value.
type settings struct {
	sampling  sampling.Params
	maxTokens int // completion tokens; room is already taken into account
	stop      *stopSet
	params    []Param
	adapters  []engine.AdapterScale // those that act
}

// resolver gives every parameter a value and an origin. The first error ends it.
type resolver struct {
	r    *Request
	cfg  *Config
	info *engine.Info
	v    Vocabulary
	out  settings
	err  *Error
}

// resolve checks the parameters of a request against the model. room is how many
// tokens the context still holds after the prompt.
func resolve(r *Request, cfg *Config, info *engine.Info, v Vocabulary, room int) (*settings, *Error) {
	s := &resolver{r: r, cfg: cfg, info: info, v: v}
	p := &s.out.sampling
	p.Vocab, p.Suppressed = info.Vocab, v.Suppressed()

	s.limit(room)
	file := &info.Sampling
	p.Temperature = s.number("temperature", temperatureSpan, 1, r.Temperature, file.Temperature, cfg.Temperature)
	p.TopP = s.number("top_p", unitSpan, 1, r.TopP, file.TopP, cfg.TopP)
	p.TopK = s.topK()
	p.MinP = s.number("min_p", unitSpan, 0, r.MinP, file.MinP, cfg.MinP)
	p.Seed = s.seed()
	s.stops()
	p.PresencePenalty = s.number("presence_penalty", penaltySpan, 0, r.PresencePenalty, nil, nil)
	p.FrequencyPenalty = s.number("frequency_penalty", penaltySpan, 0, r.FrequencyPenalty, nil, nil)
	p.Bias = s.bias()
	p.TopLogprobs = s.logprobs()
	s.lora()
	s.add("stream", r.Stream, requested(r.Stream))
	if s.err != nil {
		return nil, s.err
	}
	return &s.out, nil
}

func (s *resolver) add(name string, value any, from Origin) {
	s.out.params = append(s.out.params, Param{Name: name, Value: value, Origin: from})
}

func (s *resolver) fail(param, format string, args ...any) {
	if s.err == nil {
		s.err = Errorf(CodeInvalid, param, format, args...)
	}
}

// requested is the origin of a value whose zero means "absent".
func requested(given bool) Origin {
	if given {
		return FromRequest
	}
	return FromDefault
}

// number resolves a parameter with a range: the request's value, else the model
// file's where it makes sense, else the configuration's, else the built-in one.
func (s *resolver) number(name string, in span, builtin float64, request, file, config *float64) float64 {
	v, from := builtin, FromDefault
	switch {
	case request != nil:
		v, from = *request, FromRequest
		if !in.holds(v) {
			s.fail(name, "%s is %g; it must be in %s", name, v, in)
		}
	case file != nil && in.holds(*file):
		v, from = *file, FromModel
	case config != nil:
		v, from = *config, FromConfig
	}
	s.add(name, v, from)
	return v
}

// topK resolves top_k; 0 switches the filter off, and more than the vocabulary is
// the whole of it.
func (s *resolver) topK() int {
	v, from := int64(0), FromDefault
	switch {
	case s.r.TopK != nil:
		v, from = *s.r.TopK, FromRequest
		if v < 0 {
			s.fail("top_k", "top_k is %d; it must be 0 (off) or more", v)
		}
	case s.info.Sampling.TopK != nil && *s.info.Sampling.TopK >= 0:
		v, from = *s.info.Sampling.TopK, FromModel
	case s.cfg.TopK != nil:
		v, from = *s.cfg.TopK, FromConfig
	}
	s.add("top_k", v, from)
	return int(min(max(v, 0), int64(s.info.Vocab)))
}

// limit resolves max_completion_tokens and clamps it to the room left.
func (s *resolver) limit(room int) {
	v, from := int64(DefaultMaxTokens), FromDefault
	switch {
	case s.r.MaxTokens != nil:
		v, from = *s.r.MaxTokens, FromRequest
		if v < 0 {
			s.fail("max_completion_tokens", "max_completion_tokens is %d; it must be 0 or more", v)
		}
	case s.cfg.DefaultMaxTokens != DefaultMaxTokens:
		v, from = int64(s.cfg.DefaultMaxTokens), FromConfig
	}
	if v > int64(room) {
		v, from = int64(room), FromLimit
	}
	s.out.maxTokens = int(max(v, 0))
	s.add("max_completion_tokens", v, from)
}

// seed resolves the seed; without one it is drawn, and the record keeps it.
func (s *resolver) seed() int64 {
	if s.r.Seed != nil {
		s.add("seed", *s.r.Seed, FromRequest)
		return *s.r.Seed
	}
	v := int64(s.cfg.Rand() & maxSeed)
	s.add("seed", v, FromRandom)
	return v
}

func (s *resolver) stops() {
	total := 0
	for i, stop := range s.r.Stop {
		name := "stop[" + strconv.Itoa(i) + "]"
		switch total += len(stop); {
		case i >= maxStops:
			s.fail("stop", "stop has %d strings; at most %d are allowed", len(s.r.Stop), maxStops)
		case total > maxStopBytes:
			s.fail("stop", "the stop strings have more than %d bytes together", maxStopBytes)
		case stop == "":
			s.fail(name, "%s is empty; a stop string has at least one character", name)
		case !utf8.ValidString(stop):
			s.fail(name, "%s is not valid UTF-8", name)
		}
		if s.err != nil {
			return
		}
	}
	s.out.stop = newStopSet(s.r.Stop)
	s.add("stop", append([]string{}, s.r.Stop...), requested(len(s.r.Stop) > 0))
}

func (s *resolver) bias() []sampling.Bias {
	var out []sampling.Bias
	values := make(map[string]float64, len(s.r.LogitBias))
	for _, b := range s.r.LogitBias {
		name := "logit_bias[" + quote(b.Key) + "]"
		switch {
		case b.ID < 0 || b.ID >= int64(s.v.VocabSize()):
			s.fail(name, "%s: the model's token ids are 0 to %d", name, s.v.VocabSize()-1)
			return nil
		case !biasSpan.holds(b.Value):
			s.fail(name, "%s is %g; it must be in %s", name, b.Value, biasSpan)
			return nil
		}
		out = append(out, sampling.Bias{ID: int32(b.ID), Value: float32(b.Value)})
		values[b.Key] = b.Value
	}
	s.add("logit_bias", values, requested(len(out) > 0))
	return out
}

// logprobs resolves logprobs and the number of alternatives.
func (s *resolver) logprobs() int {
	n := s.r.TopLogprobs
	if n < 0 || n > maxTopLogprobs {
		s.fail("top_logprobs", "top_logprobs is %d; it must be 0 to %d", n, maxTopLogprobs)
	}
	s.add("logprobs", s.r.Logprobs, requested(s.r.Logprobs))
	s.add("top_logprobs", n, requested(n != 0))
	return max(n, 0)
}

// quote quotes a piece of a request for an error message: at most 64 characters
// with escapes, so that an error stays small and cannot be taken for something else.
func quote(s string) string {
	const limit = 62 // and two quotation marks
	if len(s) > limit {
		s = s[:limit]
	}
	q := strconv.QuoteToASCII(s)
	for len(q) > limit+2 {
		s = s[:len(s)-1]
		q = strconv.QuoteToASCII(s)
	}
	return q
}

// roomAfter returns how many tokens the context holds after a prompt, or the error
// that there is none.
func roomAfter(prompt []int32, context int) (int, *Error) {
	if len(prompt) >= context {
		return 0, Errorf(CodeContextLength, "prompt",
			"the prompt has %d tokens and the model's context holds %d; at least one must be left for the answer", len(prompt), context)
	}
	return min(context-len(prompt), math.MaxInt32), nil
}
