package pixel

import "fmt"

// Image is a picture of 8-bit RGB: three bytes a pixel, row after row from the
// top, without padding: len(Pix) = 3·W·H. The holder owns Pix.
type Image struct {
	W, H int
	Pix  []uint8
}

// New returns a black picture. It panics where a side is below one.
func New(w, h int) Image {
	if w < 1 || h < 1 {
		panic(fmt.Sprintf("pixel: a picture of %d×%d", w, h))
	}
	return Image{W: w, H: h, Pix: make([]uint8, 3*w*h)}
}

// Check tells whether the sides and the bytes agree.
func (m Image) Check() error {
	if m.W < 1 || m.H < 1 || len(m.Pix) != 3*m.W*m.H {
		return fmt.Errorf("pixel: a picture of %d×%d has %d bytes", m.W, m.H, len(m.Pix))
	}
	return nil
}

// row is row y. [3·W]
func (m Image) row(y int) []uint8 { return m.Pix[3*m.W*y : 3*m.W*(y+1)] }

// Crop copies the w×h pixels whose upper left one is (x, y). The part must lie in
// the picture.
func (m Image) Crop(x, y, w, h int) Image {
	out := New(w, h)
	for i := range h {
		copy(out.row(i), m.row(y + i)[3*x:3*(x+w)])
	}
	return out
}

// Fill gives every pixel one colour.
func (m Image) Fill(colour [3]uint8) {
	for i := 0; i+2 < len(m.Pix); i += 3 {
		m.Pix[i], m.Pix[i+1], m.Pix[i+2] = colour[0], colour[1], colour[2]
	}
}

// Paste copies src into m with its upper left pixel at (x, y). The part must lie in
// the picture.
func (m Image) Paste(src Image, x, y int) {
	for i := range src.H {
		copy(m.row(y + i)[3*x:3*(x+src.W)], src.row(i))
	}
}
