package appliance_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/encoder"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/pixel"
)

// roaming is an encoder that goes on elsewhere, and counts how often it is asked for layouts.
type roaming struct {
	*appliancetest.Encoder
	place   atomic.Pointer[string]
	leaves  atomic.Bool // with the next picture
	layouts atomic.Int64
}

func (e *roaming) Info() appliance.EncoderInfo {
	info := e.Encoder.Info()
	info.Hash += " on " + *e.place.Load()
	return info
}

func (e *roaming) Picture(w, h int, o appliance.PictureOptions) (appliance.Layout, error) {
	e.layouts.Add(1)
	return e.Encoder.Picture(w, h, o)
}

func (e *roaming) moveTo(place string) { e.place.Store(&place) }

func (e *roaming) EncodePicture(ctx context.Context, m pixel.Image, o appliance.PictureOptions) ([][]float32, error) {
	if e.leaves.Swap(false) {
		e.moveTo("a third")
	}
	return e.Encoder.EncodePicture(ctx, m, o)
}

func roamed(t *testing.T) (*bench, *roaming) {
	m, e := appliancetest.NewHashed(appliancetest.Options{}), &roaming{Encoder: appliancetest.NewEncoder(appliancetest.EncoderOptions{})}
	e.moveTo("the first")
	return serveAs(t, appliance.WithEncoder(m, e), m, appliance.Config{}), e
}

// What was encoded on a device that was lost is not taken for what another one gives.
func TestEncodingsBelongToTheirDevice(t *testing.T) {
	b, e := roamed(t)
	for i, step := range []struct {
		name    string
		before  func()
		encoded int64
	}{
		{"at first", func() {}, 1},
		{"again", func() {}, 1},
		{"elsewhere", func() { e.moveTo("another") }, 2},
		{"there again", func() {}, 2},
		{"lost meanwhile", func() { e.moveTo("a fourth"); e.leaves.Store(true) }, 3},
		{"where it went", func() {}, 3},
		{"back", func() { e.moveTo("the first") }, 3},
	} {
		step.before()
		b.complete(t, showing("see", 4, picture(0, pngOf(24, 16, 1))))
		if n := e.Encoded(); int64(n) != step.encoded {
			t.Errorf("step %d, %s: encoded %d times, want %d", i, step.name, n, step.encoded)
		}
	}
	if h := b.Status().Encoder.Hash; !strings.HasSuffix(h, "the first") {
		t.Errorf("the status says %q", h)
	}
}

// The hash of an encoder file names the backend that computes.
func TestEncoderFilesTellTheirBackend(t *testing.T) {
	next, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	e, err := encoder.Open(t.Context(), encoder.Config{
		Path: filepath.Join("../gpu/encoder/testdata/models/qwen3vl-mmproj.gguf"), Numerics: ops.Exact, Threads: 1,
		Backend: &opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: 1, Err: ops.ErrDeviceLost},
		Recover: func(error, int) (ops.Backend, error) { return next, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	seer := appliance.FromEncoder(e, "exact")
	defer seer.Close()
	before := seer.Info().Hash
	if _, err := seer.EncodePicture(t.Context(), pixel.New(64, 64), appliance.PictureOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := seer.Info().Hash; after == before || !strings.Contains(after, " on "+next.Name()) {
		t.Errorf("%q before, %q after", before, after)
	}
}

// The choices of one request read the headers of its media once.
func TestHeadersAreReadOnce(t *testing.T) {
	for _, shared := range []bool{true, false} {
		b, e := roamed(t)
		first := showing("see", 4, picture(0, pngOf(24, 16, 1)), picture(1, pngOf(8, 8, 2)))
		if shared {
			first.Headers = new(appliance.Headers)
		}
		want := b.complete(t, first)
		for range 2 {
			other := *first
			other.ID = appliance.NewID()
			if got := b.complete(t, &other); got.Text != want.Text {
				t.Errorf("%q, then %q", want.Text, got.Text)
			}
		}
		looks := map[bool]int64{true: 2, false: 6}[shared]
		if n := e.layouts.Load(); n != looks {
			t.Errorf("shared=%v: layouts were asked for %d times, want %d", shared, n, looks)
		}
	}
	b, _ := roamed(t)
	bad := showing("see", 4, picture(0, pngOf(8, 8, 1)[:20]))
	bad.Headers = new(appliance.Headers)
	for range 2 { // a fault is found each time
		_, err := b.Start(t.Context(), bad)
		if e := new(appliance.Error); !errors.As(err, &e) || e.Code != appliance.CodeMediaDecode {
			t.Errorf("%v", err)
		}
	}
}

// Pictures of equal bytes and other shape, and equal ones in another mode, are others.
func TestShapeAndModeTellPicturesApart(t *testing.T) {
	b, e := roamed(t)
	plain := func(w, h int) []byte {
		var out bytes.Buffer
		png.Encode(&out, image.NewGray(image.Rect(0, 0, w, h)))
		return out.Bytes()
	}
	small := picture(0, plain(16, 8))
	small.Hints.MaxTokens = 1
	for i, m := range []appliance.Media{picture(0, plain(16, 8)), picture(0, plain(8, 16)), picture(0, plain(32, 4)), small} {
		b.complete(t, showing("see", 4, m))
		if n := e.Encoded(); int(n) != i+1 {
			t.Errorf("picture %d: encoded %d times", i, n)
		}
	}
}
