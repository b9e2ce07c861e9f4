package picture

import (
	"bytes"
	"strconv"
	"strings"

	"ganglion/gpu/pixel"
)

// pamHeader reads the header of a Netpbm PAM file of 8-bit gray, RGB or RGBA.
func pamHeader(b []byte) (w, h, depth, start int, err error) {
	end := bytes.Index(b[:min(len(b), 1024)], []byte("ENDHDR\n"))
	if end < 0 {
		if len(b) < 1024 {
			return 0, 0, 0, 0, ErrShort
		}
		return 0, 0, 0, 0, damaged("its header does not end")
	}
	most := 0
	fields := map[string]*int{"WIDTH": &w, "HEIGHT": &h, "DEPTH": &depth, "MAXVAL": &most}
	for line := range strings.Lines(string(b[3:end])) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at := fields[name]; at != nil {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
			if err != nil {
				return 0, 0, 0, 0, damaged("its header has no number for %s", name)
			}
			*at = int(n)
		}
	}
	if most != 255 || depth != 1 && depth != 3 && depth != 4 {
		return 0, 0, 0, 0, unsupported("a PAM of %d channels up to %d", depth, most)
	}
	return w, h, depth, end + len("ENDHDR\n"), nil
}

func pamSize(b []byte) (w, h int, err error) {
	w, h, _, _, err = pamHeader(b)
	return w, h, err
}

func decodePAM(b []byte, o Options) (pixel.Image, error) {
	w, h, depth, start, err := pamHeader(b)
	if err != nil {
		return pixel.Image{}, err
	}
	if b = b[start:]; len(b) < w*h*depth {
		return pixel.Image{}, ErrShort
	}
	c := newCanvas(w, h, 3, o.OpaqueOnly)
	row := make([]uint8, 4*w)
	for y := range h {
		widen(row, b[y*w*depth:][:w*depth], depth)
		c.put(y, 0, 1, row)
	}
	return c.image(), nil
}

// widen makes RGBA of gray, gray with alpha, RGB or RGBA of 8 bits.
func widen(rgba, samples []uint8, channels int) {
	switch channels {
	case 1:
		for i, v := range samples {
			d := rgba[4*i:][:4]
			d[0], d[1], d[2], d[3] = v, v, v, 255
		}
	case 2:
		for i := 0; i < len(samples)/2; i++ {
			d, v := rgba[4*i:][:4], samples[2*i]
			d[0], d[1], d[2], d[3] = v, v, v, samples[2*i+1]
		}
	case 3:
		for i := 0; i < len(samples)/3; i++ {
			d, s := rgba[4*i:][:4], samples[3*i:][:3]
			d[0], d[1], d[2], d[3] = s[0], s[1], s[2], 255
		}
	default:
		copy(rgba, samples)
	}
}
