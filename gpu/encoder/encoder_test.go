package encoder_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"image"
	_ "image/gif"
	_ "image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/encoder"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/pixel"
)

// recorded is one file of testdata/expected: what the reference answered.
type recorded struct {
	Family string
	Mmproj string
	Text   string `json:"text_model"`
	Cases  []recordedCase
}

type recordedCase struct {
	Name         string
	Media        []string
	PromptTokens int                `json:"prompt_tokens"`
	TextParts    [][]int32          `json:"text_part_tokens"`
	WithoutMedia string             `json:"prompt_text_without_media"`
	Prompt       string             `json:"prompt"`
	VideoText    map[string][]int32 `json:"video_text_tokens"`
	Embeddings   struct {
		File  string
		Shape []int `json:"shape_batch_tokens_dim"`
	}
}

func records(t testing.TB) []recorded {
	t.Helper()
	files, err := filepath.Glob("testdata/expected/*.json")
	if err != nil || len(files) != 9 {
		t.Fatalf("%d recorded families, error %v", len(files), err)
	}
	var all []recorded
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, r)
	}
	return all
}

// picture reads a PNG or GIF without its transparency, as the reference does.
func picture(t testing.TB, path string) pixel.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, _, err := image.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	m := pixel.New(src.Bounds().Dx(), src.Bounds().Dy())
	for y := range m.H {
		for x := range m.W {
			at := 3 * (y*m.W + x)
			switch p := src.At(src.Bounds().Min.X+x, src.Bounds().Min.Y+y).(type) {
			case interface{ RGBA() (r, g, b, a uint32) }:
				if n, ok := src.(*image.NRGBA); ok { // what transparency would darken
					copy(m.Pix[at:at+3], n.Pix[n.PixOffset(x, y):])
					continue
				}
				r, g, b, _ := p.RGBA()
				m.Pix[at], m.Pix[at+1], m.Pix[at+2] = uint8(r>>8), uint8(g>>8), uint8(b>>8)
			}
		}
	}
	return m
}

// sound reads the samples of a mono file of 16 bits.
func sound(t testing.TB, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "data") + 8
	var out []float32
	for ; at+1 < len(b); at += 2 {
		out = append(out, float32(int16(binary.LittleEndian.Uint16(b[at:])))/32768)
	}
	return out
}

// film is the recorded film as the reference samples it, with its text.
func film(t testing.TB) (frames []encoder.Frame, pictures []pixel.Image) {
	for i := range 8 {
		m := picture(t, filepath.Join("testdata/intermediates", "vid-a-lossless.fps4."+string(rune('0'+i))+".png"))
		frames, pictures = append(frames, encoder.Frame{Size: encoder.Size{W: m.W, H: m.H}}), append(pictures, m)
	}
	frames[0].Before, frames[1].Before = "Video:", "[0m0.00s]"
	return frames, pictures
}

func floats(t testing.TB, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// backends are what the recorded cases run on in this test program.
var backends = map[string]func(t testing.TB) ops.Backend{
	"ref": func(testing.TB) ops.Backend { return ref.New() },
}

func open(t testing.TB, b ops.Backend, n ops.Numerics, file string) *encoder.Encoder {
	t.Helper()
	e, err := encoder.Open(context.Background(), encoder.Config{Path: filepath.Join("testdata/models", file), Backend: b, Numerics: n, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// encode computes the pieces of one recorded medium and what it is laid out as; false
// where this program cannot decode it.
func encode(t testing.TB, e *encoder.Encoder, name string) (encoder.Layout, []encoder.Piece, bool) {
	t.Helper()
	ctx := context.Background()
	var l encoder.Layout
	var p []encoder.Piece
	var err, failed error
	switch filepath.Ext(name) {
	case ".png", ".gif":
		m := picture(t, filepath.Join("testdata/media", name))
		if l, err = e.Picture(encoder.Size{W: m.W, H: m.H}, encoder.PictureOptions{}); err == nil {
			p, failed = e.EncodePicture(ctx, m, encoder.PictureOptions{})
		}
	case ".wav":
		if strings.Contains(name, "44k") {
			return l, p, false
		}
		s := sound(t, filepath.Join("testdata/media", name))
		if l, err = e.Sound(len(s)); err == nil {
			p, failed = e.EncodeSound(ctx, s)
		}
	case ".mp4":
		frames, pictures := film(t)
		if l, err = e.Film(frames, encoder.PictureOptions{}); err == nil {
			p, failed = e.EncodeFilm(ctx, frames, pictures, encoder.PictureOptions{})
		}
	default:
		return l, p, false
	}
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return l, p, true
}

// The bounds of the recorded embeddings.
const (
	maxDifference = 0.005
	minCosine     = 0.99999
)

// checkCase compares the last piece of a recorded case with the reference's rows.
func checkCase(t *testing.T, e *encoder.Encoder, c recordedCase, done map[string]encoder.Piece) {
	var last encoder.Piece
	for _, name := range c.Media {
		if p, ok := done[name]; ok { // other cases have it, too
			last = p
			continue
		}
		l, pieces, ok := encode(t, e, name)
		if !ok {
			t.Skipf("%s is decoded elsewhere", name)
		}
		parts := slices.DeleteFunc(slices.Clone(l.Parts), func(p encoder.Part) bool { return p.N == 0 })
		if len(parts) != len(pieces) {
			t.Fatalf("%d pieces, the layout has %d", len(pieces), len(parts))
		}
		for i, p := range pieces {
			if p.N != parts[i].N || p.NX != parts[i].NX || p.NY != parts[i].NY || len(p.Rows) != p.N*e.Info().Width {
				t.Fatalf("piece %d: %d rows of %d×%d (%d values), the layout says %+v", i, p.N, p.NX, p.NY, len(p.Rows), parts[i])
			}
		}
		last = pieces[len(pieces)-1]
		done[name] = last
	}
	want := floats(t, filepath.Join("testdata/expected", c.Embeddings.File))
	want = want[len(want)-c.Embeddings.Shape[1]*c.Embeddings.Shape[2]:] // of a batch the last
	if len(want) != len(last.Rows) {
		t.Fatalf("%d values, want %d", len(last.Rows), len(want))
	}
	d, cosine := difference(last.Rows, want)
	t.Logf("max |d| %.5f, cosine %.7f", d, cosine)
	if !(d <= maxDifference && cosine >= minCosine) {
		t.Errorf("max |d| %.5f and cosine %.7f, want at most %v and at least %v", d, cosine, maxDifference, minCosine)
	}
}

func difference(got, want []float32) (largest, cosine float64) {
	var gg, ww, gw float64
	for i := range got {
		g, w := float64(got[i]), float64(want[i])
		largest = max(largest, math.Abs(g-w))
		gg, ww, gw = gg+g*g, ww+w*w, gw+g*w
	}
	return largest, gw / math.Sqrt(gg*ww)
}

// Every recorded case gives the reference's rows.
func TestRecorded(t *testing.T) {
	for name, backend := range backends {
		b := backend(t)
		defer b.Close()
		for _, r := range records(t) {
			t.Run(name+"/"+r.Family, func(t *testing.T) {
				e := open(t, b, ops.Exact, r.Mmproj)
				if raceEnabled && (r.Family == "qwen2audio" || r.Family == "ultravox") {
					t.Skip("long sounds run without the race detector")
				}
				done := map[string]encoder.Piece{}
				for _, c := range r.Cases {
					if len(c.Media) > 0 {
						t.Run(c.Name, func(t *testing.T) { checkCase(t, e, c, done) })
					}
				}
			})
		}
	}
}
