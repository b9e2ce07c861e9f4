package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

var (
	be = binary.BigEndian
	le = binary.LittleEndian
)

// Format is a kind of picture file.
type Format string

// The kinds that are read.
const (
	PNG  Format = "PNG"
	JPEG Format = "JPEG"
	GIF  Format = "GIF"
	BMP  Format = "BMP"
	TIFF Format = "TIFF"
	WebP Format = "WebP"
	PAM  Format = "PAM"
)

// Detect tells the kind of a file by its first bytes, "" for none of these.
func Detect(data []byte) Format {
	has := func(prefix string) bool { return bytes.HasPrefix(data, []byte(prefix)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return PNG
	case has("\xff\xd8\xff"):
		return JPEG
	case has("GIF87a"), has("GIF89a"):
		return GIF
	case has("II*\x00"), has("MM\x00*"):
		return TIFF
	case has("P7\n"):
		return PAM
	case len(data) >= 12 && has("RIFF") && string(data[8:12]) == "WEBP":
		return WebP
	case len(data) >= 26 && has("BM"):
		return BMP
	}
	return ""
}

// Info is what a file's header declares.
type Info struct {
	Format Format
	W, H   int   // as stored: before the orientation
	Bytes  int64 // of memory that decoding takes at the most, the picture included
}

// Describe reads the headers of a picture. data may be the beginning of a file: the
// error is ErrShort where the headers go on behind it.
func Describe(data []byte) (Info, error) {
	info, err := describe(data)
	if err != nil {
		return Info{}, fmt.Errorf("picture: %w", err)
	}
	return info, nil
}

func describe(data []byte) (Info, error) {
	info := Info{Format: Detect(data)}
	read := map[Format]func([]byte) (int, int, error){
		PNG: pngSize, JPEG: jpegSize, GIF: gifSize, BMP: bmpSize, TIFF: tiffSize, WebP: webpSize, PAM: pamSize,
	}[info.Format]
	if read == nil {
		return info, unsupported("it begins like none of the kinds that are read")
	}
	var err error
	if info.W, info.H, err = read(data); err != nil {
		return info, err
	}
	if info.W < 1 || info.H < 1 {
		return info, damaged("it declares %d×%d pixels", info.W, info.H)
	}
	info.Bytes = decodingBytes(info, data)
	return info, nil
}

// Oriented are the sides after the orientation of a whole file is applied.
func Oriented(info Info, data []byte) (w, h int) {
	if orientation(info.Format, data) > 4 {
		return info.H, info.W
	}
	return info.W, info.H
}

// PNG: ISO/IEC 15948, section 5 (chunks) and 11.2.2 (IHDR).

func pngSize(b []byte) (w, h int, err error) {
	if len(b) < 33 {
		return 0, 0, ErrShort
	}
	if be.Uint32(b[8:]) != 13 || string(b[12:16]) != "IHDR" {
		return 0, 0, damaged("it does not begin with IHDR")
	}
	if crc32.ChecksumIEEE(b[12:29]) != be.Uint32(b[29:]) {
		return 0, 0, damaged("the checksum of IHDR is wrong")
	}
	depths := map[byte]string{0: "\x01\x02\x04\x08\x10", 2: "\x08\x10", 3: "\x01\x02\x04\x08", 4: "\x08\x10", 6: "\x08\x10"}
	if bytes.IndexByte([]byte(depths[b[25]]), b[24]) < 0 {
		return 0, 0, damaged("colour type %d with %d bits does not exist", b[25], b[24])
	}
	if b[26] != 0 || b[27] != 0 || b[28] > 1 {
		return 0, 0, damaged("its compression, filter or interlace method does not exist")
	}
	return int(be.Uint32(b[16:])), int(be.Uint32(b[20:])), nil
}

// JPEG: ITU-T T.81, annex B.

// jpegSegment reads the marker at i and tells where its segment ends.
func jpegSegment(b []byte, i int) (marker byte, body []byte, end int, err error) {
	if i < len(b) && b[i] != 0xff {
		return 0, nil, 0, damaged("a marker is expected at byte %d", i)
	}
	for i < len(b) && b[i] == 0xff {
		i++ // fill bytes
	}
	if i >= len(b) {
		return 0, nil, 0, ErrShort
	}
	marker = b[i]
	i++
	if marker == 0xd9 {
		return marker, nil, i, nil
	}
	if marker < 0xc0 || marker >= 0xd0 && marker <= 0xd8 {
		return 0, nil, 0, damaged("marker %02X stands at byte %d", marker, i-1)
	}
	if len(b)-i < 2 {
		return 0, nil, 0, ErrShort
	}
	n := int(be.Uint16(b[i:]))
	if n < 2 {
		return 0, nil, 0, damaged("the segment at byte %d has no length", i)
	}
	if n > len(b)-i {
		return 0, nil, 0, ErrShort
	}
	return marker, b[i+2 : i+n], i + n, nil
}

func isSOF(marker byte) bool {
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc
}

func jpegSize(b []byte) (w, h int, err error) {
	for i := 2; ; {
		marker, body, end, err := jpegSegment(b, i)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case marker == 0xd9 || marker == 0xda:
			return 0, 0, damaged("it has no frame header")
		case isSOF(marker):
			if len(body) < 6 {
				return 0, 0, damaged("the frame header is too small")
			}
			if marker > 0xc2 {
				return 0, 0, unsupported("a JPEG of process SOF%d (lossless, hierarchical or arithmetic coding)", marker-0xc0)
			}
			if body[0] != 8 {
				return 0, 0, unsupported("a JPEG of %d bits", body[0])
			}
			return int(be.Uint16(body[3:])), int(be.Uint16(body[1:])), nil
		}
		i = end
	}
}

// GIF: GIF89a specification, section 18.

func gifSize(b []byte) (w, h int, err error) {
	if len(b) < 13 {
		return 0, 0, ErrShort
	}
	return int(le.Uint16(b[6:])), int(le.Uint16(b[8:])), nil
}

// BMP: BITMAPCOREHEADER and BITMAPINFOHEADER.

func bmpSize(b []byte) (w, h int, err error) {
	if len(b) < 26 {
		return 0, 0, ErrShort
	}
	switch size := le.Uint32(b[14:]); {
	case size == 12:
		return int(le.Uint16(b[18:])), int(le.Uint16(b[20:])), nil
	case size < 16 || size > 256:
		return 0, 0, damaged("its header has %d bytes", size)
	}
	h = int(int32(le.Uint32(b[22:])))
	if h < 0 {
		h = -h // rows from the top down
	}
	return int(int32(le.Uint32(b[18:]))), h, nil
}

// TIFF 6.0, section 2: the first directory.

func tiffSize(b []byte) (w, h int, err error) {
	err = tiffTags(b, func(tag uint16, value int) {
		switch tag {
		case 256:
			w = value
		case 257:
			h = value
		}
	})
	return w, h, err
}

// tiffTags calls f with the first SHORT or LONG of each entry of the first directory
// of a TIFF file, which is also the form of EXIF.
func tiffTags(b []byte, f func(tag uint16, value int)) error {
	if len(b) < 8 {
		return ErrShort
	}
	var order binary.ByteOrder = le
	if b[0] == 'M' {
		order = be
	}
	at := int64(order.Uint32(b[4:]))
	if at < 8 {
		return damaged("its directory stands at byte %d", at)
	}
	if at+2 > int64(len(b)) {
		return ErrShort
	}
	entries := int64(order.Uint16(b[at:]))
	if at+2+12*entries > int64(len(b)) {
		return ErrShort
	}
	for e := b[at+2 : at+2+12*entries]; len(e) > 0; e = e[12:] {
		tag, count := order.Uint16(e), int64(order.Uint32(e[4:]))
		if count < 1 {
			continue
		}
		switch kind := order.Uint16(e[2:]); {
		case kind == 3 && count <= 2: // SHORT
			f(tag, int(order.Uint16(e[8:])))
		case kind == 3: // the entry says where they are
			if i := int64(order.Uint32(e[8:])); i+2 <= int64(len(b)) {
				f(tag, int(order.Uint16(b[i:])))
			}
		case kind == 4 && count == 1: // LONG
			f(tag, int(order.Uint32(e[8:])))
		}
	}
	return nil
}

// WebP: RFC 9649, sections 2.4 to 2.7; RFC 6386, section 9.1.

func webpSize(b []byte) (w, h int, err error) {
	if len(b) < 25 {
		return 0, 0, ErrShort
	}
	kind := string(b[12:16])
	if kind != "VP8L" && len(b) < 30 {
		return 0, 0, ErrShort
	}
	if kind == "VP8X" {
		return int(uint24(b[24:])) + 1, int(uint24(b[27:])) + 1, nil
	}
	return webpFrameSize(kind, b[20:])
}

// webpFrameSize reads the size that coded pixels declare.
func webpFrameSize(kind string, b []byte) (w, h int, err error) {
	switch kind {
	case "VP8L":
		if len(b) < 5 {
			return 0, 0, ErrShort
		}
		if b[0] != 0x2f {
			return 0, 0, damaged("the signature of its lossless data is wrong")
		}
		bits := le.Uint32(b[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, nil
	case "VP8 ":
		if len(b) < 10 {
			return 0, 0, ErrShort
		}
		if b[3] != 0x9d || b[4] != 0x01 || b[5] != 0x2a {
			return 0, 0, damaged("the start code of its frame is wrong")
		}
		return int(le.Uint16(b[6:]) & 0x3fff), int(le.Uint16(b[8:]) & 0x3fff), nil
	}
	return 0, 0, damaged("its first chunk holds no pixels")
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
