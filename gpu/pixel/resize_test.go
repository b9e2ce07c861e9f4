package pixel

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
)

// pattern makes the pictures of testdata/pillow.py.
func pattern(kind, w, h int) Image {
	m, s := New(w, h), uint32(1)
	for i := range m.Pix {
		s = s*1664525 + 1013904223
		switch x, y, c := i/3%w, i/3/w, i%3; kind {
		case 0:
			m.Pix[i] = uint8(s >> 24)
		case 1:
			m.Pix[i] = uint8(-int(s >> 31))
		default:
			m.Pix[i] = uint8(x*(c+3) + y*(5-c))
		}
	}
	return m
}

var filters = map[string]Filter{"bilinear": Bilinear, "bicubic": Bicubic, "lanczos": Lanczos}

// goldens calls f with each line of testdata/pillow.txt.
func goldens(t *testing.T, f func(kind, w, h, toW, toH int, filter Filter, want string)) {
	t.Helper()
	file, err := os.Open("testdata/pillow.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		var kind, w, h, toW, toH int
		var filter, sum string
		if _, err := fmt.Sscan(lines.Text(), &kind, &w, &h, &toW, &toH, &filter, &sum); err != nil {
			t.Fatalf("pillow.txt line %d: %v", n+1, err)
		}
		f(kind, w, h, toW, toH, filters[filter], sum)
	}
	if n < 300 {
		t.Fatalf("pillow.txt has %d lines", n)
	}
}

func TestResizeLikePillow(t *testing.T) {
	goldens(t, func(kind, w, h, toW, toH int, filter Filter, want string) {
		got := Resize(pattern(kind, w, h), toW, toH, filter)
		if err := got.Check(); err != nil || got.W != toW || got.H != toH {
			t.Fatalf("%d×%d to %d×%d: %d×%d, %v", w, h, toW, toH, got.W, got.H, err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(got.Pix)); sum != want {
			t.Errorf("pattern %d, %d×%d to %d×%d, %v: sha256 %s, want %s", kind, w, h, toW, toH, filter, sum, want)
		}
	})
}

// The comparison can fail: another filter, or rounding by a floor, gives other bytes.
func TestGoldensTellFiltersApart(t *testing.T) {
	same := 0
	goldens(t, func(kind, w, h, toW, toH int, filter Filter, want string) {
		got := Resize(pattern(kind, w, h), toW, toH, (filter+1)%3)
		if fmt.Sprintf("%x", sha256.Sum256(got.Pix)) == want {
			same++
		}
	})
	if same > 80 { // pictures of one pixel, or one colour, are alike under every filter
		t.Errorf("%d results of another filter have the golden bytes", same)
	}
}

func TestResizeKeepsItsSource(t *testing.T) {
	m := pattern(0, 64, 48)
	before := sha256.Sum256(m.Pix)
	for _, f := range filters {
		Resize(m, 31, 77, f)
		Fit(m, 64, 64, f)
		TilingOf(64, 48, 32, 64).Cut(m, f)
	}
	if sha256.Sum256(m.Pix) != before {
		t.Error("the source was changed")
	}
}

func TestMistakesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"no side":      func() { New(0, 3) },
		"target":       func() { Resize(New(2, 2), 0, 3, Bilinear) },
		"short pixels": func() { Resize(Image{W: 2, H: 2, Pix: make([]uint8, 11)}, 3, 3, Bilinear) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
