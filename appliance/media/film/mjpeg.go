package film

import (
	"bytes"
	"time"

	"ganglion/appliance/media/picture"
)

// rawRate is the rate of Motion-JPEG without a container, which does not say it: that
// of ffmpeg.
const rawRate = 25

// describeMJPEG splits JPEG files that follow one another.
func describeMJPEG(b []byte) (Info, error) {
	info := Info{Kind: MJPEG, VideoCodec: "JPEG"}
	bodies, err := splitJPEG(b)
	if err != nil {
		return info, err
	}
	info.Duration = time.Duration(len(bodies)) * time.Second / rawRate
	return info, info.setBodies(bodies, nil)
}

// maxFrames bounds the frames of one file that are listed.
const maxFrames = 100_000

func splitJPEG(b []byte) (bodies [][]byte, err error) {
	for len(b) > 0 {
		if !bytes.HasPrefix(b, []byte{0xff, 0xd8}) {
			return nil, damaged("no picture begins where the one before ends")
		}
		n := picture.JPEGLength(b)
		if n < 0 {
			return nil, ErrShort
		}
		if bodies = append(bodies, b[:n]); len(bodies) > maxFrames {
			return nil, damaged("it has more than %d frames", maxFrames)
		}
		b = bytes.TrimLeft(b[n:], "\x00")
	}
	return bodies, nil
}
