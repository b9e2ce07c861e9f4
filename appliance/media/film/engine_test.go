package film

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/appliance/media/picture"
	"ganglion/appliance/media/sound"
	"ganglion/gpu/pixel"
)

// planned is what a film's headers say and the plan of a sampling of it.
func planned(t testing.TB, data []byte, s Sampling) (Info, Plan) {
	t.Helper()
	i, err := Describe(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(i, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return i, p
}

// all decodes the frames of a sampling.
func all(t *testing.T, e *Engine, data []byte, s Sampling) []pixel.Image {
	t.Helper()
	i, p := planned(t, data, s)
	var frames []pixel.Image
	for f, err := range e.Frames(context.Background(), data, i, p) {
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f.Image)
	}
	if len(frames) != p.Count {
		t.Fatalf("%d frames of a plan of %d", len(frames), p.Count)
	}
	return frames
}

// The same film in other containers gives the same frames.
func TestContainers(t *testing.T) {
	e := engine(t)
	want := all(t, e, read(t, media+"media/vid-a.mp4"), Sampling{Rate: 4})
	for _, file := range []string{"fragmented.mp4", "fast.mov", "sound.mp4", "rotated.mp4"} {
		t.Run(file, func(t *testing.T) {
			data := read(t, "testdata/"+file)
			i, err := Describe(data, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for n, m := range all(t, e, data, Sampling{Rate: 4}) {
				if d := difference(t, m, picture.Turn(want[n], i.turn)); d > 0 {
					t.Errorf("frame %d differs by %d", n, d)
				}
			}
		})
	}
	vp9 := all(t, e, read(t, media+"media/vid-a.webm"), Sampling{Rate: 4})
	for n, m := range all(t, e, read(t, "testdata/live.webm"), Sampling{Rate: 4}) {
		if d := difference(t, m, vp9[n]); d > 0 {
			t.Errorf("live.webm: frame %d differs by %d", n, d)
		}
	}
	for _, file := range []string{"av1.mp4", "mpeg4.avi", "hevc.mp4", "bframes.mkv", "vp8.webm"} {
		for n, m := range all(t, e, read(t, "testdata/"+file), Sampling{Rate: 4}) {
			sum := 0.0
			for k, v := range m.Pix {
				sum += math.Abs(float64(v) - float64(want[n].Pix[k]))
			}
			if mean := sum / float64(len(m.Pix)); mean > 15 {
				t.Errorf("%s: frame %d differs by %.1f on average", file, n, mean)
			}
		}
	}
}

// A part of a film has the frames that the whole has there.
func TestPart(t *testing.T) {
	e := engine(t)
	data := read(t, media+"media/vid-a-lossless.mp4")
	whole := all(t, e, data, Sampling{Rate: 8})
	part := all(t, e, data, Sampling{Rate: 8, Start: 750 * time.Millisecond, End: 1500 * time.Millisecond})
	if len(whole) != 16 || len(part) != 6 {
		t.Fatalf("%d and %d frames, want 16 and 6", len(whole), len(part))
	}
	for n, m := range part {
		if d := difference(t, m, whole[6+n]); d > 0 {
			t.Errorf("frame %d differs by %d", n, d)
		}
	}
}

// What is looked at may be shorter than half a step, or begin behind the last frame: there is
// always what is seen at the time that is asked for.
func TestShorterThanAStep(t *testing.T) {
	e := engine(t)
	for _, file := range []string{"testdata/short.mp4", "testdata/short.webm"} {
		data := read(t, file)
		first := all(t, e, data, Sampling{Rate: 25})[0]
		for _, s := range []Sampling{{Rate: 1, Max: 32}, {Rate: 0.1}, {Rate: 4}} {
			got := all(t, e, data, s)
			if difference(t, got[0], first); len(got) != 1 {
				t.Errorf("%s, %+v: %d frames", file, s, len(got))
			}
		}
		i, _ := Describe(data, Limits{})
		args := frameArgs(i, Plan{End: i.Duration, Rate: 1, Count: 1})
		for n := range args { // what shows the last frame on is needed
			args[n] = strings.Replace(args[n], "tpad=stop=-1:stop_mode=clone,", "", 1)
		}
		err := e.run(context.Background(), data, args, func(r io.Reader) (bool, error) {
			b, err := io.ReadAll(r)
			if len(b) > 0 {
				t.Errorf("%s: the filter alone gives %d bytes: the test tests nothing", file, len(b))
			}
			return false, err
		})
		if err != nil {
			t.Error(err)
		}
	}
	data := read(t, media+"media/vid-a-lossless.mp4") // 8 frames a second
	whole := all(t, e, data, Sampling{Rate: 8})
	for _, tt := range []struct {
		start time.Duration
		seen  int
	}{{1700 * time.Millisecond, 0}, {1876 * time.Millisecond, 15}, {1950 * time.Millisecond, 15}, {1999 * time.Millisecond, 15}, {1260 * time.Millisecond, 0}} {
		for _, s := range []Sampling{{Rate: 1, Start: tt.start}, {Rate: 100, Max: 1, Start: tt.start}, {Rate: 8, Start: tt.start}} {
			got, err := one(t, e, data, s)
			if err != nil {
				t.Errorf("from %v on, %g a second: %v", tt.start, s.Rate, err)
				continue
			}
			if tt.start < 1875*time.Millisecond {
				continue // the nearest may be the next
			}
			if d := difference(t, got, whole[tt.seen]); d > 0 {
				t.Errorf("from %v on, %g a second: not frame %d, by %d", tt.start, s.Rate, tt.seen, d)
			}
		}
	}
}

// one is the first frame of a sampling.
func one(t *testing.T, e *Engine, data []byte, s Sampling) (pixel.Image, error) {
	t.Helper()
	i, p := planned(t, data, s)
	for f, err := range e.Frames(context.Background(), data, i, p) {
		return f.Image, err
	}
	t.Fatal("no frame and no error")
	return pixel.Image{}, nil
}

// Frames that would be too large together come scaled down, with the decoder's own scaling.
func TestLargeFilms(t *testing.T) {
	e := engine(t)
	data := read(t, "testdata/large.mp4")
	got := all(t, e, data, Sampling{Rate: 1})
	if len(got) != 20 {
		t.Fatalf("%d frames", len(got))
	}
	for n, m := range got {
		if n > 0 && (m.W != got[0].W || m.H != got[0].H) || m.W*m.H*20 > 120_000_000 || m.W*m.H*20 < 119_000_000 {
			t.Fatalf("frame %d has %d×%d pixels", n, m.W, m.H)
		}
		for _, at := range []struct {
			x, y float64
			want [3]uint8
		}{{0.1, 0.1, [3]uint8{0, 0, 128}}, {0.5, 0.5, [3]uint8{255, 165, 0}}, {0.7, 0.3, [3]uint8{255, 165, 0}}, {0.9, 0.9, [3]uint8{0, 0, 128}}} {
			p := m.Pix[3*(int(at.y*float64(m.H))*m.W+int(at.x*float64(m.W))):][:3]
			for c, v := range p {
				if d := int(v) - int(at.want[c]); d < -4 || d > 4 {
					t.Errorf("frame %d at %v, %v: %v, want %v", n, at.x, at.y, p, at.want)
				}
			}
		}
	}
}

// Of long films the keyframe before each time is shown, as many times as needed.
func TestKeyframes(t *testing.T) {
	e := engine(t)
	data := read(t, media+"media/vid-a-lossless.mp4")
	i, p := planned(t, data, Sampling{Rate: 4})
	if slices.Contains(frameArgs(i, p), "-skip_frame") {
		t.Error("of a short film not all frames are looked at")
	}
	i.W, i.H, i.Frames, i.Duration = 1280, 720, 18000, 600*time.Second
	p.End, p.W, p.H = i.Duration, i.W, i.H
	if !slices.Contains(frameArgs(i, p), "-skip_frame") {
		t.Error("of ten minutes all frames are looked at")
	}
	n := 0
	for f, err := range e.Frames(context.Background(), data, i, p) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Image.W != 1280 || f.Image.H != 720 {
			t.Fatalf("a frame of %d×%d", f.Image.W, f.Image.H)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d frames, want 8", n)
	}
	p.Start, p.Count = 1950*time.Millisecond, 2
	n = 0
	for _, err := range e.Frames(context.Background(), data, i, p) {
		if err != nil {
			t.Fatalf("behind the last keyframe: %v", err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d frames behind the last keyframe, want 2", n)
	}
}

func TestSoundTracks(t *testing.T) {
	e := engine(t)
	want := wavSamples(read(t, media+"media/aud-a.wav"))
	for _, file := range []string{media + "media/aud-a.m4a", media + "media/aud-a.ogg", "testdata/sound.mp4", "testdata/fast.mov", "testdata/sound.mka", "testdata/sound.aac", "testdata/sound.amr",
		"testdata/low.mp3", "testdata/ima.wav", "testdata/adpcm.wav", "testdata/gsm.wav"} {
		data := read(t, file)
		i, err := DescribeSound(data, Limits{})
		if errors.Is(err, ErrUnsupported) {
			codec, seconds, _ := sound.Length(data)
			i, err = SoundOf(codec, duration(seconds), Limits{})
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		samples, err := e.Sound(context.Background(), data, i)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if n := len(samples); n != i.Samples() || n < len(want)*97/100 || n > len(want)*107/100 {
			t.Errorf("%s: %d samples, its headers say %d, the source has %d", file, n, i.Samples(), len(want))
		}
		least := math.Inf(1)
		for shift := -2400; shift <= 2400; shift += 2 {
			sum, n := 0.0, 0
			for k := 2400; k < len(want)-2400 && k+shift < len(samples); k += 3 {
				d := float64(samples[k+shift]) - want[k]
				sum += d * d
				n++
			}
			least = min(least, math.Sqrt(sum/float64(n)))
		}
		bound := .05
		if i.Codec == "AMR" || i.Codec == "MP3" || i.Codec == "WAV" {
			bound = .15 // at 8 kHz
		}
		if least > bound {
			t.Errorf("%s: rms error %.4f, want %g at most", file, least, bound)
		}
	}
	if _, err := e.Sound(context.Background(), read(t, media+"media/vid-a.mp4"), SoundInfo{Duration: time.Second}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a film without sound: %v, want ErrDamaged", err)
	}
	if _, err := e.Sound(context.Background(), read(t, media+"media/aud-a.m4a"), SoundInfo{Duration: 10 * time.Second}); !errors.Is(err, ErrShort) {
		t.Errorf("ten seconds of one and a half: %v, want ErrShort", err)
	}
}

func wavSamples(b []byte) []float64 {
	b = b[44:]
	s := make([]float64, len(b)/2)
	for i := range s {
		s[i] = float64(int16(le.Uint16(b[2*i:]))) / 32768
	}
	return s
}

// A stop of the receiver, a context and the clock end the child and leave nothing.
func TestStops(t *testing.T) {
	e := engine(t)
	data := read(t, media+"media/vid-a.mp4")
	all(t, e, data, Sampling{Rate: 1}) // compiled from here on
	i, p := planned(t, data, Sampling{Rate: 30})
	goroutines := runtime.NumGoroutine()
	n := 0
	for _, err := range e.Frames(context.Background(), data, i, p) {
		if n++; err != nil || n == 2 {
			break
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range e.Frames(ctx, data, i, p) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	for _, e.o.Time = range []time.Duration{time.Millisecond, time.Nanosecond} { // the child may not have begun
		for _, err := range e.Frames(context.Background(), data, i, p) {
			if !errors.Is(err, ErrTime) {
				t.Errorf("after %v: %v, want ErrTime", e.o.Time, err)
			}
		}
	}
	now := runtime.NumGoroutine()
	for end := time.Now().Add(2 * time.Minute); now > goroutines && time.Now().Before(end); now = runtime.NumGoroutine() {
		time.Sleep(time.Millisecond) // one that has said its last word may not be gone yet
	}
	if now > goroutines {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
}

// What is no film, or names other files, is refused by the child as well.
func TestChildRefuses(t *testing.T) {
	e := engine(t)
	for name, data := range map[string][]byte{
		"playlist": []byte("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n/etc/passwd\n#EXT-X-ENDLIST\n"),
		"concat":   []byte("ffconcat version 1.0\nfile /film\n"),
		"nothing":  {0},
		"sdp":      []byte("v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n"),
	} {
		if _, err := e.Sound(context.Background(), data, SoundInfo{Duration: time.Second}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
	// And the module sees nothing but the input.
	for _, args := range [][]string{{"-i", "/etc/passwd"}, {"-i", "http://127.0.0.1/"}, {"-i", "/../film"}, {"-i", "/film", "-f", "rawvideo", "/written"}} {
		err := e.run(context.Background(), read(t, media+"media/vid-a.mp4"), append(args, "-f", "null", "-"), func(r io.Reader) (bool, error) {
			_, err := io.Copy(io.Discard, r)
			return false, err
		})
		if err == nil && args[1] != "/../film" {
			t.Errorf("%v was done", args)
		}
	}
	if _, err := os.Stat("/written"); err == nil {
		t.Error("a file was written")
	}
}

// Films cut at twenty places: an error of the package or the frames that are there.
func TestCutFilms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts twenty children")
	}
	e := engine(t)
	data := read(t, "testdata/fragmented.mp4")
	for cut := range 20 {
		b := data[:len(data)*cut/20]
		i, err := Describe(b, Limits{})
		if err != nil {
			continue
		}
		p, err := Sampling{Rate: 4}.Plan(i, Limits{})
		if err != nil {
			continue
		}
		n, last := 0, error(nil)
		for _, err := range e.Frames(context.Background(), b, i, p) {
			if last = err; err == nil {
				n++
			}
		}
		if last == nil && n != p.Count || last != nil && !isTyped(last) {
			t.Errorf("cut %d: %d frames of %d, %v", cut, n, p.Count, last)
		}
	}
}

// A child that dies, or a command that is none, is an error and not the end.
func TestChildDies(t *testing.T) {
	data := read(t, media+"media/vid-a.mp4")
	for name, command := range map[string]func(context.Context, ...string) *exec.Cmd{
		"no program": func(ctx context.Context, _ ...string) *exec.Cmd { return exec.CommandContext(ctx, "/nonexistent") },
		"dies": func(ctx context.Context, _ ...string) *exec.Cmd {
			return exec.CommandContext(ctx, os.Args[0], "film-child", filepath.Join(t.TempDir(), "c"), "explode")
		},
	} {
		e := NewEngine(Options{Command: command, Cache: t.TempDir()})
		if _, err := e.Sound(context.Background(), data, SoundInfo{Duration: time.Second}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if s := e.Status(); s.State != Failed || s.Err == nil {
			t.Errorf("%s: %+v", name, s)
		}
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Children work in few threads on machines of many processors, whether they compile or run.
func TestChildrenHaveFewThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	told := filepath.Join(t.TempDir(), "told")
	e := NewEngine(Options{Cache: t.TempDir(), Command: func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", `echo "$2 $GOMAXPROCS" >>"$0"`, told, args[0], args[1])
	}})
	_, _ = e.Sound(context.Background(), read(t, media+"media/vid-a.mp4"), SoundInfo{Duration: time.Second}) // of nothing
	if got := string(read(t, told)); got != "compile 4\nrun 4\n" {
		t.Errorf("the children were told %q", got)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkFrames(b *testing.B) {
	e := engine(b)
	data := read(b, media+"media/vid-a.mp4")
	i, p := planned(b, data, Sampling{Rate: 4})
	for b.Loop() {
		for _, err := range e.Frames(context.Background(), data, i, p) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
