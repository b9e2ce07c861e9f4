package film

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ganglion/appliance/media/picture"
	"ganglion/gpu/pixel"
)

// blob is the module where build.sh puts it.
const blob = "blob/ffmpreg.wasm.gz"

// The test program is its own child.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "film-parent" {
		livesAsParent(os.Args[2])
	}
	if len(os.Args) > 2 && os.Args[1] == "film-child" {
		packed, err := os.ReadFile(blob)
		if err == nil {
			err = limitChild(childSeconds, childBytes)
		}
		if err == nil {
			err = child(string(packed), os.Args[2:], os.Stdin, os.Stdout, os.Stderr)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func childCommand(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, os.Args[0], append([]string{"film-child"}, args...)...)
}

// engine opens an engine on the module. Its compiled code is kept between test runs,
// where the tests of the program look for it too.
func engine(t testing.TB) *Engine {
	t.Helper()
	if _, err := os.Stat(blob); err != nil {
		if strings.Contains(os.Getenv("GANGLION_REQUIRE"), "ffmpeg") {
			t.Fatalf("the module is missing: ./build.sh build brings it: %v", err)
		}
		t.Skip("the module is missing: ./build.sh build brings it")
	}
	e := NewEngine(Options{Command: childCommand, Cache: filepath.Join(os.TempDir(), "ganglion-film-test", "ganglion", "film"), Time: 2 * time.Minute})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

const media = "../../../gpu/encoder/testdata/"

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodePicture(t testing.TB, path string) pixel.Image {
	t.Helper()
	m, err := picture.Decode(context.Background(), read(t, path), picture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// difference is the largest one of any sample.
func difference(t testing.TB, got, want pixel.Image) (most int) {
	t.Helper()
	if got.W != want.W || got.H != want.H {
		t.Fatalf("got %d×%d, want %d×%d", got.W, got.H, want.W, want.H)
	}
	for i, v := range got.Pix {
		most = max(most, int(v)-int(want.Pix[i]), int(want.Pix[i])-int(v))
	}
	return most
}

// The recorded frames of the reference, which samples with ffmpeg's fps filter.
func TestRecordedFrames(t *testing.T) {
	e := engine(t)
	for _, tt := range []struct {
		name  string
		bound int // lossy coding differs
		mean  float64
	}{{"vid-a-lossless.mp4", 0, 0}, {"vid-a.mp4", 255, 12}, {"vid-a.webm", 255, 12}} {
		t.Run(tt.name, func(t *testing.T) {
			data := read(t, media+"media/"+tt.name)
			info, err := Describe(data, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if info.W != 96 || info.H != 64 || info.Frames != 16 || (info.Duration-2*time.Second).Abs() > 130*time.Millisecond {
				t.Errorf("headers: %+v", info)
			}
			plan, err := Sampling{Rate: 4}.Plan(info, Limits{})
			if err != nil || plan.Count != 8 {
				t.Fatalf("plan %+v, %v", plan, err)
			}
			n := 0
			for f, err := range e.Frames(context.Background(), data, info, plan) {
				if err != nil {
					t.Fatal(err)
				}
				want := decodePicture(t, fmt.Sprintf("%sintermediates/vid-a-lossless.fps4.%d.png", media, n))
				if d := difference(t, f.Image, want); d > tt.bound {
					t.Errorf("frame %d differs by %d", n, d)
				}
				sum := 0.0
				for i, v := range f.Image.Pix {
					sum += max(float64(v)-float64(want.Pix[i]), float64(want.Pix[i])-float64(v))
				}
				if mean := sum / float64(len(want.Pix)); mean > tt.mean {
					t.Errorf("frame %d differs by %.1f on average", n, mean)
				}
				if f.At != time.Duration(n)*250*time.Millisecond {
					t.Errorf("frame %d is of %v", n, f.At)
				}
				n++
			}
			if n != 8 {
				t.Errorf("%d frames, want 8", n)
			}
		})
	}
}

func TestNoEngine(t *testing.T) {
	e := NewEngine(Options{})
	defer e.Close()
	e.Warm()
	data := read(t, media+"media/vid-a.mp4")
	info, plan := planned(t, data, Sampling{Rate: 4})
	for _, err := range e.Frames(context.Background(), data, info, plan) {
		if !errors.Is(err, ErrNoDecoder) {
			t.Errorf("%v, want ErrNoDecoder", err)
		}
	}
	if _, err := e.Sound(context.Background(), data, SoundInfo{Duration: time.Second}); !errors.Is(err, ErrNoDecoder) {
		t.Errorf("%v, want ErrNoDecoder", err)
	}
	if s := e.Status(); s.State != Absent {
		t.Errorf("state %s, want %s", s.State, Absent)
	}
}
