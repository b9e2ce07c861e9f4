package sound

import "bytes"

// Versions as the header of a frame has them.
const (
	mpeg25 = 0
	mpeg2  = 2
	mpeg1  = 3
)

// mp3Header is the header of one frame of layer III (ISO/IEC 11172-3, 2.4.1.3).
type mp3Header struct {
	version  int
	rate     int // Hz
	channels int
	samples  int // of one channel
	size     int // bytes with the header
	side     int // bytes of the side information
}

// like tells whether two frames can be of one stream. Mono and stereo may alternate.
func (h mp3Header) like(o mp3Header) bool { return h.version == o.version && h.rate == o.rate }

var (
	mp3Rates    = [3]int{44100, 48000, 32000}                                            // MPEG-1
	mp3Bitrates = [14]int{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320} // kbit/s, MPEG-1
	mp3Lower    = [14]int{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}     // MPEG-2 and 2.5
)

// parseMP3 reads the header of a frame. Free formats, whose frames do not tell their
// size, are no frames.
func parseMP3(b []byte) (mp3Header, bool) {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return mp3Header{}, false
	}
	version, layer := int(b[1]>>3&3), b[1]>>1&3
	bitrate, rate, padding := int(b[2]>>4), int(b[2]>>2&3), int(b[2]>>1&1)
	if version == 1 || layer != 1 || bitrate == 0 || bitrate == 15 || rate == 3 || b[3]&3 == 2 {
		return mp3Header{}, false
	}
	h := mp3Header{version: version, channels: 2, rate: mp3Rates[rate]}
	mono := b[3]>>6 == 3
	if mono {
		h.channels = 1
	}
	if version == mpeg1 {
		h.samples, h.side = 1152, 32
		if mono {
			h.side = 17
		}
		h.size = 144000*mp3Bitrates[bitrate-1]/h.rate + padding
		return h, true
	}
	h.samples, h.side = 576, 17
	if mono {
		h.side = 9
	}
	h.rate /= 2
	if version == mpeg25 {
		h.rate /= 2
	}
	h.size = 72000*mp3Lower[bitrate-1]/h.rate + padding
	return h, true
}

// isMP3 tells whether a file begins with a frame.
func isMP3(b []byte) bool { _, ok := parseMP3(b); return ok }

// firstMP3 finds the first frame behind an ID3v2 tag.
func firstMP3(b []byte) (mp3Header, int, error) {
	at := 0
	for len(b)-at >= 10 && string(b[at:at+3]) == "ID3" { // id3.org/id3v2.4.0-structure
		size := int(b[at+6]&0x7f)<<21 | int(b[at+7]&0x7f)<<14 | int(b[at+8]&0x7f)<<7 | int(b[at+9]&0x7f)
		at += 10 + size
		if at > len(b) {
			return mp3Header{}, 0, damaged("MP3", "its ID3 tag is cut short")
		}
	}
	for ; ; at++ {
		n := bytes.IndexByte(b[min(at, len(b)):], 0xff)
		if n < 0 {
			return mp3Header{}, 0, damaged("MP3", "it holds no whole frame of layer III")
		}
		at += n
		h, ok := parseMP3(b[at:])
		if !ok || at+h.size > len(b) {
			continue
		}
		// Two bytes can look like a header by chance; two headers at their distance
		// hardly.
		if next, ok := parseMP3(b[at+h.size:]); at+h.size == len(b) || ok && next.like(h) {
			return h, at, nil
		}
	}
}

// nextMP3 finds the next frame of a stream at or behind a place, -1 where there is
// none.
func nextMP3(b []byte, at int, first mp3Header) int {
	for ; at < len(b); at++ {
		n := bytes.IndexByte(b[at:], 0xff)
		if n < 0 {
			return -1
		}
		at += n
		h, ok := parseMP3(b[at:])
		if !ok || !h.like(first) || at+h.size > len(b) {
			continue
		}
		if next, ok := parseMP3(b[at+h.size:]); at+h.size == len(b) || ok && next.like(h) {
			return at
		}
	}
	return -1
}

// infoFrame reads the header that LAME and others put into a first frame of silence:
// samples of delay at the beginning and of padding at the end.
func infoFrame(frame []byte) (delay, padding, frames int, ok bool) {
	h, _ := parseMP3(frame)
	at := 4 + h.side
	if len(frame) < at+8 {
		return 0, 0, 0, false
	}
	switch string(frame[at : at+4]) {
	case "Xing", "Info":
	default:
		return 0, 0, 0, false
	}
	flags := be.Uint32(frame[at+4:])
	at += 8
	for i, size := range [4]int{4, 4, 100, 4} { // frames, bytes, table, quality
		if flags>>i&1 == 0 {
			continue
		}
		if i == 0 && at+4 <= len(frame) {
			frames = int(be.Uint32(frame[at:]))
		}
		at += size
	}
	// The encoder's name takes 9 bytes, and 12 more come before the delays.
	if at += 21; at+3 <= len(frame) {
		packed := int(frame[at])<<16 | int(frame[at+1])<<8 | int(frame[at+2])
		delay, padding = packed>>12, packed&0xfff
	}
	return delay, padding, frames, true
}
