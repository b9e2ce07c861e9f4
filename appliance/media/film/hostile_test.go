package film

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"ganglion/appliance/media/picture"
	"ganglion/gpu/cputime"
)

// Files that were made to cost more than their bytes are worth.

// mp4Box makes a box.
func mp4Box(kind string, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(append(be.AppendUint32(nil, uint32(8+len(body))), kind...), body...)
}

func words(v ...uint32) (b []byte) {
	for _, w := range v {
		b = be.AppendUint32(b, w)
	}
	return b
}

// jpegMovie is a movie of one Motion-JPEG track with n samples of size bytes each, whose
// chunks have one sample each and lie where chunks says.
func jpegMovie(n, size uint32, chunks, data []byte) []byte {
	stsd := append(words(0, 1, 36), "jpeg"...)
	return bytes.Join([][]byte{
		mp4Box("ftyp", []byte("qt  "), words(0)),
		mp4Box("moov", mp4Box("trak", mp4Box("mdia",
			mp4Box("hdlr", words(0, 0), []byte("vide")),
			mp4Box("minf", mp4Box("stbl",
				mp4Box("stsd", stsd, make([]byte, 24), words(0x00600040)),
				mp4Box("stsz", words(0, size, n)),
				chunks))))),
		mp4Box("mdat", data),
	}, nil)
}

// spent runs Describe and tells what it allocated and how much processor time it took.
func spent(data []byte) (memory uint64, took time.Duration, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cputime.Used()
	_, err = Describe(data, Limits{})
	took = cputime.Used() - start
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took, err
}

// Containers that nest without end are refused; a stack that overflows would end the
// whole program.
func TestNesting(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(64 << 20))
	const levels = 1 << 20
	box := bytes.Repeat([]byte("\x00\x00\x00\x00mdia"), levels)
	list := bytes.Repeat([]byte("LIST\xff\xff\xff\x7fhdrl"), levels)
	segment := bytes.Repeat([]byte("\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff"), levels)
	for name, data := range map[string][]byte{
		"MP4":      bytes.Join([][]byte{mp4Box("ftyp", []byte("isom"), words(0)), []byte("\x00\x00\x00\x00moov\x00\x00\x00\x00trak"), box}, nil),
		"AVI":      append([]byte("RIFF\xff\xff\xff\xffAVI "), list...),
		"Matroska": append([]byte("\x1a\x45\xdf\xa3\x80"), segment...),
	} {
		if _, took, err := spent(data); !isTyped(err) || took > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// The tracks of a file are counted before they are kept.
func TestTracks(t *testing.T) {
	const n = 200_000
	for name, data := range map[string][]byte{
		"MP4":          append(mp4Box("ftyp", []byte("isom"), words(0)), mp4Box("moov", bytes.Repeat(mp4Box("trak"), n))...),
		"MP4, extends": append(mp4Box("ftyp", []byte("isom"), words(0)), mp4Box("moov", mp4Box("mvex", extends(n)))...),
		"AVI":          append([]byte("RIFF\xff\xff\xff\xffAVI "), bytes.Repeat([]byte("LIST\x04\x00\x00\x00strl"), n)...),
		"Matroska":     append([]byte("\x1a\x45\xdf\xa3\x80"), bytes.Repeat([]byte("\xae\x80"), n)...),
	} {
		if memory, _, err := spent(data); !errors.Is(err, ErrDamaged) || memory > 1<<20 {
			t.Errorf("%s: %v with %d bytes allocated, want ErrDamaged and 1 MiB at the most", name, err, memory)
		}
	}
}

func extends(n uint32) (b []byte) {
	for id := range n {
		b = append(b, mp4Box("trex", words(0, id, 1, 40, 0, 0))...)
	}
	return b
}

// Motion-JPEG whose samples lie in one another is refused before each is walked.
func TestSamplesInOneAnother(t *testing.T) {
	const n = 1000
	data := bytes.Repeat([]byte{0xff, 0}, 1<<19)
	_, took, err := spent(jpegMovie(n, 1<<20, mp4Box("stco", words(0, n), bytes.Repeat(words(500), n)), data))
	if !errors.Is(err, ErrDamaged) || took > time.Second {
		t.Errorf("%v after %v, want ErrDamaged at once", err, took)
	}
}

// Samples that lie apart are read, so that the guard above is what refuses the others.
func TestSamplesApart(t *testing.T) {
	body := read(t, "testdata/raw.mjpeg")
	body = body[:picture.JPEGLength(body)]
	size := uint32(len(body))
	var offsets []byte
	empty := len(jpegMovie(3, size, mp4Box("stco", words(0, 3, 0, 0, 0)), nil))
	for i := range uint32(3) {
		offsets = append(offsets, words(uint32(empty)+i*size)...)
	}
	i, err := Describe(jpegMovie(3, size, mp4Box("stco", words(0, 3), offsets), bytes.Repeat(body, 3)), Limits{})
	if err != nil || i.Frames != 3 || !bytes.Equal(i.bodies[2], body) {
		t.Errorf("%d frames, %v, want 3", i.Frames, err)
	}
}

// Places and sizes whose sum does not fit are outside the file.
func TestPlacesOutside(t *testing.T) {
	for _, at := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1, 1 << 40} {
		wide := mp4Box("co64", words(0, 1), be.AppendUint64(nil, at))
		if _, err := Describe(jpegMovie(1, 100, wide, make([]byte, 200)), Limits{}); !errors.Is(err, ErrShort) {
			t.Errorf("at %x: %v, want ErrShort", at, err)
		}
	}
	none := mp4Box("stsc", words(0, 1, 1, 0, 1))
	if _, err := Describe(jpegMovie(1, 100, append(none, mp4Box("stco", words(0, 1, 8))...), make([]byte, 200)), Limits{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a chunk without samples: %v, want ErrDamaged", err)
	}
}

// Samples that are no numbers are the file's fault.
func TestSamplesAreNumbers(t *testing.T) {
	good := le.AppendUint32(le.AppendUint32(nil, math.Float32bits(.5)), math.Float32bits(-1))
	if s, err := appendSamples(make([]float32, 0, 1), good); err != nil || len(s) != 1 || s[0] != .5 {
		t.Errorf("%v, %v, want one sample", s, err)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := appendSamples(make([]float32, 0, 3), le.AppendUint32(good[:8:8], math.Float32bits(float32(x)))); !errors.Is(err, ErrDamaged) {
			t.Errorf("%g: %v, want ErrDamaged", x, err)
		}
	}
}

// A plan of hardly any frames a second has times that fit.
func TestPlanOfOneFrame(t *testing.T) {
	p := Plan{End: 10 * time.Second, Rate: 1e-12, Count: 2}
	if at := p.At(1); at < 0 || p.pick([]time.Duration{0, time.Second})[0] != 1 {
		t.Errorf("frame 1 at %v, picks %v", at, p.pick([]time.Duration{0, time.Second}))
	}
}

// What ffmpeg says quotes the file; what it means is said without that.
func TestVerdicts(t *testing.T) {
	for said, want := range map[string]error{
		"[mov @ 0x1] moov atom not found\n/film: Invalid data found when processing input": ErrShort,
		"[mp4 @ 0x1] SECRET tag\nStream map '0:v:0' matches no streams.":                   ErrDamaged,
		"[vist#0:0/SECRET @ 0x1] Decoding requested, but no decoder found for: SECRET":     ErrUnsupported,
		"[matroska @ 0x1] SECRET":    ErrDamaged,
		"film: child: out of bounds": ErrDamaged,
	} {
		child := tail{foreign: true}
		_, _ = child.Write([]byte(said))
		err := child.judge(t.Context(), t.Context(), errors.New("exit status 1"))
		if !errors.Is(err, want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v, want %v", said, err, want)
		}
	}
}
