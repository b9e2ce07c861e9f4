package picture

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ganglion/gpu/cputime"
)

// whole are files of every kind and coding.
var whole = []string{
	"j2-61x47.jpg", "prog.jpg", "restart.jpg", "cmyk.jpg", "gray.jpg", "rgb.png", "rgb16-adam7.png", "palette4.png", "moving10.png",
	"still.gif", "moving2.gif", "rgb.bmp", "rle8.bmp", "tiff_lzw.tiff", "tiff_deflate.tiff", "packbits.tiff", "raw.tiff",
	"lossy-61x47.webp", "lossless.webp", "alpha.webp", "moving.webp",
}

func isTyped(err error) bool {
	return errors.Is(err, ErrShort) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnsupported)
}

// A file that ends too soon is an error, wherever it ends; what comes behind the last
// pixel's data may be missing.
func TestDamagedAtTwentyCuts(t *testing.T) {
	for _, name := range whole {
		t.Run(name, func(t *testing.T) {
			data := read(t, "testdata/"+name)
			for cut := range 20 {
				n := len(data) * cut / 20
				_, err := Decode(context.Background(), data[:n], Options{})
				switch first := strings.HasPrefix(name, "moving"); {
				case err == nil && first: // the first frame is whole
				case err == nil:
					t.Errorf("cut at byte %d of %d: no error", n, len(data))
				case !isTyped(err):
					t.Errorf("cut at byte %d: %v is none of the package's errors", n, err)
				}
				last := error(nil)
				for _, err := range Frames(context.Background(), data[:n], Options{}) {
					last = err
				}
				if last == nil && name != "moving2.gif" { // a GIF may end behind any whole frame
					t.Errorf("frames, cut at byte %d of %d: no error", n, len(data))
				}
			}
		})
	}
}

// Wrong bytes anywhere give a picture of the declared size or an error of the package,
// and never a panic.
func TestWrongBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	limits := Limits{Side: 2000, Pixels: 200_000, Frames: 20}
	for _, path := range files {
		if strings.Contains(path, "want") || strings.HasSuffix(path, ".py") {
			continue
		}
		data := read(t, path)
		for range 40 {
			bad := bytes.Clone(data)
			for range 1 + r.IntN(4) {
				bad[r.IntN(len(bad))] = byte(r.Uint32())
			}
			if m, err := Decode(context.Background(), bad, Options{Limits: limits}); err == nil && m.Check() != nil || err != nil && !isTyped(err) {
				t.Errorf("%s: %v, %v", path, m.Check(), err)
			}
			for range Frames(context.Background(), bad, Options{Limits: limits}) {
			}
			_ = Verify(bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range whole {
		f.Add(read(f, "testdata/"+name))
	}
	limits := Limits{Side: 1000, Pixels: 100_000, Frames: 10}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := Decode(context.Background(), data, Options{Limits: limits}); err == nil && m.Check() != nil || err != nil && !isTyped(err) {
			t.Errorf("%v, %v", m.Check(), err)
		}
		for range Frames(context.Background(), data, Options{Limits: limits}) {
		}
		_ = Verify(data)
	})
}

// pngOf makes a PNG with given packed data.
func pngOf(w, h uint32, packed []byte) []byte {
	chunk := func(kind string, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		b = append(append(b, kind...), body...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	return bytes.Join([][]byte{
		[]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(head, 8, 2, 0, 0, 0)), chunk("IDAT", packed), chunk("IEND", nil),
	}, nil)
}

// bomb is a PNG of 12000×12000 in 420 KB.
func bomb() []byte {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	row := make([]byte, 1+3*12000)
	for range 12000 {
		z.Write(row)
	}
	z.Close()
	return pngOf(12000, 12000, packed.Bytes())
}

// grown runs f and tells how much memory it allocated, and how much processor time it took.
func grown(f func()) (uint64, time.Duration) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cputime.Used()
	f()
	took := cputime.Used() - start
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

func TestBombsAreRefusedFromTheHeader(t *testing.T) {
	big := bomb()
	if len(big) < 380_000 || len(big) > 460_000 {
		t.Fatalf("the bomb has %d bytes", len(big))
	}
	gif := []byte("GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x00;")
	webp := []byte("RIFF\x12\x00\x00\x00WEBPVP8L\x05\x00\x00\x00\x2f\xff\xff\xff\x0f\x00")
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"PNG of 12000×12000", big, ErrTooLarge},
		{"GIF of 65535×65535", gif, ErrTooLarge},
		{"WebP of 16384×16384", webp, ErrTooLarge},
		{"JPEG that cannot hold 6000×6000", []byte("\xff\xd8\xff\xc0\x00\x11\x08\x17\x70\x17\x70\x03\x01\x22\x00\x02\x11\x00\x03\x11\x00\xff\xd9"), ErrShort},
		{"PNG that cannot hold 6000×6000", pngOf(6000, 6000, big[100:2000]), ErrShort},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			memory, took := grown(func() { _, err = Decode(context.Background(), tt.data, Options{}) })
			for range 4 { // the machine may be busy
				_, again := grown(func() { _, err = Decode(context.Background(), tt.data, Options{}) })
				took = min(took, again)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if memory > 1<<20 || took > 10*time.Millisecond {
				t.Errorf("took %d bytes and %v, want less than 1 MiB and 10 ms", memory, took)
			}
		})
	}
}

// The guard can fail: with the limit out of the way the bomb is unpacked.
func TestBombGrowsWithoutTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 432 MB")
	}
	memory, _ := grown(func() {
		if _, err := Decode(context.Background(), bomb(), Options{Limits: Limits{Pixels: 1 << 40, Bytes: 1 << 40}}); err != nil {
			t.Error(err)
		}
	})
	if memory < 400<<20 {
		t.Errorf("%d bytes were allocated", memory)
	}
}

// Frames larger than the picture, or pixels of another size than the header's, are
// refused before they take memory.
func TestHeadersThatContradictThemselves(t *testing.T) {
	webp := bytes.Clone(read(t, "testdata/alpha.webp")) // VP8X says the size, ALPH and VP8 follow
	webp[24], webp[27] = 5, 5
	gif := bytes.Clone(read(t, "testdata/still.gif"))
	at := bytes.IndexByte(gif[13+3*64:], ',') + 13 + 3*64
	binary.LittleEndian.PutUint16(gif[at+5:], 60000)
	for name, data := range map[string][]byte{"WebP": webp, "GIF": gif} {
		memory, _ := grown(func() {
			if _, err := Decode(context.Background(), data, Options{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v, want ErrDamaged", name, err)
			}
		})
		if memory > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", name, memory)
		}
	}
}

func TestNothingIsNoPicture(t *testing.T) {
	for _, data := range [][]byte{nil, {}, {0}, []byte("hello"), []byte("\x89PNG\r\n\x1a\n"), []byte("\xff\xd8\xff"), []byte("RIFF\x00\x00\x00\x00WEBP")} {
		if _, err := Decode(context.Background(), data, Options{}); !isTyped(err) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestHundredThousandTinyPictures(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	tiny := [][]byte{
		read(t, "testdata/j0-1x1.jpg"), read(t, "testdata/lossy-1x1.webp"), pngOf(1, 1, func() []byte {
			var b bytes.Buffer
			z := zlib.NewWriter(&b)
			z.Write([]byte{0, 1, 2, 3})
			z.Close()
			return b.Bytes()
		}()),
	}
	goroutines := runtime.NumGoroutine()
	memory, took := grown(func() {
		for i := range n {
			if m, err := Decode(context.Background(), tiny[i%len(tiny)], Options{}); err != nil || m.W != 1 {
				t.Fatalf("%v, %v", m, err)
			}
		}
	})
	t.Logf("%d pictures: %v, %d bytes each", n, took, memory/uint64(n))
	if per := memory / uint64(n); per > 64<<10 {
		t.Errorf("%d bytes were allocated for each", per)
	}
	now := runtime.NumGoroutine()
	for end := time.Now().Add(10 * time.Second); now > goroutines && time.Now().Before(end); now = runtime.NumGoroutine() {
		time.Sleep(time.Millisecond) // one that has said its last word may not be gone yet
	}
	if now > goroutines {
		t.Errorf("%d goroutines are left of %d", now, goroutines)
	}
}

// cancelled is a context that ends after it was asked n times.
type cancelled struct {
	context.Context
	left atomic.Int64
}

func cancelledAt(n int64) *cancelled {
	c := &cancelled{Context: context.Background()}
	c.left.Store(n)
	return c
}

func (c *cancelled) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestDecodingStopsWhenCancelled(t *testing.T) {
	large := image.NewNRGBA(image.Rect(0, 0, 700, 900))
	for i := range large.Pix {
		large.Pix[i] = uint8(i*i/7) | 3
	}
	var asPNG, asJPEG bytes.Buffer
	if err := errors.Join(png.Encode(&asPNG, large), jpeg.Encode(&asJPEG, large, nil)); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"a large PNG": asPNG.Bytes(), "a large JPEG": asJPEG.Bytes()}
	for _, name := range []string{"j2-61x47.jpg", "rgb.png", "still.gif", "rle8.bmp", "moving.webp"} {
		files[name] = read(t, "testdata/"+name)
	}
	for name, data := range files {
		looks := cancelledAt(math.MaxInt64)
		if _, err := Decode(looks, data, Options{}); err != nil {
			t.Fatal(err)
		}
		n := math.MaxInt64 - looks.left.Load()
		if n < 1 || strings.HasPrefix(name, "a large") && n < 5 {
			t.Errorf("%s: the decoder looks %d times whether anybody waits", name, n)
		}
		for at := range n {
			if _, err := Decode(cancelledAt(at), data, Options{}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cancelled at look %d of %d: %v, want context.Canceled", name, at+1, n, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	for _, err := range Frames(ctx, read(t, "testdata/moving2.gif"), Options{}) {
		if n++; n == 2 {
			cancel()
		}
		if n == 3 && !errors.Is(err, context.Canceled) {
			t.Errorf("frame 3: %v, want context.Canceled", err)
		}
	}
	cancel()
	if n != 3 {
		t.Errorf("the walk had %d steps after a cancel in the second", n)
	}
}

func TestFrameLimit(t *testing.T) {
	data := read(t, "testdata/moving2.gif")
	var last error
	for _, err := range Frames(context.Background(), data, Options{Limits: Limits{Frames: 5}}) {
		last = err
	}
	if _, err := Timeline(data, Limits{Frames: 5}); !errors.Is(err, ErrTooLarge) || !errors.Is(last, ErrTooLarge) {
		t.Errorf("%v, %v, want ErrTooLarge", last, err)
	}
}

// What the reference does not do can be switched off.
func TestAsTheReferenceReadsThem(t *testing.T) {
	o := Options{AsStored: true, OpaqueOnly: true}
	m, err := Decode(context.Background(), read(t, "testdata/exif6.jpg"), o)
	if err != nil || m.W != 29 || m.H != 21 {
		t.Errorf("%d×%d, %v, want 29×21", m.W, m.H, err)
	}
	info, err := Describe(read(t, "testdata/exif6.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	if w, h := Oriented(info, read(t, "testdata/exif6.jpg")); w != 21 || h != 29 {
		t.Errorf("upright it is %d×%d, want 21×29", w, h)
	}
	m, err = Decode(context.Background(), read(t, "testdata/alpha.png"), o)
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(t, m, stdPNG(t, "testdata/rgb.png")); d > 0 {
		t.Errorf("without transparency it differs by %d from the colours below", d)
	}
}

// Disposal 2 of APNG and 3 of GIF go back to what was there before.
func TestRestoreGoesBack(t *testing.T) {
	p := player{canvas: newCanvas(2, 1, 4, true)}
	fill := func(v uint8) func(context.Context, *canvas) error {
		return func(_ context.Context, c *canvas) error {
			for i := range c.pix {
				c.pix[i] = v | 255*uint8(i%4/3)
			}
			return nil
		}
	}
	for i, l := range []layer{
		{w: 2, h: 1, unpack: fill(1)},
		{w: 1, h: 1, x: 1, after: restore, unpack: fill(2)},
		{w: 1, h: 1, after: clearPlace, unpack: fill(3)},
		{w: 1, h: 1, x: 1, unpack: fill(4)},
	} {
		if err := p.show(context.Background(), l); err != nil {
			t.Fatal(err)
		}
		want := []string{"[1 1 1 255 1 1 1 255]", "[1 1 1 255 2 2 2 255]", "[3 3 3 255 1 1 1 255]", "[0 0 0 0 4 4 4 255]"}[i]
		if got := fmt.Sprint(p.canvas.pix); got != want {
			t.Errorf("frame %d is %s, want %s", i, got, want)
		}
		p.dispose(l)
	}
}
