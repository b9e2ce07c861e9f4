package appliance_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
)

// drawing is a picture of w×h pixels that depends on a seed.
func drawing(w, h, seed int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, w, h), nil)
	for i := range 200 {
		m.Palette = append(m.Palette, color.RGBA{uint8(i * 3), uint8(i * seed), uint8(i), 255})
	}
	for i := range m.Pix {
		m.Pix[i] = uint8((i*i + i*seed) % 200)
	}
	return m
}

func pngOf(w, h, seed int) []byte {
	var b bytes.Buffer
	png.Encode(&b, drawing(w, h, seed))
	return b.Bytes()
}

func gifOf(w, h, seed int) []byte {
	var b bytes.Buffer
	gif.Encode(&b, drawing(w, h, seed), nil)
	return b.Bytes()
}

// wavOf is a tone of n samples at 16 kHz.
func wavOf(n, seed int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), uint32(36+2*n))
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data"...)
	b = le.AppendUint32(b, uint32(2*n))
	for i := range n {
		b = le.AppendUint16(b, uint16(int16(3000*math.Sin(float64(i*seed)/20))))
	}
	return b
}

func picture(i int, data []byte) appliance.Media {
	return appliance.Media{Kind: appliance.Image, Param: fmt.Sprintf("images[%d]", i), MIME: "image/png", Data: data}
}

func sounding(i int, data []byte) appliance.Media {
	return appliance.Media{Kind: appliance.Audio, Param: fmt.Sprintf("audios[%d]", i), MIME: "audio/wav", Data: data}
}

// looking is a service over a model of noise with an encoder.
func looking(t testing.TB, o appliancetest.Options, e appliancetest.EncoderOptions, cfg appliance.Config) (*bench, *appliancetest.Encoder) {
	t.Helper()
	m, enc := appliancetest.NewHashed(o), appliancetest.NewEncoder(e)
	t.Cleanup(func() { // after the service is closed
		if !enc.Closed() {
			t.Error("the encoder was not closed")
		}
	})
	return serveAs(t, appliance.WithEncoder(m, enc), m, cfg), enc
}

// showing is a request with media.
func showing(prompt string, limit int64, media ...appliance.Media) *appliance.Request {
	r := greedy(prompt, limit)
	r.Media = media
	return r
}

func TestMediaReachTheModel(t *testing.T) {
	b, enc := looking(t, appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: true}}, appliancetest.EncoderOptions{}, appliance.Config{})
	ask := func(media ...appliance.Media) *appliance.Result {
		return b.complete(t, showing("look <__media__> here", 20, media...)).Result
	}
	one, other := ask(picture(0, pngOf(20, 9, 1))), ask(picture(0, pngOf(20, 9, 2)))
	if one.Text == other.Text {
		t.Errorf("two pictures give one text: %q", one.Text)
	}
	// BOS, "look ", "<img>", 3×2 rows, "</img>", " here".
	if want := 1 + 5 + 5 + 6 + 6 + 5; one.Usage.PromptTokens != want {
		t.Errorf("%d prompt tokens, want %d", one.Usage.PromptTokens, want)
	}
	if again := ask(picture(0, gifOf(20, 9, 1))); again.Text != one.Text || again.Usage.CachedTokens == 0 {
		t.Errorf("the same picture in another file: %q with %d tokens in place, want %q", again.Text, again.Usage.CachedTokens, one.Text)
	}
	if n := enc.Encoded(); n != 2 {
		t.Errorf("%d pictures were encoded, want 2", n)
	}
	heard := b.complete(t, showing("<__audio__>what", 20, sounding(0, wavOf(4000, 1))))
	if want := 1 + 3 + 4; heard.Usage.PromptTokens != want {
		t.Errorf("%d prompt tokens with a sound, want %d", heard.Usage.PromptTokens, want)
	}
	rec := b.log.Ended()[0]
	want := appliance.MediaNote{Param: "images[0]", MIME: "image/png", Bytes: len(pngOf(20, 9, 1)), Width: 20, Height: 9, Tokens: 17}
	if len(rec.Media) != 1 || len(rec.Media[0].SHA256) != 64 {
		t.Fatalf("recorded %+v", rec.Media)
	}
	if want.SHA256 = rec.Media[0].SHA256; rec.Media[0] != want {
		t.Errorf("recorded %+v, want %+v", rec.Media[0], want)
	}
}

// TestMediaMetamorphic: however batches are formed, whatever is in place, and whoever runs
// beside it, the text stays the same, whether the rows of a picture see each other or not.
func TestMediaMetamorphic(t *testing.T) {
	big, small, tone := pngOf(80, 48, 3), pngOf(16, 16, 4), wavOf(20000, 2)
	prompt := strings.Repeat("word ", 30) + "<__image__> and <__audio__> then <__image__>" + strings.Repeat(" more", 20)
	request := func() *appliance.Request {
		return showing(prompt, 30, picture(0, big), picture(1, small), sounding(0, tone))
	}
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole=%v", whole), func(t *testing.T) {
			e := appliancetest.EncoderOptions{Whole: whole, Grid: true}
			first, _ := looking(t, appliancetest.Options{}, e, appliance.Config{})
			want := first.complete(t, request())
			if warm := first.complete(t, request()); !same(warm.Result, want.Result) || warm.Usage.CachedTokens == 0 {
				t.Fatalf("warm %q with %d tokens in place, cold %q", warm.Text, warm.Usage.CachedTokens, want.Text)
			}
			for _, rows := range []int{60, 61, 64, 100, 512} {
				b, _ := looking(t, appliancetest.Options{MaxRows: rows}, e, appliance.Config{})
				var wg sync.WaitGroup
				for i := range 3 {
					wg.Go(func() { b.try(t, sampled(strings.Repeat("noise ", 10*i), int64(i), 60)) })
				}
				got, err := b.try(t, request())
				if err != nil || !same(got.Result, want.Result) {
					t.Errorf("%d rows: %v, %v, want %q", rows, got.Result, err, want.Text)
				}
				wg.Wait()
			}
		})
	}
}

// TestPicturesAreNotStarved: a picture that fills a batch gets one, beside sequences that
// decode all the time.
func TestPicturesAreNotStarved(t *testing.T) {
	b, _ := looking(t, appliancetest.Options{MaxRows: 60, Slots: 8}, appliancetest.EncoderOptions{Whole: true}, appliance.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for ctx.Err() == nil {
				r := sampled("endless", int64(i), 1000)
				if c, err := b.Start(ctx, r); err == nil {
					c.Wait(ctx)
				}
			}
		})
	}
	for seed := range 4 {
		b.complete(t, showing("see", 5, picture(0, pngOf(80, 48, 10+seed)), picture(1, pngOf(80, 48, 20+seed))))
	}
	cancel()
	wg.Wait()
}

func TestRowsOfMedia(t *testing.T) {
	var mu sync.Mutex
	var seen []engine.Row
	o := appliancetest.Options{Before: func(_ int, rows []engine.Row) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, rows...)
		return nil
	}}
	b, _ := looking(t, o, appliancetest.EncoderOptions{Whole: true, Grid: true}, appliance.Config{})
	b.complete(t, showing("ab<__image__>c", 3, picture(0, pngOf(24, 16, 1))))
	// 2 of text, "<img>", 3×2 rows, "</img>", 1 of text, 2 of the answer.
	for i, r := range seen[:16] {
		media := i >= 7 && i < 13
		until, at := 0, [3]int32{int32(i), int32(i), int32(i)}
		if media {
			until, at = 13, [3]int32{7, 7 + int32(i-7)/3, 7 + int32(i-7)%3}
		} else if i >= 13 {
			at = [3]int32{int32(i) - 3, int32(i) - 3, int32(i) - 3}
		}
		if (r.Token < 0) != media || (r.Embed != nil) != media || r.Until != until || !r.Turned || r.Rotary != at {
			t.Errorf("row %d: %+v, want until %d at %v", i, r, until, at)
		}
	}
}

func TestMediaAreRefused(t *testing.T) {
	b, enc := looking(t, appliancetest.Options{Context: 64, MaxRows: 32}, appliancetest.EncoderOptions{Whole: true, Deaf: true}, appliance.Config{})
	good := pngOf(16, 16, 1)
	damaged := append([]byte(nil), pngOf(600, 600, 1)...)
	damaged = damaged[:len(damaged)/2]
	b.refuse(t, showing("x", 4, sounding(0, wavOf(100, 1))), appliance.CodeModality, "audios[0]")
	b.refuse(t, showing("<__image__><__image__>", 4, picture(0, good)), appliance.CodeMediaCount, "prompt")
	b.refuse(t, showing("x", 4, picture(0, good[:20])), appliance.CodeMediaDecode, "images[0]")
	// Sizes are looked at first: nothing of this file is decoded.
	b.refuse(t, showing("x", 4, picture(0, damaged)), appliance.CodeContextLength, "prompt")
	b.refuse(t, showing("x", 4, picture(0, pngOf(56, 48, 1))), appliance.CodeMediaTooLarge, "images")
	cut := append([]byte(nil), good...)
	cut[len(cut)-20] ^= 1
	b.refuse(t, showing("x", 4, picture(0, cut)), appliance.CodeMediaDecode, "images[0]")
	r := showing("x", 4, picture(0, good))
	r.PromptTokens = []int32{1}
	b.refuse(t, r, appliance.CodeInvalid, "prompt")
	if n := enc.Encoded(); n != 0 {
		t.Errorf("%d items were encoded", n)
	}
	b.complete(t, showing("x", 4, picture(0, good))) // every place was given back
}

func TestEncoderFails(t *testing.T) {
	b, _ := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{Err: errors.New("no power")}, appliance.Config{QueueMax: 1})
	for range 10 {
		e := b.refuse(t, showing("x", 4, picture(0, pngOf(8, 8, 1))), appliance.CodeInternal, "images[0]")
		if strings.Contains(e.Message, "power") {
			t.Errorf("%q tells what is internal", e.Message)
		}
	}
	b.complete(t, greedy("x", 4))
}

func TestEncodingIsCancelled(t *testing.T) {
	gate := make(chan struct{})
	b, enc := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{Gate: gate}, appliance.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			_, err := b.Start(ctx, showing("x", 4, picture(0, pngOf(8, 8, i))))
			var e *appliance.Error
			if !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
				t.Errorf("%v", err)
			}
		})
	}
	b.complete(t, greedy("text goes on meanwhile", 4))
	cancel()
	wg.Wait()
	// Two requests with one picture: it is encoded once.
	for range 2 {
		wg.Go(func() { b.complete(t, showing("x", 4, picture(0, pngOf(8, 8, 9)))) })
	}
	gate <- struct{}{}
	wg.Wait()
	if n := enc.Encoded(); n != 1 {
		t.Errorf("encoded %d times", n)
	}
	// Closing in a hurry ends what is being encoded.
	wg.Go(func() {
		if _, err := b.Start(context.Background(), showing("x", 4, picture(0, pngOf(8, 8, 10)))); err == nil {
			t.Error("it went on")
		}
	})
	for b.Status().Queued == 0 {
		time.Sleep(time.Millisecond)
	}
	hurry, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	b.Close(hurry)
	wg.Wait()
}

// gifFilm is an animation of n frames, a second each.
func gifFilm(w, h, n int) []byte {
	g := &gif.GIF{}
	for i := range n {
		g.Image = append(g.Image, drawing(w, h, i+1).(*image.Paletted))
		g.Delay = append(g.Delay, 100)
	}
	var b bytes.Buffer
	gif.EncodeAll(&b, g)
	return b.Bytes()
}

// The log says how many frames were seen, and what was wished, under the names of a
// descriptor.
func TestFilmsAreNoted(t *testing.T) {
	b, _ := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{}, appliance.Config{})
	for _, tt := range []struct {
		hints  appliance.Hints
		frames int
		want   string
	}{
		{appliance.Hints{}, 12, "null"},
		{appliance.Hints{FPS: 0.5, Start: 2, End: 10}, 4, `{"fps":0.5,"start":2,"end":10}`},
		{appliance.Hints{MaxFrames: 2, MaxTokens: 85, Reference: true}, 2, `{"max_tokens":85,"max_frames":2,"video_compat":"llama.cpp"}`},
	} {
		b.complete(t, showing("x", 1, appliance.Media{Kind: appliance.Video, Param: "videos[0]", Data: gifFilm(16, 8, 12), Hints: tt.hints}))
		ended := b.log.Ended()
		note := ended[len(ended)-1].Media[0]
		if got, err := json.Marshal(note.Hints); err != nil || string(got) != tt.want || note.Frames != tt.frames {
			t.Errorf("%+v: noted %d frames, %s, %v; want %d, %s", tt.hints, note.Frames, got, err, tt.frames, tt.want)
		}
	}
}

func TestFilms(t *testing.T) {
	b, enc := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{Grid: true}, appliance.Config{})
	film := func(h appliance.Hints) *appliance.Request {
		return showing("<__video__>what", 20, appliance.Media{Kind: appliance.Video, Param: "videos[0]", MIME: "image/gif", Data: gifFilm(16, 8, 12), Hints: h})
	}
	const frame = 5 + 2 + 6 // "<img>", 2×1 rows, "</img>"
	marks := func(texts ...string) int { return len(strings.Join(texts, "")) }
	for _, tt := range []struct {
		name  string
		hints appliance.Hints
		want  int
	}{
		{"policy", appliance.Hints{}, 12*frame + marks("Video:", "[0m0.00s]", "[0m5.00s]", "[0m10.00s]")},
		{"two frames", appliance.Hints{MaxFrames: 2}, 2*frame + marks("Video:", "[0m0.00s]", "[0m6.00s]")},
		{"every other second", appliance.Hints{FPS: 0.5}, 6*frame + marks("Video:", "[0m0.00s]", "[0m6.00s]", "[0m10.00s]")},
		{"a part", appliance.Hints{Start: 1, End: 3}, 2*frame + marks("Video:", "[0m1.00s]")},
		{"as the reference sees it", appliance.Hints{Reference: true, End: 1}, 4*frame + marks("Video:", "[0m0.00s]")},
	} {
		before := enc.Encoded()
		got := b.complete(t, film(tt.hints))
		if got.Usage.PromptTokens != tt.want+4 {
			t.Errorf("%s: %d prompt tokens, want %d", tt.name, got.Usage.PromptTokens, tt.want+4)
		}
		if again := b.complete(t, film(tt.hints)); again.Text != got.Text || again.Usage.CachedTokens == 0 || enc.Encoded() == before {
			t.Errorf("%s again: %q with %d tokens in place, want %q", tt.name, again.Text, again.Usage.CachedTokens, got.Text)
		}
	}
	list := appliance.Media{Kind: appliance.Video, Param: "videos[0]", Frames: []appliance.Media{{Data: pngOf(16, 8, 1)}, {Data: pngOf(16, 8, 2)}}}
	if got := b.complete(t, showing("<__video__>", 4, list)); got.Usage.PromptTokens != 2*frame+marks("Video:", "[0m0.00s]") {
		t.Errorf("a list of frames: %d prompt tokens", got.Usage.PromptTokens)
	}
	b.refuse(t, showing("x", 4, appliance.Media{Kind: appliance.Video, Param: "videos[0]", Data: []byte("\x00\x00\x00\x18ftypisom\x00\x00\x00\x00")}), appliance.CodeMediaDecode, "videos[0]")
	list.Frames[1].Data = pngOf(8, 8, 2)
	b.refuse(t, showing("x", 4, list), appliance.CodeMediaDecode, "videos[0]")
	for param, h := range map[string]appliance.Hints{
		"videos[0].start": {Start: 100}, "videos[0].end": {Start: 3, End: 3},
	} {
		b.refuse(t, film(h), appliance.CodeInvalid, param)
	}
	b.refuse(t, film(appliance.Hints{Start: 100, End: 200}), appliance.CodeInvalid, "videos[0].start")
}
