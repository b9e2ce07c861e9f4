package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ganglion/appliance/media/picture"
	"ganglion/appliance/media/sound"
	"ganglion/gpu/cpu"
	"ganglion/gpu/encoder"
	"ganglion/gpu/ops"
	"ganglion/gpu/pixel"
)

// recordedFamilies are the cases of recorded pairs whose tokens must come back.
var recordedFamilies = map[string][]string{
	"gemma3":     {"text", "a", "b", "c", "ab", "video", "fmt-jpg", "fmt-progjpg", "fmt-webp", "fmt-webp-lossless", "fmt-gif", "fmt-bmp", "fmt-gray", "fmt-pal"},
	"gemma3_f16": {"text", "a", "b", "c", "ab"},
	"qwen2vl":    {"text", "a", "b", "c", "ab", "video"},
	"qwen25vl":   {"text", "a", "b", "c", "ab", "video"},
	"qwen3vl":    {"text", "a", "b", "c", "ab", "video"},
	"ultravox":   {"text", "a", "b", "ab", "fmt-flac", "fmt-mp3", "fmt-44k-stereo"},
	"qwen2audio": {"text", "a", "b", "ab"},
	"smolvlm":    {"text", "a", "b", "c", "ab", "video"},
	"gemma4":     {"text", "a", "b", "c", "ab", "aud-a", "aud-b", "aud-ab"},
}

const recordedDir = "../../gpu/encoder/testdata"

// recordedCase is a request as it was sent to the reference, and what came back.
type recordedCase struct {
	Name   string
	Prompt string
	Media  []string
	Tokens []int32
	Count  int `json:"prompt_tokens"`
	Steps  []struct{ Logprob float64 }
	Rows   struct {
		File  string
		Shape []int `json:"shape_batch_tokens_dim"`
	} `json:"embeddings"`
}

// firstStep is how far the log-probability of the first token may be from the reference's.
const firstStep = 0.02

// lossy are the cases whose files other decoders and resamplers turn into other pixels and
// samples, and how many of their tokens come back all the same: of WebP, where the reference
// asks ffmpeg, none. Their rows are compared in TestRecordedFormats.
var lossy = map[string]int{"fmt-jpg": 1, "fmt-progjpg": 1, "fmt-webp": 0, "fmt-44k-stereo": 16}

// files are the names of a family's model and encoder.
func recordedFiles(t *testing.T, family string) (text, mmproj string) {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(recordedDir, "models"))
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := strings.CutSuffix(family, "_f16"); ok {
		return filepath.Join(abs, name+"-text.gguf"), filepath.Join(abs, name+"-mmproj-f16.gguf")
	}
	return filepath.Join(abs, family+"-text.gguf"), filepath.Join(abs, family+"-mmproj.gguf")
}

func allRecorded(t *testing.T, family string) []recordedCase {
	t.Helper()
	var recording struct{ Cases []recordedCase }
	b, err := os.ReadFile(filepath.Join(recordedDir, "expected", family+".json"))
	if err == nil {
		err = json.Unmarshal(b, &recording)
	}
	if err != nil {
		t.Fatal(err)
	}
	return recording.Cases
}

// recordedCases are those whose tokens must come back.
func recordedCases(t *testing.T, family string) (cases []recordedCase) {
	t.Helper()
	for _, c := range allRecorded(t, family) {
		if slices.Contains(recordedFamilies[family], c.Name) {
			cases = append(cases, c)
		}
	}
	if len(cases) != len(recordedFamilies[family]) {
		t.Fatalf("%s: %d of the %d cases are recorded", family, len(cases), len(recordedFamilies[family]))
	}
	return cases
}

// request is the body that sends a case.
func (c recordedCase) request(t *testing.T, end []int) string {
	t.Helper()
	body := map[string]any{"prompt": c.Prompt, "temperature": 0, "max_completion_tokens": len(c.Tokens)}
	if len(end) > 0 { // the reference was told to go on
		bias := map[string]int{}
		for _, id := range end {
			bias[strconv.Itoa(id)] = -100
		}
		body["logit_bias"] = bias
	}
	for _, name := range c.Media {
		if name == "vid-a-lossless.mp4" {
			body["videos"] = []any{c.film(t)}
			continue
		}
		b, err := os.ReadFile(filepath.Join(recordedDir, "media", name))
		if err != nil {
			t.Fatal(err)
		}
		field := "images"
		if strings.HasPrefix(name, "aud") {
			field = "audios"
		}
		list, _ := body[field].([]string)
		body[field] = append(list, base64.StdEncoding.EncodeToString(b))
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// film is the recorded film as the frames that the reference looked at, so that no decoder
// is needed.
func (c recordedCase) film(t *testing.T) any {
	t.Helper()
	var frames []string
	for n := range 8 {
		b, err := os.ReadFile(filepath.Join(recordedDir, "intermediates", fmt.Sprintf("vid-a-lossless.fps4.%d.png", n)))
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, base64.StdEncoding.EncodeToString(b))
	}
	return map[string]any{"frames": frames, "fps": 4, "video_compat": "llama.cpp"}
}

// pair are the flags that serve a recorded pair as it was recorded.
func pair(t *testing.T, family string) []string {
	t.Helper()
	text, mmproj := recordedFiles(t, family)
	return []string{"--model", text, "--mmproj", mmproj,
		"--backend", "cpu", "--numerics", "exact", "--kv", "f32", "--context", "2048", "--speculate", "off"}
}

// serveRecorded serves a recorded pair. What it compiles is shared by all tests that do.
func serveRecorded(t *testing.T, family string) *process {
	t.Helper()
	home := t.TempDir()
	p := start(t, cleanEnv(home, "XDG_CACHE_HOME="+filmTestCache), serveArgs(t, home, pair(t, family)...)...)
	p.ready()
	return p
}

// answered is what the tests look at of an answer.
type answered struct {
	code           int
	body           string
	prompt, cached int
	ids            []int32
	first          float64 // log-probability of the first of them
}

// answerOf posts a completion request whose answer tells its tokens.
func (p *process) answerOf(request string) (a answered) {
	p.t.Helper()
	a.code, _, a.body = p.request("POST", "/v1/completions", request, "Ganglion-Details", "1")
	if a.code != http.StatusOK {
		return a
	}
	var answer struct {
		Choices []struct {
			Details struct {
				Tokens []struct {
					ID      int32
					Logprob float64
				}
			}
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
		Ganglion struct {
			Cached int `json:"cached_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil {
		p.t.Fatal(err)
	}
	a.prompt, a.cached = answer.Usage.Prompt, answer.Ganglion.Cached
	for i, tok := range answer.Choices[0].Details.Tokens {
		if a.ids = append(a.ids, tok.ID); i == 0 {
			a.first = tok.Logprob
		}
	}
	return a
}

// TestRecordedMediaOverHTTP sends the recorded requests to the program: the tokens of
// prompt and answer must be the reference's. Every request is sent twice; the second one
// finds its rows encoded and its beginning in place.
func TestRecordedMediaOverHTTP(t *testing.T) {
	all := 0
	for _, names := range recordedFamilies {
		all += len(names)
	}
	if all != 62 || len(recordedFamilies) != 9 { // those of 64 whose tokens must come back
		t.Errorf("%d cases of %d families", all, len(recordedFamilies))
	}
	for family := range recordedFamilies {
		t.Run(family, func(t *testing.T) {
			p := serveRecorded(t, family)
			defer p.stop()
			end := endOfTurn(t, p)
			for _, c := range recordedCases(t, family) {
				for turn := range 2 {
					got := p.answerOf(c.request(t, end))
					if got.code != http.StatusOK {
						t.Errorf("%s: status %d: %s\n%s", c.Name, got.code, got.body, p.output())
						break
					}
					n, some := lossy[c.Name]
					if !some {
						n = len(c.Tokens)
					}
					if !some && len(got.ids) > 0 {
						if d := math.Abs(got.first - c.Steps[0].Logprob); !(d <= firstStep) {
							t.Errorf("%s: the first token's log-probability is %.4f off", c.Name, d)
						}
					}
					if got.prompt != c.Count || len(got.ids) != len(c.Tokens) || !slices.Equal(got.ids[:n], c.Tokens[:n]) {
						t.Errorf("%s: %d prompt tokens, %v; want %d, %v", c.Name, got.prompt, got.ids, c.Count, c.Tokens)
					}
					if turn == 1 && got.cached < c.Count/2 {
						t.Errorf("%s again: %d tokens in place of %d", c.Name, got.cached, c.Count)
					}
				}
			}
		})
	}
}

// Files of the folder of media stand for their bytes.
func TestMediaOfAFolder(t *testing.T) {
	home := t.TempDir()
	folder, err := filepath.Abs(filepath.Join(recordedDir, "media"))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, cleanEnv(home), serveArgs(t, home, append(pair(t, "gemma3"), "--media-dir", folder)...)...)
	p.ready()
	defer p.stop()
	ask := func(image string) answered {
		return p.answerOf(fmt.Sprintf(`{"prompt":"what is this","temperature":0,"max_completion_tokens":4,"images":[%s]}`, image))
	}
	data, err := os.ReadFile(filepath.Join(folder, "img-a.png"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := ask(fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(data))), ask(`{"path":"img-a.png"}`)
	if got.code != http.StatusOK || got.prompt != want.prompt || !slices.Equal(got.ids, want.ids) || got.cached == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ask(`{"path":"../README.md"}`); got.code != http.StatusBadRequest || !strings.Contains(got.body, "media_invalid") {
		t.Errorf("outside of the folder: %+v", got)
	}
}

// endOfTurn are the tokens that end a text.
func endOfTurn(t *testing.T, p *process) (ids []int) {
	t.Helper()
	for _, text := range []string{"<turn|>", "<eos>", "<|im_end|>", "<|endoftext|>", "<end_of_turn>", "</s>", "<|eot_id|>", "<end_of_utterance>"} {
		_, _, body, err := p.send("POST", "/v1/tokenize", fmt.Sprintf(`{"text":%q,"bos":false}`, text))
		var list struct{ Tokens []struct{ ID int } }
		if err == nil {
			err = json.Unmarshal([]byte(body), &list)
		}
		if err != nil {
			t.Fatal(err, body)
		}
		if len(list.Tokens) == 1 {
			ids = append(ids, list.Tokens[0].ID)
		}
	}
	return ids
}

// The files that hold one picture or sound in several formats give the reference's rows:
// those without loss within the bounds of all recorded rows, those that other decoders turn
// into other pixels in nearly the same direction.
func TestRecordedFormats(t *testing.T) {
	backend, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	const different = 1 // cosine alone is compared
	for _, tt := range []struct {
		family, name string
		largest      float64
		cosine       float64
	}{
		{"gemma3", "fmt-bmp", 0.005, 0.99999}, {"gemma3", "fmt-gif", 0.005, 0.99999}, {"gemma3", "fmt-gray", 0.005, 0.99999}, {"gemma3", "fmt-pal", 0.005, 0.99999},
		{"gemma3", "fmt-alpha", 0.005, 0.99999}, {"gemma3", "fmt-webp-lossless", 0.005, 0.99999},
		{"gemma3", "fmt-jpg", different, 0.999}, {"gemma3", "fmt-progjpg", different, 0.999}, {"gemma3", "fmt-exif6", different, 0.999}, {"gemma3", "fmt-webp", different, 0.999},
		{"ultravox", "fmt-flac", 0.005, 0.99999}, {"ultravox", "fmt-mp3", 0.005, 0.99999}, {"ultravox", "fmt-44k-stereo", different, 0.999},
	} {
		t.Run(tt.family+"/"+tt.name, func(t *testing.T) {
			_, mmproj := recordedFiles(t, tt.family)
			e, err := encoder.Open(t.Context(), encoder.Config{Path: mmproj, Backend: backend, Numerics: ops.Exact, Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			c := namedCase(t, tt.family, tt.name)
			rows := encodeFile(t, e, filepath.Join(recordedDir, "media", c.Media[0]))
			b, err := os.ReadFile(filepath.Join(recordedDir, "expected", c.Rows.File))
			if err != nil || len(b) != 4*len(rows) {
				t.Fatalf("%d values, the reference has %d, %v", len(rows), len(b)/4, err)
			}
			var largest, gg, ww, gw float64
			for i, x := range rows {
				g, w := float64(x), float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
				largest = max(largest, math.Abs(g-w))
				gg, ww, gw = gg+g*g, ww+w*w, gw+g*w
			}
			cosine := gw / math.Sqrt(gg*ww)
			t.Logf("max |d| %.5f, cosine %.7f", largest, cosine)
			if !(largest <= tt.largest && cosine >= tt.cosine) {
				t.Errorf("max |d| %.5f and cosine %.7f, want at most %v and at least %v", largest, cosine, tt.largest, tt.cosine)
			}
		})
	}
}

func namedCase(t *testing.T, family, name string) recordedCase {
	t.Helper()
	for _, c := range allRecorded(t, family) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no case %s of %s", name, family)
	return recordedCase{}
}

// encodeFile gives the rows of a file's last piece, read as the reference reads it: no EXIF,
// transparency dropped.
func encodeFile(t *testing.T, e *encoder.Encoder, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var pieces []encoder.Piece
	if strings.HasPrefix(filepath.Base(path), "aud") {
		var samples []float32
		if samples, err = sound.Decode(t.Context(), b, 60); err == nil {
			pieces, err = e.EncodeSound(t.Context(), samples)
		}
	} else {
		var m pixel.Image
		if m, err = picture.Decode(t.Context(), b, picture.Options{AsStored: true, OpaqueOnly: true}); err == nil {
			pieces, err = e.EncodePicture(t.Context(), m, encoder.PictureOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return pieces[len(pieces)-1].Rows
}
