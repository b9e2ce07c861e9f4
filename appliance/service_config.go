package appliance

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"time"

	"ganglion/appliance/media/film"

	"ganglion/plugins/sampling"
)

// Built-in values of the service.
const (
	// DefaultMaxTokens is the limit of a completion that asks for none.
	DefaultMaxTokens = 512
	// DefaultQueueMax is how many requests may wait for a slot.
	DefaultQueueMax = 64
	// DefaultPluginWait is how long a step waits for plugins: most take far less, and a
	// stream that shares the step with a slow one does not feel it.
	DefaultPluginWait = 3 * time.Millisecond
	// DefaultImageTokens bounds a picture to about 630 pixels a side for Qwen-VL.
	DefaultImageTokens = 512
	// DefaultMediaCacheBytes holds some fifty pictures of 256 rows.
	DefaultMediaCacheBytes = 128 << 20
	// DefaultMediaTime is far more than any file within the limits takes.
	DefaultMediaTime = 20 * time.Second
)

// Config says how a Service works. Zero values take the defaults named. It is
// checked once, by NewService, and not changed afterwards.
type Config struct {
	Recorder Recorder         // the request log; nil keeps none
	Logger   *slog.Logger     // internal errors, never prompt text; default slog.Default()
	Now      func() time.Time // default time.Now; safe for concurrent use
	Rand     func() uint64    // seeds of requests without one; default the system's; safe for concurrent use

	// Scan computes over whole rows of logits what plugins want to know of them, faster than
	// plain Go; nil: plain Go. It changes no result.
	Scan sampling.Scanner

	QueueMax         int // requests waiting for a slot, default DefaultQueueMax
	DefaultMaxTokens int // max_completion_tokens where a request names none, default DefaultMaxTokens

	// PlainSpecial reads the text of control tokens in prompts as ordinary text.
	// By default it is parsed.
	PlainSpecial bool

	Speculate Speculation // where guesses of the next tokens come from, default SpeculateLookup
	DraftMax  int         // tokens guessed at once, default DefaultDraftMax

	// Sampling values for requests and model files that name none; nil: built in
	// (temperature 1, top_p 1, top_k 0, min_p 0).
	Temperature, TopP, MinP *float64
	TopK                    *int64

	// LoRA are the adapters of the models that are given to the service, with the
	// strengths for requests that name none.
	LoRA []LoRA

	// MediaCacheBytes bounds the encoded pictures and sounds that are kept for later
	// requests, default DefaultMediaCacheBytes.
	MediaCacheBytes int64
	// Film decodes films of kinds that are not decoded in this process; nil: they are
	// refused. It belongs to who gave it.
	Film *film.Engine
	// MediaTime bounds how long one item may take to decode, default DefaultMediaTime.
	MediaTime time.Duration

	Plugins         Plugins                   // nil: there are none
	DefaultPlugins  []PluginChoice            // of requests that name none
	ModelPlugins    map[string][]PluginChoice // the same, by the model's name; they come before DefaultPlugins
	RequiredPlugins []PluginChoice            // of every request
	InlinePlugins   bool                      // requests may bring the code of plugins
	ShadowPlugins   []PluginChoice            // that watch every request: what they would choose is counted and not used
	// PluginWait is how long the other sequences of a step wait for one with plugins,
	// which then misses steps until it is done; default DefaultPluginWait.
	PluginWait time.Duration
}

// Validate reports the first value that is out of range, naming it.
func (c *Config) Validate() error {
	switch {
	case c.QueueMax < 0:
		return fmt.Errorf("appliance: config: queue_max %d is negative", c.QueueMax)
	case c.DefaultMaxTokens < 0:
		return fmt.Errorf("appliance: config: default_max_tokens %d is negative", c.DefaultMaxTokens)
	case c.DraftMax < 0 || c.DraftMax >= maxWanted:
		return fmt.Errorf("appliance: config: draft_max %d is not in 0 to %d", c.DraftMax, maxWanted-1)
	case c.Speculate != "" && !c.Speculate.known():
		return fmt.Errorf("appliance: config: speculate %q is none of off, lookup and draft", c.Speculate)
	}
	if field, fact := samplingFault(c.Temperature, c.TopP, c.MinP, c.TopK); field != "" {
		return fmt.Errorf("appliance: config: %s %s", field, fact)
	}
	if fact := loraFault(c.LoRA); fact != "" {
		return fmt.Errorf("appliance: config: lora %s", fact)
	}
	return nil
}

// samplingFault names the first default sampling value that is out of range and says
// what is wrong with it; field is empty when there is none.
func samplingFault(temperature, topP, minP *float64, topK *int64) (field, fact string) {
	for _, v := range []struct {
		field string
		value *float64
		limit span
	}{
		{"temperature", temperature, temperatureSpan},
		{"top_p", topP, unitSpan},
		{"min_p", minP, unitSpan},
	} {
		if v.value != nil && !v.limit.holds(*v.value) {
			return v.field, fmt.Sprintf("%g is not in %s", *v.value, v.limit)
		}
	}
	if topK != nil && *topK < 0 {
		return "top_k", fmt.Sprintf("%d is negative", *topK)
	}
	return "", ""
}

// withDefaults fills in what is absent.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = systemRandom
	}
	if c.QueueMax == 0 {
		c.QueueMax = DefaultQueueMax
	}
	if c.DefaultMaxTokens == 0 {
		c.DefaultMaxTokens = DefaultMaxTokens
	}
	if c.Speculate == "" {
		c.Speculate = SpeculateLookup
	}
	if c.DraftMax == 0 {
		c.DraftMax = DefaultDraftMax
	}
	if c.MediaCacheBytes == 0 {
		c.MediaCacheBytes = DefaultMediaCacheBytes
	}
	if c.MediaTime == 0 {
		c.MediaTime = DefaultMediaTime
	}
	if c.PluginWait == 0 {
		c.PluginWait = DefaultPluginWait
	}
	return c
}

func systemRandom() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: it crashes the program where the system has no randomness
	return binary.LittleEndian.Uint64(b[:])
}

// span is a closed range of numbers.
type span struct{ low, high float64 }

// The ranges of the numeric parameters. The contract gives none; penalties are
// bounded as everywhere in the field, and the temperature where the distribution of
// any real model is flat long before.
var (
	unitSpan        = span{0, 1}
	temperatureSpan = span{0, 100}
	penaltySpan     = span{-2, 2}
	biasSpan        = span{-100, 100}
	adapterSpan     = span{-100, 100}
)

// holds tells whether v is in the range; NaN is in none.
func (s span) holds(v float64) bool { return v >= s.low && v <= s.high && !math.IsNaN(v) }

func (s span) String() string { return fmt.Sprintf("[%g, %g]", s.low, s.high) }
