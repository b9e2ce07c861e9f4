package film

import (
	"math"
	"strings"
)

// Matroska and WebM (RFC 9559, RFC 8794).
const (
	mkvSegment       = 0x18538067
	mkvInfo          = 0x1549a966
	mkvScale         = 0x2ad7b1
	mkvDuration      = 0x4489
	mkvTracks        = 0x1654ae6b
	mkvTrack         = 0xae
	mkvTrackNumber   = 0xd7
	mkvTrackType     = 0x83
	mkvCodec         = 0x86
	mkvFrameDuration = 0x23e383
	mkvVideo         = 0xe0
	mkvWidth         = 0xb0
	mkvHeight        = 0xba
	mkvCropBottom    = 0x54aa
	mkvCropTop       = 0x54bb
	mkvCropLeft      = 0x54cc
	mkvCropRight     = 0x54dd
	mkvCluster       = 0x1f43b675
	mkvTimestamp     = 0xe7
	mkvSimpleBlock   = 0xa3
	mkvBlockGroup    = 0xa0
	mkvBlock         = 0xa1
)

// mkvMasters are the elements whose contents are read as if they stood one level up.
var mkvMasters = map[uint64]bool{
	mkvSegment: true, mkvInfo: true, mkvTracks: true, mkvTrack: true, mkvVideo: true, mkvCluster: true, mkvBlockGroup: true,
}

// vint reads a number of variable length; ids keep the bits that say the length. n is 0
// where there is none.
func vint(b []byte, id bool) (v uint64, n int, unknown bool) {
	if len(b) == 0 || b[0] == 0 {
		return 0, 0, false
	}
	n = 1
	for m := byte(0x80); b[0]&m == 0; m >>= 1 {
		n++
	}
	if n > len(b) {
		return 0, 0, false
	}
	for _, c := range b[:n] {
		v = v<<8 | uint64(c)
	}
	if id {
		return v, n, false
	}
	v &= 1<<(7*n) - 1
	return v, n, v == 1<<(7*n)-1
}

func mkvUint(b []byte) (v uint64) {
	for _, c := range b[:min(len(b), 8)] {
		v = v<<8 | uint64(c)
	}
	return v
}

func mkvFloat(b []byte) float64 {
	switch len(b) {
	case 4:
		return float64(math.Float32frombits(be.Uint32(b)))
	case 8:
		return math.Float64frombits(be.Uint64(b))
	}
	return 0
}

type mkvTrackInfo struct {
	number, kind uint64
	codec        string
	w, h         int
	each         uint64 // ns of a frame
	blocks       int
}

type mkvFile struct {
	scale   uint64 // ns of a unit of time
	length  float64
	tracks  []mkvTrackInfo
	cluster uint64 // its time
	last    uint64 // time of the last block, in units
}

func describeMatroska(b []byte) (Info, error) {
	info := Info{Kind: Matroska}
	f := mkvFile{scale: 1_000_000}
	for at := 0; at < len(b); {
		id, n, _ := vint(b[at:], true)
		if n == 0 || n > 4 {
			return info, damaged("no element stands at byte %d", at)
		}
		size, m, unknown := vint(b[at+n:], false)
		if m == 0 {
			return info, ErrShort
		}
		at += n + m
		if !unknown && size > uint64(len(b)-at) {
			return info, ErrShort
		}
		if mkvMasters[id] {
			if id == mkvTrack {
				if len(f.tracks) >= maxTracks {
					return info, damaged("it has more than %d tracks", maxTracks)
				}
				f.tracks = append(f.tracks, mkvTrackInfo{})
			}
			continue
		}
		if unknown {
			return info, damaged("the element at byte %d has no size", at)
		}
		f.leaf(id, b[at:at+int(size)])
		at += int(size)
	}
	if len(f.tracks) == 0 {
		return info, ErrShort
	}
	return f.info(info), nil
}

func (f *mkvFile) leaf(id uint64, b []byte) {
	switch id {
	case mkvScale:
		f.scale = mkvUint(b)
		return
	case mkvDuration:
		f.length = mkvFloat(b)
		return
	case mkvTimestamp:
		f.cluster = mkvUint(b)
		return
	case mkvSimpleBlock, mkvBlock:
		f.block(b)
		return
	}
	if len(f.tracks) == 0 {
		return
	}
	t := &f.tracks[len(f.tracks)-1]
	pixels := int(min(mkvUint(b), 1<<20))
	switch id {
	case mkvTrackNumber:
		t.number = mkvUint(b)
	case mkvTrackType:
		t.kind = mkvUint(b)
	case mkvCodec:
		t.codec = strings.TrimRight(string(b[:min(len(b), 64)]), "\x00")
	case mkvFrameDuration:
		t.each = mkvUint(b)
	case mkvWidth:
		t.w += pixels
	case mkvHeight:
		t.h += pixels
	case mkvCropLeft, mkvCropRight:
		t.w -= pixels
	case mkvCropTop, mkvCropBottom:
		t.h -= pixels
	}
}

// block counts a block of a track and notes its time.
func (f *mkvFile) block(b []byte) {
	number, n, _ := vint(b, false)
	if n == 0 || len(b) < n+3 {
		return
	}
	for i := range f.tracks {
		if f.tracks[i].number == number {
			f.tracks[i].blocks++
		}
	}
	at := int64(f.cluster) + int64(int16(be.Uint16(b[n:])))
	f.last = max(f.last, uint64(max(at, 0)))
}

func (f *mkvFile) info(i Info) Info {
	length := f.length * float64(f.scale) / 1e9
	for _, t := range f.tracks {
		switch {
		case t.kind == 1 && i.VideoCodec == "":
			i.VideoCodec, i.W, i.H, i.Frames = orUnknown(t.codec), t.w, t.h, t.blocks
			if !(length > 0) { // a live stream does not know
				length = float64(f.last)*float64(f.scale)/1e9 + float64(t.each)/1e9
			}
		case t.kind == 2 && i.AudioCodec == "":
			i.AudioCodec = orUnknown(t.codec)
		}
	}
	if !(length > 0) {
		length = float64(f.last) * float64(f.scale) / 1e9
	}
	i.Duration = duration(length)
	i.sound = i.Duration
	return i
}
