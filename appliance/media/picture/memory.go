package picture

// decodingBytes is how much memory Decode allocates at the most for a file with given
// headers: the picture, a second one where the orientation turns it, and what stands beside
// them. All of it is counted together, since what is done with stays until the next garbage
// collection. Frames of animations are meant too, which are laid on one another.
func decodingBytes(info Info, b []byte) int64 {
	const most = 1 << 40 // of pixels; more are refused whatever they take
	pixels := int64(most)
	if info.W < 1<<20 && info.H < 1<<20 {
		pixels = int64(info.W) * int64(info.H)
	}
	switch info.Format {
	case JPEG:
		return jpegBytes(info, pixels, b)
	case GIF:
		return 12 * pixels // canvas 4, layer 4, picture 3, indices
	case TIFF:
		return tiffBytes(b) * pixels
	case WebP:
		return webpBytes(b) * pixels
	case PNG:
		if apngMoves(b) {
			return 14 * pixels // canvas 4, layer 4, and two pictures
		}
	}
	return 6 * pixels
}

// jpegBytes: samples, of scans that refine one another coefficients of two bytes too, and
// two pictures.
func jpegBytes(info Info, pixels int64, b []byte) int64 {
	for i := 2; ; {
		marker, body, end, err := jpegSegment(b, i)
		if err != nil || marker == 0xda || marker == 0xd9 {
			return 6 * pixels // refused anyway
		}
		if i = end; !isSOF(marker) {
			continue
		}
		parts := body[min(6, len(body)):]
		wide, high, sum := 1, 1, 0
		for p := parts; len(p) >= 3; p = p[3:] {
			wide, high, sum = max(wide, int(p[1]>>4)), max(high, int(p[1]&15)), sum+int(p[1]>>4)*int(p[1]&15)
		}
		samples := pixels * int64(sum) / int64(wide*high)
		if len(parts) < 6 {
			samples = pixels // one component alone has one sample for each
		}
		if marker == 0xc2 {
			samples *= 3
		}
		return samples + 6*pixels
	}
}

// tiffBytes: the reader's own picture, of 4 or 8 bytes, a block, which may hold all and grows
// while it is unpacked, and two pictures of ours.
func tiffBytes(b []byte) int64 {
	wide := false
	_ = tiffTags(b, func(tag uint16, value int) {
		wide = wide || tag == 258 && value > 8
	})
	if wide {
		return 30
	}
	return 18
}

// webpBytes: lossless pixels are 4 bytes in two places at the most, lossy ones planes of one
// and a half, with transparency of its own, which is a lossless picture.
func webpBytes(b []byte) int64 {
	switch {
	case webpMoves(b):
		return 4 + 4 + 6 + 8 // with a canvas and a layer
	case len(b) > 20 && string(b[12:16]) == "VP8 ":
		return 2 + 6
	case len(b) > 20 && string(b[12:16]) == "VP8X" && b[20]&0x10 != 0:
		return 2 + 1 + 8 + 6
	}
	return 8 + 6
}
