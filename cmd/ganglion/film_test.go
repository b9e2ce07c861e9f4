package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/media/film"
)

// filmTestCache holds the folder "ganglion/film" with the compiled decoder, which all tests
// share, those of appliance/media/film too: compiling takes many seconds.
var filmTestCache = filepath.Join(os.TempDir(), "ganglion-film-test")

// filmRequest is a completion request with one item in a field; hints may add to it.
func filmRequest(t *testing.T, prompt, field, file string, limit int, hints map[string]any) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	item := map[string]any{"data": base64.StdEncoding.EncodeToString(b)}
	maps.Copy(item, hints)
	body, err := json.Marshal(map[string]any{"prompt": prompt, "temperature": 0, "max_completion_tokens": limit, field: []any{item}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// refusedWithoutDecoder checks the answer of a program that was built without the decoder.
func refusedWithoutDecoder(t *testing.T, a answered) {
	t.Helper()
	if a.code != http.StatusUnsupportedMediaType || !strings.Contains(a.body, "unsupported_media_type") {
		t.Errorf("status %d: %s, want unsupported_media_type", a.code, a.body)
	}
}

// The recorded film as a file: its tokens are those of the reference.
func TestFilmOverHTTP(t *testing.T) {
	p := serveRecorded(t, "smolvlm")
	defer p.stop()
	for _, c := range recordedCases(t, "smolvlm") {
		if c.Name != "video" {
			continue
		}
		request := filmRequest(t, c.Prompt, "videos", filepath.Join(recordedDir, "media", c.Media[0]), len(c.Tokens), map[string]any{"video_compat": "llama.cpp"})
		got := p.answerOf(request)
		if !film.HasModule() {
			refusedWithoutDecoder(t, got)
			return
		}
		if got.code != http.StatusOK || got.prompt != c.Count || !slices.Equal(got.ids, c.Tokens) {
			t.Errorf("%d, %d prompt tokens, %v; want %d, %v\n%s", got.code, got.prompt, got.ids, c.Count, c.Tokens, p.output())
		}
		return
	}
	t.Error("no film was recorded")
}

// Sounds that Go does not decode: the same sound as was recorded, through coders that lose
// little, begins its answer with the same token; AMR leaves less of it.
func TestFilmDecoderHears(t *testing.T) {
	p := serveRecorded(t, "ultravox")
	defer p.stop()
	var want recordedCase
	for _, c := range recordedCases(t, "ultravox") {
		if c.Name == "a" {
			want = c
		}
	}
	const films = "../../appliance/media/film/testdata/"
	for _, file := range []string{recordedDir + "/media/aud-a.m4a", recordedDir + "/media/aud-a.ogg", films + "sound.aac", films + "sound.amr"} {
		got := p.answerOf(filmRequest(t, want.Prompt, "audios", file, len(want.Tokens), nil))
		if !film.HasModule() {
			refusedWithoutDecoder(t, got)
			continue
		}
		same := strings.HasSuffix(file, ".amr") || len(got.ids) > 0 && got.ids[0] == want.Tokens[0]
		if got.code != http.StatusOK || got.prompt != want.Count || !same {
			t.Errorf("%s: %d, %d prompt tokens, %v; want %d, %v\n%s", file, got.code, got.prompt, got.ids, want.Count, want.Tokens, p.output())
		}
	}
}

// A model that sees and hears gets the frames of a film and then its sound.
func TestFilmWithSound(t *testing.T) {
	p := serveRecorded(t, "gemma4")
	defer p.stop()
	const dir = "../../appliance/media/film/testdata/"
	ask := func(file string) answered {
		return p.answerOf(filmRequest(t, "<|turn>user\n<__video__>what is the<turn|>\n<|turn>model\n", "videos", dir+file, 8, map[string]any{"max_frames": 2}))
	}
	silent, sounding := ask("fragmented.mp4"), ask("sound.mp4")
	if !film.HasModule() {
		refusedWithoutDecoder(t, silent)
		refusedWithoutDecoder(t, sounding)
		return
	}
	// The track is the recorded sound a: 38 rows, and two tokens frame them.
	if silent.code != http.StatusOK || sounding.code != http.StatusOK || sounding.prompt != silent.prompt+40 {
		t.Errorf("%d, %d prompt tokens without and %d, %d with sound\n%s%s%s", silent.code, silent.prompt, sounding.code, sounding.prompt, silent.body, sounding.body, p.output())
	}
}

// The program decodes films in a child of itself where the decoder is in it, and says
// that it is not where it is not.
func TestFilmInAChild(t *testing.T) {
	s := &settings{e: &env{executable: binaryPath(t)}, paths: appliance.Paths{Cache: filepath.Join(filmTestCache, "ganglion")}}
	e := s.filmEngine()
	defer e.Close()
	data, err := os.ReadFile("../../gpu/encoder/testdata/media/vid-a.mp4")
	if err != nil {
		t.Fatal(err)
	}
	info, err := film.Describe(data, film.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := film.Sampling{Rate: 4}.Plan(info, film.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for f, err := range e.Frames(context.Background(), data, info, plan) {
		if !film.HasModule() {
			if !errors.Is(err, film.ErrNoDecoder) {
				t.Errorf("%v, want ErrNoDecoder", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.At != time.Duration(n)*250*time.Millisecond || f.Image.W != 96 {
			t.Errorf("frame %d at %v is %d wide", n, f.At, f.Image.W)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d frames, want 8", n)
	}
}
