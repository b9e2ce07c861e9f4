package appliance

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"strings"
	"testing"

	"ganglion/gpu/encoder"
	"ganglion/gpu/ops/ref"
)

// filmOf is an animation of n frames of w×h pixels, each so many hundredths of a second.
func filmOf(w, h, n, hundredths int) []byte {
	g := &gif.GIF{}
	for i := range n {
		m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
		m.SetColorIndex(i%w, i/w, 1)
		g.Image, g.Delay = append(g.Image, m), append(g.Delay, hundredths)
	}
	var b bytes.Buffer
	gif.EncodeAll(&b, g)
	return b.Bytes()
}

// seen is how a family sees a film without wishes: texts as they are, pieces as their rows in
// brackets.
func seen(t *testing.T, family string, data []byte, h Hints, o PictureOptions) string {
	t.Helper()
	e, err := encoder.Open(context.Background(), encoder.Config{Path: "../gpu/encoder/testdata/models/" + family + "-mmproj.gguf", Backend: ref.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a := &attachment{media: &Media{Kind: Video, Param: "videos[0]", Data: data, Hints: h}, options: o}
	if err := a.measure(FromEncoder(e, "test"), nil); err != nil {
		t.Fatalf("%s: %v", family, err)
	}
	var b strings.Builder
	for _, p := range a.layout {
		if p.Text != "" {
			b.WriteString(p.Text)
		} else {
			fmt.Fprintf(&b, "[%d]", p.Tokens)
		}
	}
	return b.String()
}

// Families see films as they were trained to: their rate, the texts around frames, at most 32
// of them.
func TestFilmPolicies(t *testing.T) {
	six := filmOf(96, 64, 24, 25) // 6 s, four frames a second
	long := filmOf(16, 16, 100, 100)
	frames := func(text string) int {
		return strings.Count(text, "[") - strings.Count(text, "[H:") - strings.Count(text, "[0m") - strings.Count(text, "[1m")
	}
	for _, tt := range []struct {
		family, want string
	}{
		// A frame a second, each behind its time, behind a sentence with their number and the
		// film's length; no tiles.
		{"smolvlm", "You are provided the following series of 6 frames from a 0:00:06 [H:MM:SS] video.\n" +
			"\nFrame from 00:00:<I>\nFrame from 00:01:<I>\nFrame from 00:02:<I>\nFrame from 00:03:<I>\nFrame from 00:04:<I>\nFrame from 00:05:<I>\n\n"},
		// Two frames a second, in pairs, each behind the mean of its two times.
		{"qwen3vl", "<0.2 seconds><I><1.2 seconds><I><2.2 seconds><I><3.2 seconds><I><4.2 seconds><I><5.2 seconds><I>"},
		// Thirty-two frames, or all that there are.
		{"gemma4", "Video:<I>[0m0.00s]" + strings.Repeat("<I>", 20) + "[0m5.00s]"},
	} {
		got := seen(t, tt.family, six, Hints{}, PictureOptions{})
		one := map[string]string{"smolvlm": "<fake_token_around_image><global-img>[16]<fake_token_around_image>", "qwen3vl": "<|vision_start|>[%d]<|vision_end|>", "gemma4": "<|image>[%d]<image|>"}[tt.family]
		for n := 1; n <= 128 && strings.Contains(one, "%d"); n++ { // rows of one frame are checked below
			if p := fmt.Sprintf(one, n); strings.Contains(got, p) {
				one = p
			}
		}
		if tt.family == "gemma4" {
			if n := frames(got); n != 24 || !strings.HasPrefix(got, "Video:"+one+"[0m0.00s]"+one) {
				t.Errorf("gemma4: %d frames: %.200s", n, got)
			}
			continue
		}
		if want := strings.ReplaceAll(tt.want, "<I>", one); got != want {
			t.Errorf("%s:\n%q, want\n%q", tt.family, got, want)
		}
	}
	for family, want := range map[string]int{"smolvlm": 32, "qwen3vl": 16, "gemma4": 32, "gemma3": 32} { // 100 s
		if n := frames(seen(t, family, long, Hints{}, PictureOptions{})); n != want {
			t.Errorf("%s sees %d pieces of a hundred seconds, want %d", family, n, want)
		}
	}
	if n := frames(seen(t, "gemma3", six, Hints{}, PictureOptions{})); n != 6 {
		t.Errorf("gemma3 sees %d frames of six seconds", n)
	}
	// What a request says counts more.
	if n := frames(seen(t, "smolvlm", six, Hints{FPS: 2, MaxFrames: 5}, PictureOptions{})); n != 5 {
		t.Errorf("of 2 a second, at most 5, it sees %d", n)
	}
}

// A frame takes no more rows than its family's policy or the request allows.
func TestRowsOfFrames(t *testing.T) {
	for _, size := range [][2]int{{96, 64}, {64, 96}, {640, 360}, {320, 320}, {16, 16}, {300, 60}} {
		film := filmOf(size[0], size[1], 1, 100)
		for _, tt := range []struct {
			family      string
			asked       int
			least, most int
		}{
			{"gemma4", 0, 35, 70}, {"gemma4", 280, 70, 280}, {"gemma4", 40, 10, 40}, {"gemma4", 1, 1, 1},
			{"qwen3vl", 0, 1, 128}, {"qwen3vl", 20, 1, 20},
		} {
			text := seen(t, tt.family, film, Hints{}, PictureOptions{MaxTokens: tt.asked})
			n := 0
			for _, part := range strings.Split(text, "[")[1:] {
				if rows := 0; strings.Contains(part, "]<") {
					fmt.Sscanf(part, "%d]", &rows)
					n = max(n, rows)
				}
			}
			if n < tt.least || n > tt.most {
				t.Errorf("%s, a frame of %v with at most %d: %d rows, want %d to %d", tt.family, size, tt.asked, n, tt.least, tt.most)
			}
		}
	}
}

// A server's own limits hold for what is measured, and the usual ones where it has none.
func TestLimitsOfFilms(t *testing.T) {
	e, err := encoder.Open(context.Background(), encoder.Config{Path: "../gpu/encoder/testdata/models/gemma3-mmproj.gguf", Backend: ref.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	data := filmOf(16, 16, 100, 100)
	for _, tt := range []struct {
		limits MediaLimits
		asked  int
		frames int // 0: refused
	}{{MediaLimits{}, 99, 64}, {MediaLimits{Frames: 8}, 99, 8}, {MediaLimits{Frames: 80}, 99, 80}, {MediaLimits{Frames: 80}, 0, 32}, {MediaLimits{Seconds: 99}, 0, 0}, {MediaLimits{Seconds: 100}, 0, 32}} {
		a := &attachment{media: &Media{Kind: Video, Param: "videos[0]", Data: data, Hints: Hints{MaxFrames: tt.asked}, Limits: tt.limits}}
		err := a.measure(FromEncoder(e, "test"), nil)
		if tt.frames == 0 {
			if err == nil || a.fault(err).Code != CodeMediaTooLarge {
				t.Errorf("%+v: %v", tt.limits, err)
			}
			continue
		}
		if err != nil || len(a.film.frames) != tt.frames {
			t.Errorf("%+v, %d asked for: %v, want %d frames", tt.limits, tt.asked, err, tt.frames)
		}
	}
}
