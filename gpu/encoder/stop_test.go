package encoder_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/cputime"
	"ganglion/gpu/encoder"
	"ganglion/gpu/encoder/encodertest"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// A tower that runs stops soon after its context is done, though one run of it takes many
// times as long, and encodes the same afterwards.
func TestTowersStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "siglip.gguf")
	if err := gguftest.Write(path, encodertest.SigLIP(2, 4)); err != nil {
		t.Fatal(err)
	}
	e := onProcessor(t, path, ops.Exact)
	m := noise(448, 448)
	encode := func(ctx context.Context) ([]float32, time.Duration, error) {
		used := cputime.Used()
		p, err := e.EncodePicture(ctx, m, encoder.PictureOptions{})
		if err != nil {
			return nil, cputime.Used() - used, err
		}
		return p[0].Rows, cputime.Used() - used, nil
	}
	want, whole, err := encode(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// The partner: a context that is done too late is not noticed, and the time is the whole.
	late, cancel := context.WithCancel(context.Background())
	got, took, err := encode(late)
	cancel()
	if err != nil || !slices.Equal(got, want) || took < whole/4 {
		t.Errorf("a picture that may be stopped took %v of %v, %v", took, whole, err)
	}
	for _, share := range []time.Duration{20, 4, 2} {
		ctx, cancel := context.WithCancel(context.Background())
		at := make(chan time.Duration, 1)
		go func() {
			from := cputime.Used()
			for cputime.Used()-from < whole/share {
				time.Sleep(time.Millisecond)
			}
			at <- cputime.Used()
			cancel()
		}()
		_, took, err := encode(ctx)
		after := cputime.Used() - <-at
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after 1/%d: %v", share, err)
		}
		if limit := max(whole/20, 100*time.Millisecond); after > limit {
			t.Errorf("cancelled after 1/%d of %v: it computed for %v more (%v in all), more than %v", share, whole, after, took, limit)
		}
		t.Logf("cancelled after 1/%d of %v: %v more", share, whole, after)
	}
	if got, _, err := encode(context.Background()); err != nil || !slices.Equal(got, want) {
		t.Errorf("after it was stopped the picture is another one: %v", err)
	}
}

// What is computed of a sound before its tower runs stops as well.
func TestSoundsStop(t *testing.T) {
	e := open(t, ref.New(), ops.Exact, "ultravox-mmproj.gguf")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	used := cputime.Used()
	if _, err := e.EncodeSound(ctx, make([]float32, 600*16000)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if took := cputime.Used() - used; took > time.Second {
		t.Errorf("a sound that nobody waits for took %v", took)
	}
}
