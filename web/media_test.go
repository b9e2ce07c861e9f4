package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/appliance/media"
	"ganglion/web/api"
)

// pictureOf is a PNG of w×h pixels as base64.
func pictureOf(w, h int) string {
	var b bytes.Buffer
	png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// measure asks what a prompt takes.
func (b *bench) measure(body string) appliance.Measured {
	b.t.Helper()
	r := b.do("POST", "/v1/media/measure", body)
	var m appliance.Measured
	if err := json.Unmarshal([]byte(r.body), &m); r.status != 200 || err != nil {
		b.t.Fatalf("%s: %d %s", body, r.status, r.body)
	}
	return m
}

func TestMeasureMedia(t *testing.T) {
	enc := appliancetest.NewEncoder(appliancetest.EncoderOptions{})
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{Context: 64}), encoder: enc})
	one := pictureOf(20, 9)
	m := b.measure(fmt.Sprintf(`{"prompt":"see","images":["%s"]}`, one))
	// "<img>", 3×2 rows, "</img>", "see".
	if want := 5 + 6 + 6 + 3; m.Tokens != want || m.Context != 64 || m.Room != 64-want {
		t.Errorf("%d tokens, room %d of %d; want %d tokens", m.Tokens, m.Room, m.Context, want)
	}
	if len(m.Media) != 1 || m.Media[0].Width != 20 || m.Media[0].Height != 9 || m.Media[0].Tokens != 17 || !reflect.DeepEqual(m.Media[0].Pieces, []int{6}) {
		t.Errorf("%+v", m.Media)
	}
	answer := b.answer(fmt.Sprintf(`{"prompt":"see","max_completion_tokens":1,"images":["%s"]}`, one))
	if answer.Usage.PromptTokens != m.Tokens {
		t.Errorf("measured %d tokens, the answer counts %d", m.Tokens, answer.Usage.PromptTokens)
	}
	if m := b.measure(`{"prompt":"see"}`); m.Tokens != 3 || len(m.Media) != 0 {
		t.Errorf("a prompt without media: %+v", m)
	}
	before := enc.Encoded()
	if m := b.measure(fmt.Sprintf(`{"images":["%s"]}`, pictureOf(800, 800))); m.Room != 0 || m.Tokens < 10000 {
		t.Errorf("a picture that does not fit: %+v", m)
	}
	if enc.Encoded() != before {
		t.Error("measuring has encoded")
	}
	wantError(t, b.do("POST", "/v1/media/measure", `{"images":["AAAA"]}`), 415, "unsupported_media_type", "images[0]")
	wantError(t, b.do("POST", "/v1/media/measure", fmt.Sprintf(`{"prompt":"<__image__><__image__>","images":["%s"]}`, one)), 400, "media_count_mismatch", "prompt")
}

// All choices of a request share what was read of its media, and media have no place among
// token ids.
func TestChoicesOfMedia(t *testing.T) {
	enc := appliancetest.NewEncoder(appliancetest.EncoderOptions{})
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{}), encoder: enc})
	one := pictureOf(20, 9)
	a := b.answer(fmt.Sprintf(`{"prompt":["see","look"],"n":2,"temperature":0,"max_completion_tokens":3,"images":["%s"]}`, one))
	if len(a.Choices) != 4 || enc.Encoded() != 1 {
		t.Errorf("%d choices, %d pictures were encoded", len(a.Choices), enc.Encoded())
	}
	req, err := api.DecodeCompletion(fmt.Appendf(nil, `{"prompt":"see","n":2,"images":["%s"]}`, one), media.DefaultLimits())
	if err != nil || req.Choice(0).Headers == nil || req.Choice(0).Headers != req.Choice(1).Headers {
		t.Errorf("choices do not share their headers, %v", err)
	}
	for _, prompt := range []string{`[[1,2]]`, `[[1],[2]]`} {
		r := b.complete(fmt.Sprintf(`{"prompt":%s,"images":["%s"]}`, prompt, one))
		wantError(t, r, 400, "invalid_value", "prompt")
		if !strings.Contains(r.body, "token ids") || !strings.Contains(r.body, "as text") {
			t.Errorf("%s", r.body)
		}
	}
}

// Files that a request names take of the memory for bodies.
func TestFilesTakeTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := media.DefaultLimits()
		limits.Folder = t.TempDir()
		var file bytes.Buffer
		noisy := image.NewGray(image.Rect(0, 0, 400, 400))
		noise := rand.New(rand.NewPCG(1, 2))
		for i := range noisy.Pix {
			noisy.Pix[i] = byte(noise.Uint32())
		}
		png.Encode(&file, noisy)
		if file.Len() < smallBody {
			t.Fatalf("the file has %d bytes", file.Len())
		}
		if err := os.WriteFile(filepath.Join(limits.Folder, "a.png"), file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		b := start(t, setup{pipes: true, model: appliancetest.NewHashed(appliancetest.Options{Context: 8192}), encoder: appliancetest.NewEncoder(appliancetest.EncoderOptions{}),
			config: Config{Media: limits, MaxBodies: 1 << 20, BodyTimeout: 50 * time.Millisecond}})
		const body = `{"prompt":"see","max_completion_tokens":1,"images":[{"path":"a.png"}]}`
		for _, route := range []string{"/v1/completions", "/v1/media/measure"} {
			if r := b.do("POST", route, body); r.status != 200 {
				t.Errorf("%s: %d %s", route, r.status, r.body)
			}
			if !b.server.bodies.TryAcquire(1 << 20) {
				t.Fatalf("%s: memory is still taken", route)
			}
			wantError(t, b.do("POST", route, body), 503, "queue_full", "")
			b.server.bodies.Release(1 << 20)
		}
	})
}

// The page learns from the status whether the model takes media.
func TestStatusTellsOfTheEncoder(t *testing.T) {
	status := func(b *bench) (s api.Status) {
		if r := b.do("GET", "/v1/status", ""); json.Unmarshal([]byte(r.body), &s) != nil {
			t.Fatal(r.body)
		}
		return s
	}
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{}), encoder: appliancetest.NewEncoder(appliancetest.EncoderOptions{Deaf: true})})
	if e := status(b).Encoder; e == nil || !e.Images || e.Audios || !e.Videos || e.Name != "eyes" {
		t.Errorf("the encoder is %+v", e)
	}
	if f := status(b).Films; f.State != "absent" || f.Share != 0 {
		t.Errorf("the decoder of films is %+v", f)
	}
	b = start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{}), encoder: appliancetest.NewEncoder(appliancetest.EncoderOptions{Blind: true})})
	if e := status(b).Encoder; e == nil || e.Images || e.Videos || !e.Audios {
		t.Errorf("the encoder of sound is %+v", e)
	}
	b = start(t, setup{})
	if e := status(b).Encoder; e != nil {
		t.Errorf("without one it is %+v", e)
	}
	r := b.do("POST", "/v1/media/measure", fmt.Sprintf(`{"images":["%s"]}`, pictureOf(2, 2)))
	wantError(t, r, 400, "modality_not_supported", "images")
	if !strings.Contains(r.body, "text only") {
		t.Error(r.body)
	}
}

// A file that the log keeps comes back as it was, and never as something that a browser runs.
func TestLoggedMedia(t *testing.T) {
	log := &memoryLog{}
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{}), encoder: appliancetest.NewEncoder(appliancetest.EncoderOptions{}), config: Config{Log: log}})
	log.r = b.recorder
	one := pictureOf(20, 9)
	a := b.answer(fmt.Sprintf(`{"prompt":"see","max_completion_tokens":1,"images":["%s"]}`, one))
	r := b.do("GET", "/v1/log/"+a.ID+"/media/0", "")
	if r.status != 200 || base64.StdEncoding.EncodeToString([]byte(r.body)) != one {
		t.Errorf("%d, %d bytes", r.status, len(r.body))
	}
	if got := r.header.Get("Content-Type") + " " + r.header.Get("X-Content-Type-Options"); got != "application/octet-stream nosniff" {
		t.Errorf("it goes out as %q", got)
	}
	for _, path := range []string{a.ID + "/media/1", a.ID + "/media/-1", a.ID + "/media/x", "none/media/0"} {
		wantError(t, b.do("GET", "/v1/log/"+path, ""), 404, "not_found", "")
	}
}
