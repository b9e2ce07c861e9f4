package picture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"ganglion/gpu/cputime"
)

// Files that were made to cost more than their bytes are worth.

// tiledTIFF is a grey picture in tiles of 8×8, packed by PackBits, which are all the same
// bytes of the file.
func tiledTIFF(side uint32, tile []byte) []byte {
	n := side / 8 * (side / 8)
	const entries = 9
	tables := uint32(8 + 2 + 12*entries + 4)
	b := le.AppendUint32([]byte("II*\x00"), 8)
	b = le.AppendUint16(b, entries)
	entry := func(tag uint16, count, v uint32) {
		b = le.AppendUint16(le.AppendUint16(b, tag), 4) // LONG
		b = le.AppendUint32(le.AppendUint32(b, count), v)
	}
	entry(256, 1, side)
	entry(257, 1, side)
	entry(258, 1, 8)
	entry(259, 1, 32773)
	entry(262, 1, 1)
	entry(322, 1, 8)
	entry(323, 1, 8)
	entry(324, n, tables)
	entry(325, n, tables+4*n)
	b = le.AppendUint32(b, 0)
	for range n {
		b = le.AppendUint32(b, tables+8*n)
	}
	for range n {
		b = le.AppendUint32(b, uint32(len(tile)))
	}
	return append(b, tile...)
}

// pixels8 are 64 pixels as PackBits has them.
var pixels8 = []byte{0x100 - 63, 200}

// Tiles that lie in one another cost as much as tiles that do not.
func TestTIFFBlocksInOneAnother(t *testing.T) {
	data := tiledTIFF(256, append(bytes.Repeat([]byte{0x80}, 1<<20), pixels8...)) // no-ops
	start := cputime.Used()
	_, err := Decode(context.Background(), data, Options{})
	if took := cputime.Used() - start; !errors.Is(err, ErrDamaged) || took > time.Second {
		t.Errorf("%v after %v, want ErrDamaged at once", err, took)
	}
	// Empty parts of a picture may well be the same bytes.
	m, err := Decode(context.Background(), tiledTIFF(256, pixels8), Options{})
	if err != nil || m.W != 256 || m.Pix[100] != 200 {
		t.Errorf("shared tiles: %v, want a picture", err)
	}
}

func TestTIFFStopsWhenCancelled(t *testing.T) {
	data := tiledTIFF(256, pixels8)
	for n := 1; n < 900; n += 100 {
		if _, err := Decode(cancelledAt(int64(n)), data, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at look %d: %v, want context.Canceled", n, err)
		}
	}
}

// A GIF of sub-blocks of one byte takes no memory while its headers are read.
func TestGIFOfTinyBlocks(t *testing.T) {
	whole := read(t, "testdata/still.gif")
	want, err := Decode(context.Background(), whole, Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := 13 + 3*(2<<(whole[10]&7))
	comment := append([]byte{0x21, 0xfe}, bytes.Repeat([]byte{1, 7}, 1<<20)...)
	data := bytes.Join([][]byte{whole[:at], append(comment, 0), tinyBlocks(t, whole[at:])}, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Verify(data); err != nil {
		t.Error(err)
	}
	if _, err := Timeline(data, Limits{}); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
	got, err := Decode(context.Background(), data, Options{})
	if err != nil || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("in blocks of one byte it is another picture: %v", err)
	}
}

// Frames that nobody unpacks take no palette of their own.
func TestGIFOfTinyFrames(t *testing.T) {
	data := append([]byte("GIF89a\x01\x00\x01\x00\x87\x00\x00"), make([]byte, 3*256)...)
	frame := []byte("!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00")
	data = append(append(data, bytes.Repeat(frame, 10_000)...), 0x3b)
	memory, _ := grown(func() {
		if err := Verify(data); err != nil {
			t.Error(err)
		}
	})
	if memory > 8<<20 {
		t.Errorf("%d bytes were allocated for 10,000 frames", memory)
	}
}

// tinyBlocks splits the data of the first frame in blocks of one byte.
func tinyBlocks(t *testing.T, b []byte) []byte {
	t.Helper()
	i := 0
	for b[i] == 0x21 {
		i = gifBlocks(b, i+2)
	}
	if b[i] != 0x2c || b[i+9]&0x80 != 0 {
		t.Fatal("the file is not what the test is about")
	}
	i += 11
	out := bytes.Clone(b[:i])
	for b[i] != 0 {
		for _, v := range b[i+1 : i+1+int(b[i])] {
			out = append(out, 1, v)
		}
		i += 1 + int(b[i])
	}
	return append(out, b[i:]...)
}

// A progressive JPEG has no samples while its coefficients are read.
func TestProgressiveMemory(t *testing.T) {
	const side = 1024
	head := []byte{17: 0}
	copy(head, "\x08\x04\x00\x04\x00\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00")
	f := jpegFile{ctx: t.Context(), adobe: -1}
	memory, _ := grown(func() {
		if err := f.frame(0xc2, head, 1<<20); err != nil {
			t.Error(err)
		}
	})
	if most := uint64(6*side*side + 1<<16); memory > most {
		t.Errorf("%d bytes for coefficients, want %d at the most", memory, most)
	}
	if _, err := f.finish(); err != nil || len(f.out.Pix) != 3*side*side {
		t.Errorf("%v, %d bytes", err, len(f.out.Pix))
	}
}

// A first frame that is the whole picture takes the memory of the picture, not that of a
// canvas and a layer too.
func TestFirstFrameMemory(t *testing.T) {
	for _, name := range []string{"moving2.gif", "moving10.png", "moving.webp", "still.gif"} {
		data := read(t, "testdata/"+name)
		m, err := Decode(context.Background(), data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for f, err := range Frames(context.Background(), data, Options{}) {
			if err != nil || !bytes.Equal(f.Image().Pix, m.Pix) {
				t.Errorf("%s: the first frame is another picture, %v", name, err)
			}
			break
		}
	}
	data := []byte("GIF89a\x00\x04\x00\x04\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x00\x04\x00\x04\x00\x02")
	data = append(append(data, bytes.Repeat([]byte{1, 0xc4}, 200)...), 0, 0x3b) // it ends too soon
	memory, _ := grown(func() { _, _ = Decode(context.Background(), data, Options{}) })
	if memory > 4<<20 {
		t.Errorf("%d bytes were allocated, want those of 1024×1024 pixels", memory)
	}
}

// Tables without codes take longer to make than to read.
func TestTablesStopWhenCancelled(t *testing.T) {
	table := append([]byte{0xff, 0xc4, 0, 19, 0}, make([]byte, 16)...)
	data := append([]byte("\xff\xd8"), bytes.Repeat(table, 100)...)
	if _, err := decodeJPEG(cancelledAt(10), data); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// What is wrong with a file is said without its bytes.
func TestErrorsDoNotRepeatBytes(t *testing.T) {
	for _, data := range []string{"SECRET and more than that", "RIFF\x20\x00\x00\x00WEBPSECR\x08\x00\x00\x00SECRET and more"} {
		if _, err := Describe([]byte(data)); err == nil || strings.Contains(err.Error(), "SECR") || strings.Contains(err.Error(), "53 45") {
			t.Errorf("%v", err)
		}
	}
}

// Decoding allocates no more memory than was told from the header.
func TestMemoryIsToldFromTheHeader(t *testing.T) {
	files := map[string][]byte{"progressive": emptyProgressive(1200)}
	m := image.NewNRGBA(image.Rect(0, 0, 1200, 1000))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i >> 7)
	}
	for name, encode := range map[string]func(io.Writer) error{
		"PNG":  func(w io.Writer) error { return png.Encode(w, m) },
		"JPEG": func(w io.Writer) error { return jpeg.Encode(w, m, nil) },
		"TIFF": func(w io.Writer) error { return tiff.Encode(w, m, nil) },
		"GIF":  func(w io.Writer) error { return gif.Encode(w, m, nil) },
		"BMP":  func(w io.Writer) error { return bmp.Encode(w, m) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		files[name] = b.Bytes()
	}
	for name, data := range files {
		info, err := Describe(data)
		if err != nil {
			t.Fatal(err)
		}
		took, _ := grown(func() { _, err = Decode(context.Background(), data, Options{}) })
		if most := uint64(info.Bytes) + 1<<20; err != nil || took > most {
			t.Errorf("%s: %d bytes, told were %d; %v", name, took, info.Bytes, err)
		}
		_, err = Decode(context.Background(), data, Options{Limits: Limits{Bytes: info.Bytes - 1}})
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v where a byte is missing, want ErrTooLarge", name, err)
		}
		if _, err = Decode(context.Background(), data, Options{Limits: Limits{Bytes: info.Bytes}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// emptyProgressive is a progressive JPEG of full chroma with one scan, which holds no differences.
func emptyProgressive(side int) []byte {
	size := []byte{byte(side >> 8), byte(side), byte(side >> 8), byte(side)}
	b := append([]byte("\xff\xd8\xff\xdb\x00\x43\x00"), bytes.Repeat([]byte{1}, 64)...)
	b = append(append(append(b, "\xff\xc2\x00\x11\x08"...), size...), "\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00"...)
	b = append(append(b, "\xff\xc4\x00\x14\x00\x01"...), make([]byte, 16)...) // one code of one bit: no difference
	b = append(b, "\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x00\x00"...)
	blocks := (side + 7) / 8
	return append(append(b, make([]byte, 3*blocks*blocks/8+1)...), "\xff\xd9"...)
}

// Kinds that take much are told from their headers.
func TestMemoryOfKinds(t *testing.T) {
	for _, tt := range []struct {
		name string
		each float64 // bytes for a pixel
	}{
		{"prog444.jpg", 15}, {"prog.jpg", 10.5}, {"restart.jpg", 7.5}, {"cmyk.jpg", 10}, {"gray.jpg", 7},
		{"gray16.tiff", 30}, {"raw.tiff", 18}, {"alpha.webp", 17}, {"lossless.webp", 14}, {"lossy-61x47.webp", 8},
		{"moving.webp", 22}, {"moving10.png", 14}, {"moving2.gif", 12}, {"rgb.png", 6},
	} {
		info, err := Describe(read(t, "testdata/"+tt.name))
		if err != nil {
			t.Error(err)
			continue
		}
		if each := float64(info.Bytes) / float64(info.W*info.H); math.Abs(each-tt.each) > 0.01 {
			t.Errorf("%s: %.2f bytes for a pixel, want %.2f", tt.name, each, tt.each)
		}
	}
	// A progressive JPEG of four components at the limit of pixels.
	head := []byte("\xff\xd8\xff\xc2\x00\x14\x08\x18\xa0\x18\xa0\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00\xff\xd9")
	if info, err := Describe(head); err != nil || info.Bytes != 18*0x18a0*0x18a0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Lossless pixels stop in their midst, lossy ones between their steps.
func TestWebPStopsWhenCancelled(t *testing.T) {
	for _, name := range []string{"lossless.webp", "lossy-61x47.webp", "alpha.webp"} {
		data := read(t, "testdata/"+name)
		looks := 0
		for n := 1; ; n++ {
			_, err := Decode(cancelledAt(int64(n)), data, Options{})
			if err == nil {
				looks = n
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, cancelled at look %d: %v, want context.Canceled", name, n, err)
			}
		}
		if looks < 2 {
			t.Errorf("%s: the context is looked at %d times", name, looks)
		}
	}
}
