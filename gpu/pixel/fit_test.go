package pixel

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// recorded is where the pictures of the reference lie.
const recorded = "../encoder/testdata"

func readPNG(t *testing.T, path ...string) Image {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{recorded}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	in, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := in.Bounds()
	m := New(r.Dx(), r.Dy())
	for y := range m.H {
		for x := range m.W {
			c := image.NewRGBA(image.Rect(0, 0, 1, 1))
			c.Set(0, 0, in.At(x, y))
			copy(m.Pix[3*(y*m.W+x):], c.Pix[:3])
		}
	}
	return m
}

func same(t *testing.T, got, want Image) {
	t.Helper()
	if got.W != want.W || got.H != want.H {
		t.Fatalf("got %d×%d, want %d×%d", got.W, got.H, want.W, want.H)
	}
	for i, v := range got.Pix {
		if v != want.Pix[i] {
			t.Fatalf("sample %d of pixel (%d, %d) is %d, want %d", i%3, i/3%got.W, i/3/got.W, v, want.Pix[i])
		}
	}
}

// The reference's resized pictures come out byte for byte, at the sizes that the
// formulas give.
func TestPicturesOfFamilies(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		m := readPNG(t, "media", "img-"+name+".png")
		smart := func(align, min, max int) Image {
			w, h := SmartSize(m.W, m.H, align, min, max)
			return Fit(m, w, h, Bicubic)
		}
		for family, f := range map[string]func() Image{
			"gemma3":  func() Image { return Fit(m, 64, 64, Bilinear) },
			"qwen2vl": func() Image { return smart(28, 6272, 3211264) },
			"qwen3vl": func() Image { return smart(32, 8192, 4194304) },
			"gemma4":  func() Image { return smart(48, 161280, 2580480) },
		} {
			t.Run(family+"/"+name, func(t *testing.T) {
				same(t, f(), readPNG(t, "intermediates", family+"."+name+".png"))
			})
		}
		t.Run("smolvlm/"+name, func(t *testing.T) {
			cut := TilingOf(m.W, m.H, 64, 128)
			if cut.NX != 2 || cut.NY != 2 {
				t.Fatalf("grid %d×%d, want 2×2", cut.NX, cut.NY)
			}
			tiles, overview := cut.Cut(m, Lanczos)
			same(t, overview, readPNG(t, "intermediates", "smolvlm."+name+".overview.png"))
			for i, tile := range tiles {
				same(t, tile, readPNG(t, "intermediates", fmt.Sprintf("smolvlm.%s.r%dc%d.png", name, i/2+1, i%2+1)))
			}
		})
	}
}

func TestSmartSize(t *testing.T) {
	for _, tt := range []struct{ w, h, align, min, max, toW, toH int }{
		{112, 84, 28, 6272, 3211264, 112, 84},
		{4000, 3000, 28, 6272, 3211264, 2044, 1540},
		{1, 1, 28, 6272, 3211264, 84, 84},
		{16384, 1, 32, 8192, 4194304, 16384, 32},
		{10, 10, 48, 0, 0, 48, 48},
		{100000, 40, 28, 6272, 100000, 3556, 28}, // the shape alone wants 15792×28
		{40, 100000, 28, 6272, 100000, 28, 3556},
		{16384, 1, 28, 6272, 50176, 1792, 28},
		{16384, 1, 28, 0, 100, 28, 28}, // no multiple is as small as that
		{42, 14, 28, 0, 0, 56, 28},     // halves round away from zero
	} {
		if w, h := SmartSize(tt.w, tt.h, tt.align, tt.min, tt.max); w != tt.toW || h != tt.toH {
			t.Errorf("SmartSize(%d, %d, %d, %d, %d) = %d×%d, want %d×%d", tt.w, tt.h, tt.align, tt.min, tt.max, w, h, tt.toW, tt.toH)
		}
	}
}

// Sizes are multiples, areas keep their bounds.
func TestSmartSizeBounds(t *testing.T) {
	const align, least = 28, 6272
	for w := 1; w < 20000; w += 1 + w/3 {
		for h := 1; h < 20000; h += 1 + h/3 {
			most := []int{3211264, 50176, 12544}[(w+h)%3]
			nw, nh := SmartSize(w, h, align, least, most)
			if nw%align != 0 || nh%align != 0 || nw < align || nh < align || nw*nh < least || nw*nh > most {
				t.Fatalf("%d×%d became %d×%d", w, h, nw, nh)
			}
		}
	}
}

func TestTilingOf(t *testing.T) {
	for _, tt := range []struct{ w, h, side, longest, toW, toH, nx, ny int }{
		{4000, 3000, 512, 2048, 2048, 1536, 4, 3},
		{3000, 4000, 512, 2048, 1536, 2048, 3, 4},
		{100, 1, 512, 2048, 2048, 20, 4, 1},
		{16384, 1, 512, 2048, 2048, 2, 4, 1},
		{1, 16384, 512, 2048, 2, 2048, 1, 4},
		{101, 67, 384, 1536, 1536, 1018, 4, 3},
	} {
		want := Tiling{W: tt.toW, H: tt.toH, NX: tt.nx, NY: tt.ny, Side: tt.side}
		if got := TilingOf(tt.w, tt.h, tt.side, tt.longest); got != want {
			t.Errorf("TilingOf(%d, %d, %d, %d) = %+v, want %+v", tt.w, tt.h, tt.side, tt.longest, got, want)
		}
	}
}

func TestFitPlacesOnTheCanvas(t *testing.T) {
	white := New(30, 10)
	white.Fill([3]uint8{255, 255, 255})
	for name, tt := range map[string]struct {
		f                    Fitting
		left, right, up, end int // of the white part
	}{
		"black":   {Fitting{W: 64, H: 64, Filter: Bilinear}, 0, 64, 21, 43},
		"colour":  {Fitting{W: 64, H: 64, Filter: Bilinear, Colour: [3]uint8{1, 2, 3}}, 0, 64, 21, 43},
		"nearest": {Fitting{W: 64, H: 64, Filter: Bilinear, Nearest: true}, 0, 64, 22, 43},
		"tall":    {Fitting{W: 30, H: 100, Filter: Bilinear}, 0, 30, 45, 55},
	} {
		got := tt.f.Apply(white)
		for y := range got.H {
			want := [3]uint8(tt.f.Colour)
			if y >= tt.up && y < tt.end {
				want = [3]uint8{255, 255, 255}
			}
			for x := tt.left; x < tt.right; x++ {
				if p := [3]uint8(got.row(y)[3*x:]); p != want {
					t.Fatalf("%s: pixel (%d, %d) is %v, want %v", name, x, y, p, want)
				}
			}
		}
	}
}

func TestNormalise(t *testing.T) {
	m := pattern(0, 5, 3)
	mean, std := [3]float32{.48145466, .4578275, .40821073}, [3]float32{.26862954, .26130258, .27577711}
	got := make([]float32, 3*5*3)
	Normalise(got, m, mean, std)
	for i, v := range m.Pix {
		c := i % 3
		want := (float64(v)/255 - float64(mean[c])) / float64(std[c])
		if d := math.Abs(float64(got[c*15+i/3]) - want); d > 1e-6 {
			t.Errorf("sample %d: %g, want %g", i, got[c*15+i/3], want)
		}
	}
}
