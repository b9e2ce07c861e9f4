package pixel

import "math"

// Fit resizes m to the largest size of its own shape that a canvas of w×h holds,
// rounded up, and puts it in the middle of a black canvas. A picture of the
// canvas's size is returned as it is, sharing memory.
func Fit(m Image, w, h int, f Filter) Image {
	return Fitting{W: w, H: h, Filter: f}.Apply(m)
}

// Fitting is a way of putting pictures onto a canvas.
type Fitting struct {
	W, H    int
	Filter  Filter
	Colour  [3]uint8 // of the canvas
	Nearest bool     // sizes and places are rounded to the nearest instead of up and down
}

// Apply fits a picture.
func (f Fitting) Apply(m Image) Image {
	if m.W == f.W && m.H == f.H {
		return m
	}
	w, h := f.size(m.W, m.H)
	m = Resize(m, w, h, f.Filter)
	if w == f.W && h == f.H {
		return m
	}
	out := New(f.W, f.H)
	if f.Colour != [3]uint8{} {
		out.Fill(f.Colour)
	}
	x, y := (f.W-w)/2, (f.H-h)/2
	if f.Nearest {
		x, y = (f.W-w+1)/2, (f.H-h+1)/2
	}
	out.Paste(m, x, y)
	return out
}

// size is what a picture of w×h becomes on the canvas.
func (f Fitting) size(w, h int) (int, int) {
	scale := min(float32(f.W)/float32(w), float32(f.H)/float32(h))
	side := func(n, most int) int {
		v := float64(float32(float32(n) * scale))
		if f.Nearest {
			v = math.Round(v)
		} else {
			v = math.Ceil(v)
		}
		return max(min(int(v), most), 1)
	}
	return side(w, f.W), side(h, f.H)
}
