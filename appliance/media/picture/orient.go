package picture

import (
	"bytes"

	"ganglion/gpu/pixel"
)

// orientation finds the EXIF orientation of a file, 1 where it has none. It is a hint
// about a picture that may well be without: what is wrong with it is not an error.
func orientation(f Format, data []byte) int {
	var exif []byte
	switch f {
	case JPEG:
		exif = jpegEXIF(data)
	case PNG:
		exif = pngEXIF(data)
	case WebP:
		for c := range riffChunks(data) {
			if c.kind == "EXIF" {
				exif = bytes.TrimPrefix(c.body, []byte("Exif\x00\x00"))
			}
		}
	case TIFF:
		exif = data
	}
	o := 1
	if bytes.HasPrefix(exif, []byte("II*\x00")) || bytes.HasPrefix(exif, []byte("MM\x00*")) {
		tiffTags(exif, func(tag uint16, v int) {
			if tag == 274 && v >= 1 && v <= 8 {
				o = v
			}
		})
	}
	return o
}

func jpegEXIF(b []byte) []byte {
	for i := 2; ; {
		marker, body, end, err := jpegSegment(b, i)
		if err != nil || marker == 0xd9 || marker == 0xda {
			return nil
		}
		if after, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return after
		}
		i = end
	}
}

func pngEXIF(b []byte) []byte {
	for c, err := range pngChunks(b) {
		if err != nil {
			return nil
		}
		if c.kind == "eXIf" {
			return c.body
		}
	}
	return nil
}

// orient turns a picture upright: 2 mirrors, 3 turns by half, 4 flips, 5 to 8 also
// exchange rows and columns.
func orient(m pixel.Image, o int) pixel.Image {
	if o < 2 || o > 8 {
		return m
	}
	w, h := m.W, m.H
	if o > 4 {
		w, h = h, w
	}
	out := pixel.New(w, h)
	// The source of pixel (x, y) is at start + x·right + y·down.
	right, down := 3, 3*m.W
	start := 0
	flipX := o == 2 || o == 3 || o == 7 || o == 8 // the stored columns run backwards
	flipY := o == 3 || o == 4 || o == 6 || o == 7
	if flipX {
		start += right * (m.W - 1)
		right = -right
	}
	if flipY {
		start += down * (m.H - 1)
		down = -down
	}
	if o > 4 {
		right, down = down, right
	}
	at := 0
	for y := range h {
		for s, x := start+y*down, 0; x < w; x++ {
			copy(out.Pix[at:at+3], m.Pix[s:s+3])
			at, s = at+3, s+right
		}
	}
	return out
}

// Turn turns a picture to the right by quarters; with none it returns m itself.
func Turn(m pixel.Image, quarters int) pixel.Image {
	return orient(m, [...]int{1, 6, 3, 8}[quarters&3])
}
