package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// unread is an error about a file that is whole but of a kind that is not read.
type unread string

func (u unread) Error() string { return string(u) }

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

func pictureOf(width, height int64) (header, error) {
	return header{picture: true, width: width, height: height}, nil
}

// PNG: ISO/IEC 15948, section 5 (chunks) and 11.2.2 (IHDR).

func pngHeader(b []byte) (header, error) {
	if len(b) < 33 {
		return header{}, errShort
	}
	if be.Uint32(b[8:]) != 13 || string(b[12:16]) != "IHDR" {
		return header{}, errors.New("it does not begin with IHDR")
	}
	if crc32.ChecksumIEEE(b[12:29]) != be.Uint32(b[29:]) {
		return header{}, errors.New("the checksum of IHDR is wrong")
	}
	depths := map[byte]string{0: "\x01\x02\x04\x08\x10", 2: "\x08\x10", 3: "\x01\x02\x04\x08", 4: "\x08\x10", 6: "\x08\x10"}
	if bytes.IndexByte([]byte(depths[b[25]]), b[24]) < 0 {
		return header{}, fmt.Errorf("colour type %d with %d bits does not exist", b[25], b[24])
	}
	return pictureOf(int64(be.Uint32(b[16:])), int64(be.Uint32(b[20:])))
}

// pngBody walks the chunks to IEND. Checksums of chunks that a reader may skip do
// not matter.
func pngBody(b []byte) error {
	data := false
	for i := 8; ; {
		if len(b)-i < 12 {
			return errShort
		}
		n := int64(be.Uint32(b[i:]))
		if n > int64(len(b)-i-12) {
			return errShort
		}
		kind, end := string(b[i+4:i+8]), i+8+int(n)
		if critical := b[i+4]&0x20 == 0; critical && crc32.ChecksumIEEE(b[i+4:end]) != be.Uint32(b[end:]) {
			return fmt.Errorf("the checksum of the chunk at byte %d is wrong", i)
		}
		data = data || kind == "IDAT"
		if i = end + 4; kind == "IEND" {
			break
		}
	}
	if !data {
		return errors.New("it has no picture data")
	}
	return nil
}

// JPEG: ITU-T T.81, annex B.

// jpegSegment reads the marker at i and tells where its segment ends.
func jpegSegment(b []byte, i int) (marker byte, body []byte, end int, err error) {
	if i < len(b) && b[i] != 0xff {
		return 0, nil, 0, fmt.Errorf("a marker is expected at byte %d", i)
	}
	for i < len(b) && b[i] == 0xff {
		i++ // fill bytes
	}
	if i >= len(b) {
		return 0, nil, 0, errShort
	}
	marker = b[i]
	i++
	if marker == 0xd9 {
		return marker, nil, i, nil
	}
	if marker < 0xc0 || marker >= 0xd0 && marker <= 0xd8 {
		return 0, nil, 0, fmt.Errorf("marker %02X stands at byte %d", marker, i-1)
	}
	if len(b)-i < 2 {
		return 0, nil, 0, errShort
	}
	n := int(be.Uint16(b[i:]))
	if n < 2 {
		return 0, nil, 0, fmt.Errorf("the segment at byte %d has no length", i)
	}
	if n > len(b)-i {
		return 0, nil, 0, errShort
	}
	return marker, b[i+2 : i+n], i + n, nil
}

func jpegHeader(b []byte) (header, error) {
	for i := 2; ; {
		marker, body, end, err := jpegSegment(b, i)
		if err != nil {
			return header{}, err
		}
		switch {
		case marker == 0xd9 || marker == 0xda:
			return header{}, errors.New("it has no frame header")
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if len(body) < 6 {
				return header{}, errors.New("the frame header is too small")
			}
			if marker > 0xc2 {
				return header{}, unread(fmt.Sprintf("a JPEG of process SOF%d (lossless, hierarchical or arithmetic coding)", marker-0xc0))
			}
			return pictureOf(int64(be.Uint16(body[3:])), int64(be.Uint16(body[1:])))
		}
		i = end
	}
}

// jpegBody walks the segments and scans to the end mark.
func jpegBody(b []byte) error {
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
				return errShort
			}
			i += j
			if m := b[i+1]; m != 0 && (m < 0xd0 || m > 0xd7) {
				break
			}
			i += 2
		}
	}
}

// GIF: GIF89a specification, sections 18 to 23.

func gifHeader(b []byte) (header, error) {
	if len(b) < 13 {
		return header{}, errShort
	}
	return pictureOf(int64(le.Uint16(b[6:])), int64(le.Uint16(b[8:])))
}

func gifColours(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// gifBody walks the blocks. A missing trailer after a whole frame is common and
// harmless.
func gifBody(b []byte) error {
	width, height := int(le.Uint16(b[6:])), int(le.Uint16(b[8:]))
	i := 13 + gifColours(b[10])
	frames := 0
	for i < len(b) && b[i] != 0x3b {
		switch b[i] {
		case 0x21: // extension
			i += 2
		case 0x2c: // image
			if len(b)-i < 11 {
				return errShort
			}
			right := int(le.Uint16(b[i+1:])) + int(le.Uint16(b[i+5:]))
			bottom := int(le.Uint16(b[i+3:])) + int(le.Uint16(b[i+7:]))
			if right > width || bottom > height {
				return errors.New("a frame is larger than the screen")
			}
			i += 10 + gifColours(b[i+9]) + 1
			frames++
		default:
			return fmt.Errorf("block %02X stands at byte %d", b[i], i)
		}
		for { // sub-blocks up to an empty one
			if i >= len(b) {
				return errShort
			}
			n := int(b[i])
			i += n + 1
			if n == 0 {
				break
			}
		}
	}
	if frames == 0 {
		return errors.New("it has no frame")
	}
	return nil
}

// BMP: BITMAPCOREHEADER and BITMAPINFOHEADER.

func bmpHeader(b []byte) (header, error) {
	switch size := le.Uint32(b[14:]); {
	case size == 12:
		return pictureOf(int64(le.Uint16(b[18:])), int64(le.Uint16(b[20:])))
	case size < 16 || size > 256:
		return header{}, fmt.Errorf("its header has %d bytes", size)
	}
	height := int64(int32(le.Uint32(b[22:])))
	if height < 0 {
		height = -height // rows from the top down
	}
	return pictureOf(int64(int32(le.Uint32(b[18:]))), height)
}

// TIFF 6.0, section 2: the first directory.

func tiffHeader(b []byte) (header, error) {
	if len(b) < 8 {
		return header{}, errShort
	}
	var order binary.ByteOrder = le
	if b[0] == 'M' {
		order = be
	}
	at := int64(order.Uint32(b[4:]))
	if at < 8 {
		return header{}, fmt.Errorf("its directory stands at byte %d", at)
	}
	if at+2 > int64(len(b)) {
		return header{}, errShort
	}
	entries := int64(order.Uint16(b[at:]))
	if at+2+12*entries > int64(len(b)) {
		return header{}, errShort
	}
	var size [2]int64
	for e := b[at+2 : at+2+12*entries]; len(e) > 0; e = e[12:] {
		tag := order.Uint16(e)
		if tag != 256 && tag != 257 {
			continue
		}
		switch order.Uint16(e[2:]) {
		case 3: // SHORT
			size[tag-256] = int64(order.Uint16(e[8:]))
		case 4: // LONG
			size[tag-256] = int64(order.Uint32(e[8:]))
		}
	}
	return pictureOf(size[0], size[1])
}

// WebP: RFC 9649, sections 2.4 to 2.7; RFC 6386, section 9.1.

func webpHeader(b []byte) (header, error) {
	if len(b) < 25 {
		return header{}, errShort
	}
	kind := string(b[12:16])
	if kind != "VP8L" && len(b) < 30 {
		return header{}, errShort
	}
	switch kind {
	case "VP8X":
		return pictureOf(int64(uint24(b[24:]))+1, int64(uint24(b[27:]))+1)
	case "VP8L":
		if b[20] != 0x2f {
			return header{}, errors.New("the signature of its lossless data is wrong")
		}
		bits := le.Uint32(b[21:])
		return pictureOf(int64(bits&0x3fff)+1, int64(bits>>14&0x3fff)+1)
	case "VP8 ":
		if b[23] != 0x9d || b[24] != 0x01 || b[25] != 0x2a {
			return header{}, errors.New("the start code of its frame is wrong")
		}
		return pictureOf(int64(le.Uint16(b[26:])&0x3fff), int64(le.Uint16(b[28:])&0x3fff))
	}
	return header{}, errors.New("its first chunk is none of VP8, VP8L and VP8X")
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// riffBody checks that the file is as long as it says.
func riffBody(b []byte) error {
	if int64(le.Uint32(b[4:]))+8 > int64(len(b))+1 { // the last pad byte may be missing
		return errShort
	}
	return nil
}
