package picture

import (
	"bytes"
	"context"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/pixel"
)

// stdPNG reads a golden with the standard library.
func stdPNG(t testing.TB, path string) pixel.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := in.Bounds()
	rgba := image.NewRGBA(r)
	draw.Draw(rgba, r, in, r.Min, draw.Src)
	m := pixel.New(r.Dx(), r.Dy())
	for i := range m.W * m.H {
		copy(m.Pix[3*i:3*i+3], rgba.Pix[4*i:])
	}
	return m
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// difference is the largest one of any sample.
func difference(t *testing.T, got, want pixel.Image) int {
	t.Helper()
	if got.W != want.W || got.H != want.H || got.Check() != nil {
		t.Fatalf("got %d×%d, want %d×%d", got.W, got.H, want.W, want.H)
	}
	most, at := 0, 0
	for i, v := range got.Pix {
		if d := max(int(v)-int(want.Pix[i]), int(want.Pix[i])-int(v)); d > most {
			most, at = d, i
		}
	}
	if most > 0 {
		t.Logf("largest difference %d, sample %d of pixel (%d, %d): %d, want %d",
			most, at%3, at/3%got.W, at/3/got.W, got.Pix[at], want.Pix[at])
	}
	return most
}

// bound is how far a file's pixels may be from Pillow's. Everything is exact but
// colours that Pillow itself rounds in another order: transparency laid on white.
func bound(name string) int {
	if strings.Contains(name, "alpha") || strings.Contains(name, "moving") {
		return 1
	}
	return 0
}

func TestPicturesLikePillow(t *testing.T) {
	wants, err := filepath.Glob("testdata/*.want.png")
	if err != nil || len(wants) < 90 {
		t.Fatalf("%d pictures, %v", len(wants), err)
	}
	for _, path := range wants {
		name := strings.TrimSuffix(filepath.Base(path), ".want.png")
		if strings.HasPrefix(name, "moving") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got, err := Decode(context.Background(), read(t, "testdata/"+name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(t, got, stdPNG(t, path)); d > bound(name) {
				t.Errorf("differs by %d, want %d at most", d, bound(name))
			}
		})
	}
}

// Each frame is compared: the golden has them below one another.
func TestFramesLikePillow(t *testing.T) {
	wants, err := filepath.Glob("testdata/moving*.want.png")
	if err != nil || len(wants) < 8 {
		t.Fatalf("%d animations, %v", len(wants), err)
	}
	for _, path := range wants {
		name := strings.TrimSuffix(filepath.Base(path), ".want.png")
		t.Run(name, func(t *testing.T) {
			data, column := read(t, "testdata/"+name), stdPNG(t, path)
			times := []int{100, 300, 350, 430, 550, 590} // ms
			if name == "moving-lossy.webp" {
				times = []int{100, 200, 300, 400, 500, 600}
			}
			n := 0
			for f, err := range Frames(context.Background(), data, Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				m := f.Image()
				want := column.Crop(0, m.H*n, m.W, m.H)
				if d := difference(t, m, want); d > bound(name) {
					t.Errorf("frame %d differs by %d", n, d)
				}
				if got := int(f.Until.Milliseconds()); got != times[n] {
					t.Errorf("frame %d ends at %d ms, want %d", n, got, times[n])
				}
				n++
			}
			if n != 6 {
				t.Errorf("%d frames, want 6", n)
			}
			waits, err := Timeline(data, Limits{})
			if err != nil || len(waits) != n {
				t.Errorf("timeline of %d frames, %v", len(waits), err)
			}
			first, err := Decode(context.Background(), data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(t, first, column.Crop(0, 0, first.W, first.H)); d > bound(name) {
				t.Errorf("the picture differs from the first frame by %d", d)
			}
		})
	}
}

// The recorded pictures of the reference: one picture in kinds that keep it exactly.
func TestRecordedPictures(t *testing.T) {
	const folder = "../../../gpu/encoder/testdata/media/"
	want := stdPNG(t, folder+"img-a.png")
	for _, name := range []string{"img-a.png", "img-a.bmp", "img-a-lossless.webp", "img-a-alpha.png"} {
		got, err := Decode(context.Background(), read(t, folder+name), Options{OpaqueOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(t, got, want); d > 0 {
			t.Errorf("%s differs by %d", name, d)
		}
	}
}
