package film

import (
	"strings"
	"time"

	"ganglion/appliance/media/picture"
)

// AVI: RIFF with the lists hdrl (headers of the streams) and movi (their data).

// riffChunk is a chunk of a RIFF file. Of a list, kind is "LIST" and body begins with
// its name.
type riffChunk struct {
	kind string
	body []byte
}

// riffChunks walks chunks; the last may be cut off.
func riffChunks(b []byte, f func(riffChunk) error) error {
	for len(b) >= 8 {
		n := min(int64(le.Uint32(b[4:])), int64(len(b)-8))
		if err := f(riffChunk{kind: string(b[:4]), body: b[8 : 8+n]}); err != nil {
			return err
		}
		b = b[min(8+n+n&1, int64(len(b))):]
	}
	return nil
}

// aviStream is what one stream's headers say.
type aviStream struct {
	kind, codec string
	w, h        int
	scale, rate uint32
	length      uint32
}

func describeAVI(b []byte) (Info, error) {
	info := Info{Kind: AVI}
	var streams []aviStream
	var frames [][]byte
	video := -1
	var walk func(list []byte, depth int) error
	walk = func(list []byte, depth int) error {
		return riffChunks(list, func(c riffChunk) error {
			switch {
			case c.kind == "LIST" && len(c.body) >= 4 && depth < 3:
				if string(c.body[:4]) == "strl" {
					if len(streams) >= maxTracks {
						return damaged("it has more than %d streams", maxTracks)
					}
					streams = append(streams, aviStream{})
				}
				return walk(c.body[4:], depth+1)
			case len(streams) == 0:
			case c.kind == "strh" && len(c.body) >= 36:
				s := &streams[len(streams)-1]
				s.kind, s.codec = string(c.body[:4]), strings.TrimRight(string(c.body[4:8]), "\x00 ")
				s.scale, s.rate, s.length = le.Uint32(c.body[20:]), le.Uint32(c.body[24:]), le.Uint32(c.body[32:])
				if s.kind == "vids" && video < 0 {
					video = len(streams) - 1
				}
			case c.kind == "strf" && len(c.body) >= 20 && streams[len(streams)-1].kind == "vids":
				s := &streams[len(streams)-1]
				s.w, s.h = int(int32(le.Uint32(c.body[4:]))), int(int32(le.Uint32(c.body[8:])))
				s.h = max(s.h, -s.h)
				if codec := strings.TrimRight(string(c.body[16:20]), "\x00 "); codec != "" {
					s.codec = codec
				}
			case video >= 0 && len(frames) < maxFrames && len(c.body) > 0 &&
				(c.kind[2:] == "dc" || c.kind[2:] == "db") && c.kind[:2] == string([]byte{'0' + byte(video/10), '0' + byte(video%10)}):
				frames = append(frames, c.body)
			}
			return nil
		})
	}
	// A writer that could not seek leaves the length open.
	if n := int64(le.Uint32(b[4:])); n+8 > int64(len(b))+1 && n < 1<<32-1 {
		return info, ErrShort
	}
	if err := walk(b[12:], 0); err != nil {
		return info, err
	}
	for i, s := range streams {
		seconds := 0.0
		if s.rate > 0 {
			seconds = float64(s.length) * float64(s.scale) / float64(s.rate)
		}
		switch {
		case i == video:
			info.VideoCodec, info.W, info.H, info.Frames = orUnknown(s.codec), s.w, s.h, int(min(s.length, 1<<30))
			info.Duration = duration(seconds)
		case s.kind == "auds" && info.AudioCodec == "":
			info.AudioCodec, info.sound = "PCM or other", duration(seconds)
			if video < 0 {
				info.Duration = info.sound
			}
		}
	}
	if len(streams) == 0 {
		return info, ErrShort
	}
	if strings.EqualFold(info.VideoCodec, "MJPG") && len(frames) > 0 {
		s := streams[video]
		if s.rate > 0 {
			info.Duration = duration(float64(len(frames)) * float64(s.scale) / float64(s.rate))
		}
		for i, f := range frames {
			if n := picture.JPEGLength(f); n < 0 {
				return info, ErrShort
			} else {
				frames[i] = f[:n]
			}
		}
		return info, info.setBodies(frames, nil)
	}
	return info, nil
}

func orUnknown(codec string) string {
	if codec == "" {
		return "unknown"
	}
	return strings.ToValidUTF8(codec, "?")
}

// duration keeps what a header says within what a Duration holds.
func duration(seconds float64) time.Duration {
	const most = 1e6 // seconds; far above every limit
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, most) * float64(time.Second))
}
