package film

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"ganglion/appliance/media/picture"
)

func TestHeaders(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		file         string
		kind         Kind
		w, h, frames int
		duration     time.Duration
		video, audio string
		native       bool
	}{
		{"testdata/av1.mp4", MP4, 96, 64, 8, 1000 * ms, "av01", "", false},
		{"testdata/fast.mov", MP4, 96, 64, 16, 2000 * ms, "avc1", "mp4a", false},
		{"testdata/sound.mp4", MP4, 96, 64, 16, 2000 * ms, "avc1", "mp4a", false},
		{"testdata/rotated.mp4", MP4, 64, 96, 16, 2000 * ms, "avc1", "", false},
		{"testdata/fragmented.mp4", MP4, 96, 64, 16, 2000 * ms, "avc1", "", false},
		{"testdata/live.webm", Matroska, 96, 64, 16, 2000 * ms, "V_VP9", "", false},
		{"testdata/hevc.mp4", MP4, 96, 64, 16, 2000 * ms, "hev1", "", false},
		{"testdata/bframes.mkv", Matroska, 96, 64, 16, 2000 * ms, "V_MPEG4/ISO/AVC", "", false},
		{"testdata/vp8.webm", Matroska, 96, 64, 16, 2000 * ms, "V_VP8", "", false},
		{"testdata/mpeg4.avi", AVI, 96, 64, 8, 1000 * ms, "FMP4", "", false},
		{"testdata/mjpeg.avi", AVI, 96, 64, 8, 1000 * ms, "MJPG", "", true},
		{"testdata/mjpeg.mov", MP4, 96, 64, 8, 1000 * ms, "jpeg", "", true},
		{"testdata/raw.mjpeg", MJPEG, 96, 64, 8, 320 * ms, "JPEG", "", true},
		{"../picture/testdata/moving2.gif", Moving, 40, 30, 6, 590 * ms, "GIF", "", true},
		{"../picture/testdata/moving.webp", Moving, 40, 30, 6, 590 * ms, "WebP", "", true},
		{"../picture/testdata/moving10.png", Moving, 40, 30, 6, 590 * ms, "PNG", "", true},
		{"../picture/testdata/rgb.png", Moving, 61, 47, 1, 100 * ms, "PNG", "", true},
		{media + "media/aud-a.m4a", MP4, 0, 0, 0, 1500 * ms, "", "mp4a", false},
	} {
		t.Run(filepath.Base(tt.file), func(t *testing.T) {
			i, err := Describe(read(t, tt.file), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if i.Kind != tt.kind || i.W != tt.w || i.H != tt.h || i.Frames != tt.frames || i.VideoCodec != tt.video || i.AudioCodec != tt.audio || i.Native() != tt.native {
				t.Errorf("got %s %d×%d, %d frames, %q, %q, native %t", i.Kind, i.W, i.H, i.Frames, i.VideoCodec, i.AudioCodec, i.Native())
			}
			if (i.Duration - tt.duration).Abs() > 80*ms {
				t.Errorf("lasts %v, want %v", i.Duration, tt.duration)
			}
		})
	}
}

// isTyped tells whether an error says what is wrong in the words of this package.
func isTyped(err error) bool {
	for _, e := range []error{ErrShort, ErrDamaged, ErrTooLarge, ErrUnsupported, picture.ErrShort, picture.ErrDamaged, picture.ErrTooLarge, picture.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func films(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, media+"media/vid-a.mp4", media+"media/vid-a.webm", media+"media/vid-a-lossless.mp4")
	var list []string
	for _, f := range files {
		if !strings.HasSuffix(f, ".md") {
			list = append(list, f)
		}
	}
	return list
}

// A film that is cut says so from its headers, or ends after the frames that are there.
func TestDamagedAtTwentyCuts(t *testing.T) {
	for _, file := range films(t) {
		data := read(t, file)
		for cut := range 20 {
			n := len(data) * cut / 20
			i, err := Describe(data[:n], Limits{})
			if err != nil {
				if !isTyped(err) {
					t.Errorf("%s cut at byte %d: %v is none of the package's errors", file, n, err)
				}
				continue
			}
			// What plays while it is being written is whole wherever a part of it ends.
			if !strings.Contains(file, "fragmented") && !strings.Contains(file, "live") && !strings.Contains(file, "raw") {
				t.Errorf("%s cut at byte %d of %d: no error", file, n, len(data))
			}
			if p, err := (Sampling{Rate: 4}).Plan(i, Limits{}); err == nil && i.Native() {
				for _, err := range Native(context.Background(), data[:n], i, p) {
					if err != nil && !isTyped(err) {
						t.Errorf("%s cut at byte %d: %v", file, n, err)
					}
				}
			}
		}
	}
}

func TestWrongBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, file := range films(t) {
		data := read(t, file)
		for range 200 {
			bad := append([]byte(nil), data...)
			for range 1 + r.IntN(4) {
				bad[r.IntN(min(len(bad), 2000))] = byte(r.Uint32())
			}
			i, err := Describe(bad, Limits{})
			if err != nil {
				if !isTyped(err) {
					t.Errorf("%s: %v", file, err)
				}
				continue
			}
			p, err := Sampling{Count: 4}.Plan(i, Limits{})
			if err != nil || !i.Native() {
				continue
			}
			for _, err := range Native(context.Background(), bad, i, p) {
				if err != nil && !isTyped(err) {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}

func FuzzDescribe(f *testing.F) {
	for _, file := range films(f) {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := Describe(data, Limits{})
		if err != nil {
			return
		}
		p, err := Sampling{Rate: 2}.Plan(i, Limits{})
		if err == nil && (p.Count < 1 || p.Count > 64) {
			t.Errorf("a plan of %d frames", p.Count)
		}
	})
}

// Headers that promise hours, or frames that no machine holds, cost nothing.
func TestLimitsFromHeaders(t *testing.T) {
	data := read(t, media+"media/vid-a.mp4")
	long := append([]byte(nil), data...)
	at := strings.Index(string(long), "tkhd") + 4 + 20 // its duration in version 0
	be.PutUint32(long[at:], 1<<30)
	large := append([]byte(nil), data...)
	at = strings.Index(string(large), "avc1") + 4 + 24
	for {
		if be.Uint16(large[at:]) == 96 && be.Uint16(large[at+2:]) == 64 {
			break
		}
		at += strings.Index(string(large[at:]), "avc1") + 4 + 24
	}
	be.PutUint16(large[at:], 5000)
	gif := []byte("GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x00;")
	for name, file := range map[string][]byte{"hours": long, "5000 wide": large, "GIF": gif} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Describe(file, Limits{}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", name, grown)
		}
	}
	for _, data := range [][]byte{nil, {0}, []byte("hello, world"), []byte("#EXTM3U\n/etc/passwd\n")} {
		if _, err := Describe(data, Limits{}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%q: %v, want ErrUnsupported", data, err)
		}
	}
}

func TestSampling(t *testing.T) {
	film := func(seconds float64, frames int) Info {
		return Info{Kind: MP4, W: 10, H: 10, VideoCodec: "avc1", Duration: duration(seconds), Frames: frames}
	}
	for _, tt := range []struct {
		name     string
		s        Sampling
		i        Info
		count    int
		rate     float64
		fromEach float64 // s
	}{
		{"llama.cpp", Sampling{Rate: 4}, film(2, 16), 8, 4, 0},
		{"a frame a second, capped", Sampling{Rate: 1, Max: 32}, film(100, 2500), 32, .32, 0},
		{"a frame a second", Sampling{Rate: 1, Max: 32}, film(10.4, 260), 10, 1, 0},
		{"evenly", Sampling{Count: 32}, film(64, 1600), 32, .5, 0},
		{"no more than there are", Sampling{Count: 32}, film(1, 5), 5, 5, 0},
		{"a part", Sampling{Rate: 2, Start: 5 * time.Second, End: 8 * time.Second}, film(10, 250), 6, 2, 5},
		{"a part that ends behind the film", Sampling{Rate: 2, Start: 9 * time.Second, End: time.Hour}, film(10, 250), 2, 2, 9},
		{"shorter than a frame", Sampling{Rate: 1}, film(.1, 3), 1, 1, 0},
		{"the limit", Sampling{Rate: 30}, film(600, 18000), 64, 64. / 600, 0},
		{"nothing asked for", Sampling{}, film(100, 2500), 64, .64, 0},
	} {
		p, err := tt.s.Plan(tt.i, Limits{})
		if err != nil || p.Count != tt.count || math.Abs(p.Rate-tt.rate) > 1e-9 || p.At(0) != duration(tt.fromEach) {
			t.Errorf("%s: %+v, %v, want %d at %g a second", tt.name, p, err, tt.count, tt.rate)
		}
	}
	for _, s := range []Sampling{{Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Count: -1}, {Start: -1}, {Start: 3 * time.Second}, {Start: time.Second, End: time.Second}} {
		if p, err := s.Plan(film(2, 16), Limits{}); err == nil {
			t.Errorf("%+v gives %+v", s, p)
		}
	}
	if _, err := (Sampling{}).Plan(Info{AudioCodec: "mp4a", Duration: time.Second}, Limits{}); err == nil {
		t.Error("a sound has a plan of frames")
	}
}

// The frames that ffmpeg's fps filter takes at 4 of 8 a second.
// Frames are scaled down where they have too many pixels together, and no sooner.
func TestHeld(t *testing.T) {
	for _, tt := range []struct {
		w, h, rate int
		want       [2]int
	}{
		{3840, 2160, 1, [2]int{3840, 2160}}, // 10 of them
		{3840, 2160, 2, [2]int{3265, 1837}},
		{1920, 1080, 5, [2]int{1920, 1080}},
		{1920, 1080, 8, [2]int{1825, 1026}}, // 64 of them, as many as there can be
		{4096, 4096, 8, [2]int{1369, 1369}},
		{1080, 1920, 8, [2]int{1026, 1825}},
		{4096, 1, 8, [2]int{4096, 1}},
	} {
		i := Info{VideoCodec: "x", W: tt.w, H: tt.h, Duration: 10 * time.Second, Frames: 300}
		p, err := Sampling{Rate: float64(tt.rate)}.Plan(i, Limits{})
		if err != nil || p.W != tt.want[0] || p.H != tt.want[1] || int64(p.W)*int64(p.H)*int64(p.Count) > DefaultLimits().Pixels {
			t.Errorf("%d frames of %d×%d: %d×%d, %v; want %v", p.Count, tt.w, tt.h, p.W, p.H, err, tt.want)
		}
	}
	p, err := Sampling{Rate: 1}.Plan(Info{VideoCodec: "x", W: 100, H: 50, Duration: 2 * time.Second}, Limits{Pixels: 2500})
	if err != nil || p.W != 50 || p.H != 25 {
		t.Errorf("a limit of its own: %+v, %v", p, err)
	}
}

func TestPick(t *testing.T) {
	starts := make([]time.Duration, 16)
	for i := range starts {
		starts[i] = time.Duration(i) * 125 * time.Millisecond
	}
	got := Plan{End: 2 * time.Second, Rate: 4, Count: 8}.pick(starts)
	for n, at := range got {
		if at != 2*n {
			t.Errorf("frame %d is %d of the source, want %d", n, at, 2*n)
		}
	}
}

// Films that are decoded here give the frames of the lossless source.
func TestNativeFrames(t *testing.T) {
	// The film is of small squares in full colours, which half the chroma blurs.
	for file, bound := range map[string]float64{"testdata/mjpeg.avi": 1, "testdata/mjpeg.mov": 25} {
		data := read(t, file)
		i, err := Describe(data, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Sampling{Rate: 4}.Plan(i, Limits{})
		if err != nil || p.Count != 4 {
			t.Fatalf("%s: %+v, %v", file, p, err)
		}
		n := 0
		for f, err := range Native(context.Background(), data, i, p) {
			if err != nil {
				t.Fatal(err)
			}
			want := decodePicture(t, media+"intermediates/vid-a-lossless.fps4."+string(rune('0'+n))+".png")
			sum := 0.0
			for k, v := range f.Image.Pix {
				sum += math.Abs(float64(v) - float64(want.Pix[k]))
			}
			if mean := sum / float64(len(want.Pix)); mean > bound {
				t.Errorf("%s: frame %d differs by %.1f on average", file, n, mean)
			}
			n++
		}
		if n != 4 {
			t.Errorf("%s: %d frames", file, n)
		}
	}
	data := read(t, "../picture/testdata/moving2.gif")
	i, err := Describe(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Sampling{Rate: 10}.Plan(i, Limits{}) // times 0, 100, …, 500; frames begin at 0, 100, 300, 350, 430, 550
	if err != nil || p.Count != 6 {
		t.Fatalf("%+v, %v", p, err)
	}
	column := decodePicture(t, "../picture/testdata/moving2.gif.want.png")
	want, n := []int{0, 1, 1, 2, 4, 4}, 0
	for f, err := range Native(context.Background(), data, i, p) {
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(t, f.Image, column.Crop(0, 30*want[n], 40, 30)); d > 1 {
			t.Errorf("frame %d is not number %d of the source", n, want[n])
		}
		n++
	}
}

func TestList(t *testing.T) {
	var files [][]byte
	for n := range 8 {
		files = append(files, read(t, media+"intermediates/vid-a-lossless.fps4."+string(rune('0'+n))+".png"))
	}
	i, err := DescribeList(files, 2, Limits{})
	if err != nil || i.Frames != 8 || i.Duration != 4*time.Second || i.W != 96 || !i.Native() {
		t.Fatalf("%+v, %v", i, err)
	}
	for most, want := range map[int][]int{0: {0, 1, 2, 3, 4, 5, 6, 7}, 4: {0, 2, 4, 6}} {
		p, err := Sampling{Max: most}.Plan(i, Limits{})
		if err != nil || p.Count != len(want) {
			t.Fatalf("%+v, %v, want %d frames", p, err, len(want))
		}
		n := 0
		for f, err := range Native(context.Background(), nil, i, p) {
			if err != nil {
				t.Fatal(err)
			}
			source := decodePicture(t, media+"intermediates/vid-a-lossless.fps4."+string(rune('0'+want[n]))+".png")
			if d := difference(t, f.Image, source); d > 0 {
				t.Errorf("frame %d is not number %d of the list", n, want[n])
			}
			n++
		}
	}
	for name, list := range map[string][][]byte{
		"nothing":   nil,
		"no file":   {nil},
		"two sizes": {files[0], read(t, "../picture/testdata/rgb.png")},
		"a film":    {read(t, media+"media/vid-a.mp4")},
	} {
		if _, err := DescribeList(list, 1, Limits{}); !isTyped(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DescribeList(files, math.NaN(), Limits{}); err == nil {
		t.Error("a rate that is no number is taken")
	}
}

func TestSoundHeaders(t *testing.T) {
	const ms = time.Millisecond
	amr := append([]byte("#!AMR\n"), make([]byte, 50*13)...) // 50 frames of kind 0
	wide := []byte("#!AMR-WB\n")
	for range 50 {
		wide = append(append(wide, 8<<3), make([]byte, 60)...)
	}
	for name, tt := range map[string]struct {
		data     []byte
		codec    string
		duration time.Duration
	}{
		"aud-a.m4a": {read(t, media+"media/aud-a.m4a"), "mp4a", 1500 * ms},
		"aud-a.ogg": {read(t, media+"media/aud-a.ogg"), "Vorbis", 1500 * ms},
		"sound.mp4": {read(t, "testdata/sound.mp4"), "mp4a", 1500 * ms},
		"sound.mka": {read(t, "testdata/sound.mka"), "A_OPUS", 1500 * ms},
		"sound.aac": {read(t, "testdata/sound.aac"), "AAC", 1600 * ms},
		"sound.amr": {read(t, "testdata/sound.amr"), "AMR", 1500 * ms},
		"AMR":       {amr, "AMR", 1000 * ms},
		"AMR, wide": {wide, "AMR-WB", 1000 * ms},
	} {
		i, err := DescribeSound(tt.data, Limits{})
		if err != nil || i.Codec != tt.codec || (i.Duration-tt.duration).Abs() > 70*ms {
			t.Errorf("%s: %+v, %v, want %s of %v", name, i, err, tt.codec, tt.duration)
		}
		if _, err := DescribeSound(tt.data, Limits{Duration: ms}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
		for cut := range 20 {
			if _, err := DescribeSound(tt.data[:len(tt.data)*cut/20], Limits{}); err != nil && !isTyped(err) {
				t.Errorf("%s, cut %d: %v", name, cut, err)
			}
		}
	}
	if _, err := DescribeSound(read(t, media+"media/vid-a.mp4"), Limits{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a film without sound: %v, want ErrDamaged", err)
	}
}
