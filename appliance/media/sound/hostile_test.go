package sound

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"ganglion/gpu/cputime"
)

// A FLAC file without a length is searched for its last frame from the end, as far as a
// frame can reach.
func TestFLACWithoutFrames(t *testing.T) {
	pipe := file(t, "tones-pipe.flac")
	head := pipe[:8+34]
	head[4] |= 0x80 // the last block of metadata
	for name, filling := range map[string][]byte{"marks": {0xff}, "headers": {0xff, 0xf8}} {
		data := append(bytes.Clone(head), bytes.Repeat(filling, 32<<20/len(filling))...)
		start := cputime.Used()
		_, err := Inspect(data)
		if took := cputime.Used() - start; !errors.Is(err, ErrDamaged) || took > 2*time.Second {
			t.Errorf("%s: %v after %v, want ErrDamaged at once", name, err, took)
		}
	}
}

// ends is a context that ends after it was asked n times.
type ends struct {
	context.Context
	n int
}

func (c *ends) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// One block of a sound of one sample a second is many samples at 16 kHz.
func TestResamplingStopsWhenCancelled(t *testing.T) {
	r := newResampler(1, 300*Rate)
	if err := r.push(&ends{t.Context(), 1}, make([]float32, 300)); !errors.Is(err, context.Canceled) || len(r.out) > 1<<16 {
		t.Errorf("%v after %d samples, want context.Canceled after 65,536", err, len(r.out))
	}
	if _, err := r.finish(&ends{t.Context(), 0}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}
