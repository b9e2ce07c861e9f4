package film

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"time"

	"ganglion/appliance/media/picture"
)

// The ISO base media format (ISO/IEC 14496-12) and QuickTime, which it comes from.

// isBox knows the kinds of box that a file begins with.
func isBox(kind string) bool {
	return slices.Contains([]string{"ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"}, kind)
}

// boxes walks the boxes of a body. At the top of a file the last one may be cut short,
// which whole tells.
func boxes(b []byte, f func(kind string, body []byte) error) (whole bool, err error) {
	for len(b) >= 8 {
		size, head := int64(be.Uint32(b)), int64(8)
		switch size {
		case 0: // to the end
			size = int64(len(b))
		case 1:
			if len(b) < 16 {
				return false, nil
			}
			if size, head = int64(be.Uint64(b[8:])), 16; size < 0 {
				return false, damaged("a box has %d bytes", size)
			}
		}
		if size < head {
			return false, damaged("a box has %d bytes", size)
		}
		end := min(size, int64(len(b)))
		if err := f(string(b[4:8]), b[head:end]); err != nil {
			return false, err
		}
		if size > int64(len(b)) {
			return false, nil
		}
		b = b[end:]
	}
	return true, nil
}

// mp4Track is what is known of a track.
type mp4Track struct {
	id          uint32
	kind, codec string // "vide", "soun"; the coding's four letters
	w, h, turn  int
	shown       uint64 // duration in the movie's units
	units       uint64 // of its own time, a second
	length      uint64 // in its own units
	samples     int
	fragmented  uint64 // sum over fragments, in its own units
	fragments   int    // samples in them

	stts, stsz, stsc, chunks []byte // tables of samples; chunks is stco, or co64 where wide
	wide                     bool
}

type mp4File struct {
	units  uint64 // of the movie's time, a second
	tracks []*mp4Track
	moov   bool
	extend map[uint32]uint32 // default durations of samples in fragments, by track
}

func describeMP4(b []byte) (Info, error) {
	info := Info{Kind: MP4}
	f := mp4File{extend: map[uint32]uint32{}}
	whole, err := boxes(b, func(kind string, body []byte) error { return f.top(kind, body) })
	switch {
	case err != nil:
		return info, err
	case !f.moov || !whole:
		return info, ErrShort
	}
	for _, t := range f.tracks {
		switch {
		case t.kind == "vide" && info.VideoCodec == "":
			info.VideoCodec, info.W, info.H, info.turn = orUnknown(t.codec), t.w, t.h, t.turn
			if t.turn%2 == 1 {
				info.W, info.H = t.h, t.w
			}
			info.Frames, info.Duration = t.samples+t.fragments, f.duration(t)
			if t.codec == "jpeg" || t.codec == "mjpa" {
				if err := f.jpegFrames(&info, t, b); err != nil {
					return info, err
				}
			}
		case t.kind == "soun" && info.AudioCodec == "":
			info.AudioCodec, info.sound = orUnknown(t.codec), f.duration(t)
		}
	}
	if info.VideoCodec == "" {
		info.Duration = info.sound
	}
	return info, nil
}

func (f *mp4File) top(kind string, body []byte) error {
	switch kind {
	case "moov":
		f.moov = true
		_, err := boxes(body, f.movie)
		return err
	case "moof":
		_, err := boxes(body, func(kind string, body []byte) error {
			if kind == "traf" {
				f.fragment(body)
			}
			return nil
		})
		return err
	}
	return nil
}

// versioned reads a duration and its units from a header that has two times before
// them, of 32 bits in version 0 and 64 in version 1.
func versioned(b []byte) (units, length uint64) {
	switch {
	case len(b) >= 20 && b[0] == 0:
		units, length = uint64(be.Uint32(b[12:])), uint64(be.Uint32(b[16:]))
		if length == math.MaxUint32 {
			length = 0
		}
	case len(b) >= 32 && b[0] == 1:
		units, length = uint64(be.Uint32(b[20:])), be.Uint64(b[24:])
		if length == math.MaxUint64 {
			length = 0
		}
	}
	return units, length
}

func (f *mp4File) movie(kind string, b []byte) error {
	switch kind {
	case "mvhd":
		f.units, _ = versioned(b)
	case "trak":
		if len(f.tracks) >= maxTracks {
			return damaged("it has more than %d tracks", maxTracks)
		}
		t := new(mp4Track)
		f.tracks = append(f.tracks, t)
		return t.within("trak", b)
	case "mvex":
		_, err := boxes(b, func(kind string, b []byte) error {
			if kind == "trex" && len(b) >= 16 {
				if len(f.extend) >= maxTracks {
					return damaged("it extends more than %d tracks", maxTracks)
				}
				f.extend[be.Uint32(b[4:])] = be.Uint32(b[12:])
			}
			return nil
		})
		return err
	}
	return nil
}

// mp4Parents are the boxes of a track that hold boxes, each with the one that it lies in:
// a file cannot nest them any deeper.
var mp4Parents = map[string]string{"mdia": "trak", "minf": "mdia", "stbl": "minf"}

// within reads the boxes of a track that lie in the box parent.
func (t *mp4Track) within(parent string, b []byte) error {
	_, err := boxes(b, func(kind string, b []byte) error { return t.box(parent, kind, b) })
	return err
}

func (t *mp4Track) box(parent, kind string, b []byte) error {
	switch kind {
	case "mdia", "minf", "stbl":
		if mp4Parents[kind] != parent {
			return damaged("a box %s lies in a box %s", kind, parent)
		}
		return t.within(kind, b)
	case "tkhd":
		t.header(b)
	case "mdhd":
		t.units, t.length = versioned(b)
	case "hdlr":
		if len(b) >= 12 && t.kind == "" {
			t.kind = string(b[8:12])
		}
	case "stsd":
		if len(b) >= 16 {
			t.codec = string(b[12:16])
		}
		if len(b) >= 8+8+28 && t.kind == "vide" {
			t.w, t.h = int(be.Uint16(b[8+8+24:])), int(be.Uint16(b[8+8+26:]))
		}
	case "stts":
		t.stts = b
	case "stsz":
		if t.stsz = b; len(b) >= 12 {
			t.samples = int(min(be.Uint32(b[8:]), math.MaxInt32))
		}
	case "stsc":
		t.stsc = b
	case "stco", "co64":
		t.chunks, t.wide = b, kind == "co64"
	}
	return nil
}

// header reads tkhd: the track's number, duration and matrix.
func (t *mp4Track) header(b []byte) {
	at := 12 // behind two times of 32 bits
	if len(b) > 0 && b[0] == 1 {
		at = 20
	}
	if len(b) < at+12+16+36 {
		return
	}
	t.id = be.Uint32(b[at:])
	if at == 12 {
		if t.shown = uint64(be.Uint32(b[at+8:])); t.shown == math.MaxUint32 {
			t.shown = 0
		}
		at += 12
	} else {
		if t.shown = be.Uint64(b[at+8:]); t.shown == math.MaxUint64 {
			t.shown = 0
		}
		at += 16
	}
	m := func(i int) int32 { return int32(be.Uint32(b[min(at+16+4*i, len(b)-4):])) }
	switch a, right, down, d := m(0), m(1), m(3), m(4); {
	case a == 0 && d == 0 && right > 0 && down < 0:
		t.turn = 1
	case a < 0 && d < 0 && right == 0 && down == 0:
		t.turn = 2
	case a == 0 && d == 0 && right < 0 && down > 0:
		t.turn = 3
	}
}

// fragment adds up the samples of one track in a fragment (moof/traf).
func (f *mp4File) fragment(b []byte) {
	var t *mp4Track
	var each uint32
	_, _ = boxes(b, func(kind string, b []byte) error {
		switch {
		case kind == "tfhd" && len(b) >= 8:
			flags, id := be.Uint32(b)&0xffffff, be.Uint32(b[4:])
			for _, track := range f.tracks {
				if track.id == id {
					t = track
				}
			}
			each = f.extend[id]
			at := 8
			for _, field := range []struct{ flag, size uint32 }{{1, 8}, {2, 4}} {
				if flags&field.flag != 0 {
					at += int(field.size)
				}
			}
			if flags&8 != 0 && len(b) >= at+4 {
				each = be.Uint32(b[at:])
			}
		case kind == "trun" && len(b) >= 8 && t != nil:
			t.run(b, each)
		}
		return nil
	})
}

func (t *mp4Track) run(b []byte, each uint32) {
	flags, count := be.Uint32(b)&0xffffff, int(min(be.Uint32(b[4:]), math.MaxInt32))
	at, step := 8, 0
	for _, flag := range []uint32{1, 4} {
		if flags&flag != 0 {
			at += 4
		}
	}
	for _, flag := range []uint32{0x100, 0x200, 0x400, 0x800} {
		if flags&flag != 0 {
			step += 4
		}
	}
	if step > 0 {
		count = min(count, max(len(b)-at, 0)/step)
	}
	t.fragments = min(t.fragments+count, math.MaxInt32)
	if flags&0x100 == 0 {
		t.fragmented += uint64(each) * uint64(count)
		return
	}
	for i := range count {
		t.fragmented += uint64(be.Uint32(b[at+i*step:]))
	}
}

// duration is how long a track is seen.
func (f *mp4File) duration(t *mp4Track) time.Duration {
	switch {
	case t.shown > 0 && f.units > 0:
		return duration(float64(t.shown) / float64(f.units))
	case t.units == 0:
		return 0
	case t.length > 0:
		return duration(float64(t.length) / float64(t.units))
	}
	return duration(float64(t.fragmented) / float64(t.units))
}

// jpegFrames finds the JPEG files of a track in its tables. Samples do not share bytes, so
// that listing them takes time for the bytes of the file alone.
func (f *mp4File) jpegFrames(info *Info, t *mp4Track, file []byte) error {
	sizes, err := t.sizes()
	if err != nil {
		return err
	}
	offsets := t.offsets(len(sizes))
	var bodies [][]byte
	left := int64(len(file))
	for chunk := 0; len(bodies) < len(sizes); chunk++ {
		if chunk >= len(offsets) {
			return damaged("its samples lie nowhere")
		}
		at, count := offsets[chunk], t.perChunk(chunk)
		if count < 1 {
			return damaged("chunk %d has no sample", chunk)
		}
		for range min(count, len(sizes)-len(bodies)) {
			size := sizes[len(bodies)]
			if at < 0 || at > int64(len(file))-size {
				return ErrShort
			}
			if left -= size; left < 0 {
				return damaged("its samples lie in one another")
			}
			body := file[at : at+size]
			if length := picture.JPEGLength(body); length > 0 {
				body = body[:length]
			}
			bodies = append(bodies, body)
			at += size
		}
	}
	starts := t.starts(len(bodies))
	w, h := info.W, info.H
	if err := info.setBodies(bodies, starts); err != nil {
		return err
	}
	info.W, info.H = w, h
	return nil
}

func (t *mp4Track) sizes() ([]int64, error) {
	b := t.stsz
	if len(b) < 12 {
		return nil, damaged("it has no table of sizes")
	}
	all, n := be.Uint32(b[4:]), int64(be.Uint32(b[8:]))
	if n > maxFrames || all == 0 && int64(len(b)) < 12+4*n {
		return nil, damaged("its table of sizes has %d entries", n)
	}
	sizes := make([]int64, n)
	for i := range sizes {
		if sizes[i] = int64(all); all == 0 {
			sizes[i] = int64(be.Uint32(b[12+4*i:]))
		}
	}
	return sizes, nil
}

// offsets are the places of the chunks, as many as most at the most.
func (t *mp4Track) offsets(most int) []int64 {
	if len(t.chunks) < 8 {
		return nil
	}
	size := 4
	if t.wide {
		size = 8
	}
	b := t.chunks[8:]
	offsets := make([]int64, min(int64(be.Uint32(t.chunks[4:])), int64(len(b)/size), int64(most)))
	for i := range offsets {
		if t.wide {
			offsets[i] = int64(be.Uint64(b[8*i:]))
		} else {
			offsets[i] = int64(be.Uint32(b[4*i:]))
		}
	}
	return offsets
}

// perChunk is how many samples chunk has: of the last entry whose first chunk, counted
// from 1, is not behind it.
func (t *mp4Track) perChunk(chunk int) int {
	if len(t.stsc) < 20 {
		return 1
	}
	b := t.stsc[8:]
	n := int(min(int64(be.Uint32(t.stsc[4:])), int64(len(b)/12)))
	i := sort.Search(n, func(i int) bool { return int64(be.Uint32(b[12*i:])) > int64(chunk)+1 })
	if i == 0 {
		return 1
	}
	return int(min(be.Uint32(b[12*(i-1)+4:]), maxFrames))
}

// starts are the times of n samples by the table stts.
func (t *mp4Track) starts(n int) []time.Duration {
	if len(t.stts) < 8 || t.units == 0 {
		return nil
	}
	starts, at := make([]time.Duration, 0, n), uint64(0)
	for b := t.stts[8:]; len(b) >= 8 && len(starts) < n; b = b[8:] {
		for range binary.BigEndian.Uint32(b) {
			if len(starts) == n {
				break
			}
			starts = append(starts, duration(float64(at)/float64(t.units)))
			at += uint64(be.Uint32(b[4:]))
		}
	}
	if len(starts) < n {
		return nil
	}
	return starts
}
