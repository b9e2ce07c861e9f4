package pixel

import "math"

// SmartSize is the size that towers of free resolution want for a picture of w×h:
// both sides multiples of align, the shape kept as far as that goes, the area
// between min and max pixels (0: no bound). It is smart_resize of transformers in
// the reference's float32, but for one thing: pictures so narrow that one side comes
// out as a single align can exceed max there (transformers refuses those of more than
// 200 to 1, the reference takes them). Here the other side is cut to what max holds.
func SmartSize(w, h, align, min, max int) (int, int) {
	a, fw, fh := float32(align), float32(w), float32(h)
	units := func(v float32, round func(float64) float64) int { return int(round(float64(float32(v/a)))) * align }
	atLeast := func(n int) int {
		if n < align {
			return align
		}
		return n
	}
	nw, nh := atLeast(units(fw, math.Round)), atLeast(units(fh, math.Round))
	area := float32(fh * fw)
	switch {
	case max > 0 && nw*nh > max:
		beta := float32(math.Sqrt(float64(float32(area / float32(max)))))
		nw, nh = atLeast(units(fw/beta, math.Floor)), atLeast(units(fh/beta, math.Floor))
	case min > 0 && nw*nh < min:
		beta := float32(math.Sqrt(float64(float32(float32(min) / area))))
		nw, nh = units(float32(fw*beta), math.Ceil), units(float32(fh*beta), math.Ceil)
	}
	if max > 0 && nw*nh > max {
		most := atLeast(max / align / align * align)
		switch {
		case nh == align && nw > most:
			nw = most
		case nw == align && nh > most:
			nh = most
		}
	}
	return nw, nh
}

// Tiling is how Idefics 3 (SmolVLM) cuts a picture: first resized to W×H without
// padding, then to NX×NY whole tiles of Side pixels.
type Tiling struct {
	W, H   int
	NX, NY int
	Side   int
}

// TilingOf brings the longer side of a picture of w×h to longest; the other one
// keeps the shape, cut to whole pixels and made even.
func TilingOf(w, h, side, longest int) Tiling {
	t := Tiling{W: longest, H: longest, Side: side}
	shape := float64(w) / float64(h)
	if w >= h {
		t.H = int(float64(longest) / shape)
		t.H += t.H % 2
	} else {
		t.W = int(float64(longest) * shape)
		t.W += t.W % 2
	}
	// A picture of one row would come out without any.
	t.W, t.H = max(t.W, 2), max(t.H, 2)
	t.NX, t.NY = (t.W+side-1)/side, (t.H+side-1)/side
	return t
}

// Cut resizes a picture and cuts it into tiles, row after row; overview is the whole
// at the size of one tile, made from the resized picture as the reference does.
func (t Tiling) Cut(m Image, f Filter) (tiles []Image, overview Image) {
	m = Resize(m, t.W, t.H, f)
	m = Resize(m, t.NX*t.Side, t.NY*t.Side, f)
	for y := range t.NY {
		for x := range t.NX {
			tiles = append(tiles, m.Crop(x*t.Side, y*t.Side, t.Side, t.Side))
		}
	}
	return tiles, Resize(m, t.Side, t.Side, f)
}
