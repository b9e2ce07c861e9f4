package encoder_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/encoder"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tokenizer"
)

// vocabulary is the tokenizer of a recorded text model.
func vocabulary(t testing.TB, file string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open(filepath.Join("testdata/models", file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	v, err := tokenizer.New(f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// layoutOf is the layout of a recorded medium from its sizes; false where this program
// cannot read them.
func layoutOf(t testing.TB, e *encoder.Encoder, name string) (l encoder.Layout, ok bool) {
	t.Helper()
	var err error
	switch {
	case strings.HasPrefix(name, "img-") && !strings.Contains(name, "exif"): // every picture of a letter has one size
		m := picture(t, filepath.Join("testdata/media", name[:5]+".png"))
		l, err = e.Picture(encoder.Size{W: m.W, H: m.H}, encoder.PictureOptions{})
	case strings.HasSuffix(name, ".wav"):
		l, err = e.Sound(len(sound(t, filepath.Join("testdata/media", name))))
	case strings.HasSuffix(name, ".mp4"):
		frames, _ := film(t)
		l, err = e.Film(frames, encoder.PictureOptions{})
	default:
		return l, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, true
}

// The parts of a prompt add up to the reference's tokens, and their texts are its framing.
func TestLayouts(t *testing.T) {
	b := ref.New()
	defer b.Close()
	for _, r := range records(t) {
		t.Run(r.Family, func(t *testing.T) {
			e := open(t, b, ops.Exact, r.Mmproj)
			v := vocabulary(t, r.Text)
			count := func(text string) int { return len(v.Encode(text, tokenizer.EncodeOptions{ParseSpecial: true})) }
			for _, c := range r.Cases {
				t.Run(c.Name, func(t *testing.T) {
					tokens, text := 0, ""
					if v.AddBOS() {
						bos, _ := v.BOS()
						tokens, text = 1, v.Text(bos)
					}
					pieces := strings.Split(c.Prompt, "<__media__>")
					for i, piece := range pieces {
						text += piece
						tokens += len(c.TextParts[i])
						if i == len(c.Media) {
							continue
						}
						l, ok := layoutOf(t, e, c.Media[i])
						if !ok {
							t.Skipf("%s is measured elsewhere", c.Media[i])
						}
						tokens += l.Tokens(count)
						for _, p := range l.Parts {
							text += p.Text
						}
					}
					if tokens != c.PromptTokens {
						t.Errorf("%d tokens, want %d", tokens, c.PromptTokens)
					}
					if text != c.WithoutMedia {
						t.Errorf("prompt\n%q, want\n%q", text, c.WithoutMedia)
					}
				})
			}
		})
	}
}
