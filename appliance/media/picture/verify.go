package picture

import (
	"bytes"
	"fmt"
)

// Verify walks through a whole file without unpacking its pixels and tells whether it
// hangs together: chunks are complete and their checksums right, scans end, frames lie
// inside the picture.
func Verify(data []byte) error {
	info, err := describe(data)
	if err == nil {
		err = verify(info, data)
	}
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return nil
}

func verify(info Info, b []byte) error {
	switch info.Format {
	case PNG:
		pixels := false
		for c, err := range pngChunks(b) {
			if err != nil {
				return err
			}
			pixels = pixels || c.kind == "IDAT"
		}
		if !pixels {
			return damaged("it has no picture data")
		}
	case JPEG:
		return verifyJPEG(b)
	case GIF:
		for l, err := range gifLayers(b) {
			if err != nil {
				return err
			}
			if l.x+l.w > info.W || l.y+l.h > info.H {
				return damaged("a frame is larger than the screen")
			}
		}
	case WebP:
		return riffWhole(b)
	}
	return nil
}

// riffWhole tells whether a file is as long as it says. The last pad byte may be
// missing.
func riffWhole(b []byte) error {
	if int64(le.Uint32(b[4:]))+8 > int64(len(b))+1 {
		return ErrShort
	}
	return nil
}

// verifyJPEG walks the segments and scans to the end mark.
func verifyJPEG(b []byte) error {
	for i := 2; ; {
		marker, _, end, err := jpegSegment(b, i)
		switch {
		case err != nil:
			return err
		case marker == 0xd9:
			return nil
		}
		if i = end; marker != 0xda {
			continue
		}
		for { // entropy-coded data: FF 00 is a byte of it, FF D0–D7 a restart
			j := bytes.IndexByte(b[i:], 0xff)
			if j < 0 || i+j+1 >= len(b) {
				return ErrShort
			}
			i += j
			if m := b[i+1]; m != 0 && (m < 0xd0 || m > 0xd7) {
				break
			}
			i += 2
		}
	}
}
