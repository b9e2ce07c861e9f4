package appliance_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/gif"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/appliance/media/film"
	"ganglion/gpu/engine"
)

// What is decoded does not pile up while the encoder is busy.
func TestDecodedMediaDoNotPileUp(t *testing.T) {
	gate := make(chan struct{})
	b, enc := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{Gate: gate}, appliance.Config{})
	var wg sync.WaitGroup
	const requests = 5
	for i := range requests {
		wg.Go(func() {
			if _, err := b.try(t, showing("x", 4, picture(0, pngOf(8, 8, 20+i)))); err != nil {
				t.Error(err)
			}
		})
	}
	const most = 2
	until(t, "two to be decoded", func() bool { return appliance.Decoding() >= most })
	time.Sleep(50 * time.Millisecond) // they would be decoded and wait for the encoder by now
	if n := appliance.Decoding(); n != most {
		t.Errorf("%d items hold a place while the encoder is busy, want %d", n, most)
	}
	for range requests {
		gate <- struct{}{}
	}
	wg.Wait()
	if n := enc.Encoded(); n != requests || appliance.Decoding() != 0 {
		t.Errorf("%d were encoded, %d hold a place", n, appliance.Decoding())
	}
}

// Two plans can have the same times and pick other frames.
func TestFilmsOfOneFrame(t *testing.T) {
	g := &gif.GIF{}
	for i := range 10 {
		g.Image, g.Delay = append(g.Image, drawing(16, 8, i+1).(*image.Paletted)), append(g.Delay, 10)
	}
	var file bytes.Buffer
	gif.EncodeAll(&file, g)
	ask := func(h appliance.Hints) *appliance.Request {
		return showing("<__video__>what", 20, appliance.Media{Kind: appliance.Video, Param: "videos[0]", MIME: "image/gif", Data: file.Bytes(), Hints: h})
	}
	middle, first := appliance.Hints{MaxFrames: 1}, appliance.Hints{FPS: 10, End: 0.1}
	b, enc := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{}, appliance.Config{})
	one, other := b.complete(t, ask(middle)), b.complete(t, ask(first))
	if one.Text == other.Text || enc.Encoded() != 2 || one.Usage.PromptTokens != other.Usage.PromptTokens {
		t.Errorf("two frames give %q and %q, %d were encoded", one.Text, other.Text, enc.Encoded())
	}
}

// The frame of a film's own frames around its marker is not doubled.
func TestFramedFilms(t *testing.T) {
	b, _ := looking(t, appliancetest.Options{}, appliancetest.EncoderOptions{}, appliance.Config{})
	ask := func(prompt string) answer {
		return b.complete(t, showing(prompt, 8, appliance.Media{Kind: appliance.Video, Param: "videos[0]", MIME: "image/gif", Data: gifFilm(16, 8, 3)}))
	}
	if got, want := ask("a<img><__video__></img>b"), ask("a<__video__>b"); got.Usage.PromptTokens != want.Usage.PromptTokens || got.Text != want.Text {
		t.Errorf("%d tokens and %q, want %d and %q", got.Usage.PromptTokens, got.Text, want.Usage.PromptTokens, want.Text)
	}
}

// A film whose sound track is empty is shown without it.
func TestFilmsWithAnEmptyTrack(t *testing.T) {
	data := recordedFile(t, "media/film/testdata/sound.mp4")
	track := data[bytes.LastIndex(data, []byte("trak")):]
	for _, box := range []struct {
		kind string
		at   int // of its duration
	}{{"tkhd", 24}, {"mdhd", 20}, {"elst", 12}} {
		if i := bytes.Index(track, []byte(box.kind)); i >= 0 {
			copy(track[i+box.at:][:4], "\x00\x00\x00\x00")
		}
	}
	if _, err := film.DescribeSound(data, film.Limits{}); !errors.Is(err, film.ErrDamaged) {
		t.Fatalf("the track is whole: %v", err)
	}
	ask := func(deaf bool) answer {
		b, _ := looking(t, appliancetest.Options{Context: 4096}, appliancetest.EncoderOptions{Deaf: deaf}, appliance.Config{Film: filmDouble(t, "whole")})
		return b.complete(t, showing("<__video__>", 8, appliance.Media{Kind: appliance.Video, Param: "videos[0]", MIME: "video/mp4", Data: data}))
	}
	if got, want := ask(false), ask(true); got.Usage.PromptTokens != want.Usage.PromptTokens {
		t.Errorf("%d prompt tokens, want %d", got.Usage.PromptTokens, want.Usage.PromptTokens)
	}
}

// Waiting for the decoder of films is not on an item's own time.
func TestFilmsWaitForTheirTurn(t *testing.T) {
	data := recordedFile(t, "media/film/testdata/sound.mp4")
	show := func(decoder *film.Engine, limit time.Duration, films int) {
		b, _ := looking(t, appliancetest.Options{Context: 4096}, appliancetest.EncoderOptions{Deaf: true}, appliance.Config{Film: decoder, MediaTime: limit})
		var wg sync.WaitGroup
		for i := range films {
			wg.Go(func() {
				hints := appliance.Hints{Start: float64(i)}
				if _, err := b.try(t, showing("<__video__>", 4, appliance.Media{Kind: appliance.Video, Param: "videos[0]", MIME: "video/mp4", Data: data, Hints: hints})); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	// Two lives are more than one item's time; what is left of it beside one life is many
	// times what this machine takes to start a decoder now.
	began := time.Now()
	show(filmDouble(t, "whole"), time.Hour, 1)
	life := min(max(2*time.Second, 10*time.Since(began)), patience/4)
	show(filmDouble(t, "lasting", "GANGLION_FILM_LIFE="+life.String()), 2*life-life/10, 2)
}

// halfway is a model whose cache has lost the end of what it knew.
type halfway struct {
	*appliancetest.Scripted
	most int
	rows []engine.Row
}

func (m *halfway) Acquire(prompt []int32, salt uint64) (slot, cached int, ok bool) {
	slot, cached, ok = m.Scripted.Acquire(prompt, salt)
	if ok && cached > m.most {
		cached, _ = m.Truncate(slot, m.most)
	}
	return slot, cached, ok
}

func (m *halfway) Run(rows []engine.Row) ([]engine.Head, error) {
	m.rows = append(m.rows, rows...)
	return m.Scripted.Run(rows)
}

// No slot begins inside of a picture that is seen as a whole.
func TestPicturesBeginWhole(t *testing.T) {
	for _, whole := range []bool{true, false} {
		m, enc := &halfway{Scripted: appliancetest.NewHashed(appliancetest.Options{}), most: 10}, appliancetest.NewEncoder(appliancetest.EncoderOptions{Whole: whole})
		b := serveAs(t, appliance.WithEncoder(m, enc), m.Scripted, appliance.Config{})
		ask := func() answer { return b.complete(t, showing("ab<__image__>c", 4, picture(0, pngOf(24, 16, 1)))) }
		first := ask()
		m.rows = nil
		again := ask()
		begin := m.most // "ab<img>" are 7, the picture's rows 6
		if whole {
			begin = 7
		}
		media := 0
		for _, r := range m.rows {
			if r.Embed != nil {
				media++
			}
		}
		if again.Text != first.Text || again.Usage.CachedTokens != begin || media != 13-begin {
			t.Errorf("whole=%v: %q after %q, %d tokens in place, %d rows of the picture ran", whole, again.Text, first.Text, again.Usage.CachedTokens, media)
		}
	}
}

func TestMeasureRefusesAsStart(t *testing.T) {
	b, _ := looking(t, appliancetest.Options{Context: 64, MaxRows: 32}, appliancetest.EncoderOptions{Whole: true}, appliance.Config{})
	for _, tt := range []struct {
		prompt string
		data   []byte
		code   appliance.Code
	}{{"x", pngOf(56, 48, 1), appliance.CodeMediaTooLarge}, {"\xff", pngOf(8, 8, 1), appliance.CodeInvalidUTF8}} {
		r := showing(tt.prompt, 4, picture(0, tt.data))
		_, started := b.Start(context.Background(), r)
		_, measured := b.Measure(context.Background(), r)
		for _, err := range []error{started, measured} {
			var e *appliance.Error
			if !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("%q: %v, want %s", tt.prompt, err, tt.code)
			}
		}
	}
}

// The files of media are for the beginning of a record alone, and what a record says of
// speculation is what was done.
func TestRecordsOfMedia(t *testing.T) {
	o := appliancetest.Options{}
	m, enc := appliancetest.NewHashed(o), appliancetest.NewEncoder(appliancetest.EncoderOptions{})
	drafted, err := appliance.WithDraft(m, appliancetest.NewHashed(o))
	if err != nil {
		t.Fatal(err)
	}
	b := serveAs(t, appliance.WithEncoder(drafted, enc), m, appliance.Config{})
	r := showing("x", 4, picture(0, pngOf(8, 8, 1)))
	r.Speculate = appliance.SpeculateDraft
	b.complete(t, r)
	begun, ended := b.log.Begun()[0], b.log.Ended()[0]
	if len(begun.Files) != 1 || ended.Files != nil || len(ended.Media) != 1 {
		t.Errorf("%d files at the beginning, %d at the end", len(begun.Files), len(ended.Files))
	}
	for _, p := range ended.Params {
		if p.Name == "speculate" && p.Value != string(appliance.SpeculateOff) {
			t.Errorf("recorded %+v", p)
		}
	}
}
