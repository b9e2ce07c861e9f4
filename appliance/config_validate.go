package appliance

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"ganglion/gpu/ops"
)

// maxSlots bounds the sequences decoded at once; far more than any machine serves.
const maxSlots = 1024

// Validate reports the first value that cannot be used, naming its flag. Whether a
// backend exists and a model file can be read is found out when they are opened.
func (s *Settings) Validate() error {
	for _, check := range []func() error{s.checkListen, s.checkKey, s.checkWords, s.checkCounts, s.checkSampling, s.checkLoRA, s.checkPlugins} {
		if err := check(); err != nil {
			return fmt.Errorf("appliance: settings: %w", err)
		}
	}
	return nil
}

func (s *Settings) checkListen() error {
	_, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("--listen %q is not HOST:PORT", s.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--listen %q: the port is not a number from 0 to 65535", s.Listen)
	}
	return nil
}

// checkKey wants a key that fits an Authorization header as it is. The key is never
// part of the message.
func (s *Settings) checkKey() error {
	for i := range len(s.Key) {
		if c := s.Key[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("the key (GANGLION_KEY or --key-file) has byte 0x%02x at %d; only visible ASCII without spaces can be sent", c, i)
		}
	}
	return nil
}

func (s *Settings) checkWords() error {
	for _, c := range []struct {
		flag, value string
		known       []string // nil: any but the empty word
	}{
		{"backend", s.Backend, nil},
		{"prompt-backend", s.PromptBackend, nil},
		{"gpu-variants", s.GPUVariants, []string{"auto", "all", "none"}},
		{"numerics", s.Numerics, []string{"fast", "exact"}},
		{"kv", s.KV, ops.KVTypes()},
		{"speculate", s.Speculate, []string{"auto", "off", "lookup", "draft"}},
	} {
		switch {
		case c.value == "":
			return fmt.Errorf("--%s is empty", c.flag)
		case c.known != nil && !slices.Contains(c.known, c.value):
			return fmt.Errorf("--%s %q is neither %s nor %s", c.flag, c.value,
				strings.Join(c.known[:len(c.known)-1], ", "), c.known[len(c.known)-1])
		}
	}
	if s.PromptBackend == "same" && s.PromptDevice != "" {
		return errors.New("--prompt-backend same and --prompt-device contradict each other")
	}
	if s.Speculation() == SpeculateDraft && s.DraftModel == "" {
		return errors.New("--speculate draft needs --draft-model FILE")
	}
	for _, c := range []struct {
		flag   string
		values []string
	}{{"model-dir", s.ModelDirs}, {"allow-host", s.AllowedHosts}, {"allow-origin", s.AllowedOrigins}} {
		if slices.Contains(c.values, "") {
			return fmt.Errorf("--%s has an empty value", c.flag)
		}
	}
	return nil
}

func (s *Settings) checkCounts() error {
	for _, c := range []struct {
		flag             string
		value, low, high int64
	}{
		{"threads", int64(s.Threads), 1, 1 << 16},
		{"context", int64(s.Context), 0, 1 << 30},
		{"slots", int64(s.Slots), 1, maxSlots},
		{"queue", int64(s.Queue), 1, 1 << 20},
		{"cache-tokens", int64(s.CacheTokens), 0, 1 << 30},
		{"draft-max", int64(s.DraftMax), 1, maxWanted - 1},
		{"image-tokens", int64(s.ImageTokens), 1, 1 << 14},
		{"max-tokens", int64(s.DefaultMaxTokens), 1, 1 << 30},
		{"body-bytes", s.BodyBytes, 1 << 10, 1 << 30},
		{"media-bytes", s.MediaBytes, 1 << 10, 1 << 30},
		{"image-pixels", int64(s.ImagePixels), 1, 40_000_000}, // what decoders bear
		{"media-seconds", int64(s.MediaSeconds), 1, 3600},
		{"video-frames", int64(s.VideoFrames), 1, 256},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("--%s %d is not in [%d, %d]", c.flag, c.value, c.low, c.high)
		}
	}
	switch {
	case s.DeviceMemory < 0:
		return fmt.Errorf("--device-memory %d is negative", s.DeviceMemory)
	case s.SnapshotBytes < 0:
		return fmt.Errorf("--snapshot-bytes %d is negative", s.SnapshotBytes)
	case s.LogMaxAge < 0:
		return fmt.Errorf("--log-max-age %s is negative", s.LogMaxAge)
	case s.LogMaxBytes < 0:
		return fmt.Errorf("--log-max-bytes %d is negative", s.LogMaxBytes)
	}
	return nil
}

func (s *Settings) checkSampling() error {
	if field, fact := samplingFault(s.Temperature, s.TopP, s.MinP, s.TopK); field != "" {
		return fmt.Errorf("--%s %s", strings.ReplaceAll(field, "_", "-"), fact)
	}
	return nil
}
