package appliance_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/appliance/media/film"
)

// decoderDouble is the life of a decoder's double, by what the environment says: it ends as if it were
// compiled, gives grey frames and a tone, fails, does not end, or lasts.
func decoderDouble() {
	switch mode := os.Getenv("GANGLION_FILM_DOUBLE"); {
	case mode == "":
		return
	case mode == "broken":
		os.Exit(1)
	case mode == "slow" && !slices.Contains(os.Args, "compile"):
		time.Sleep(time.Minute)
	case mode == "lasting" && slices.Contains(os.Args, "rawvideo"):
		life, err := time.ParseDuration(os.Getenv("GANGLION_FILM_LIFE"))
		if err != nil {
			os.Exit(1)
		}
		time.Sleep(life)
		os.Stdout.Write(bytes.Repeat([]byte{128}, 8*96*64*3))
	case slices.Contains(os.Args, "rawvideo"):
		os.Stdout.Write(bytes.Repeat([]byte{128}, 8*96*64*3))
	case slices.Contains(os.Args, "f32le"):
		var b []byte
		for i := range 16000 * 4 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i%40)/40))
		}
		os.Stdout.Write(b)
	}
	os.Exit(0)
}

// filmDouble is an engine whose children are doubles of a mode, with more in their environment.
func filmDouble(t *testing.T, mode string, more ...string) *film.Engine {
	t.Helper()
	e := film.NewEngine(film.Options{Cache: t.TempDir(), Command: func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(append(os.Environ(), "GANGLION_FILM_DOUBLE="+mode), more...)
		return cmd
	}})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// recordedFile is a file of tests of other packages.
func recordedFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The sound track of a film stands behind its frames, where the model hears it.
func TestFilmsSound(t *testing.T) {
	data := recordedFile(t, "media/film/testdata/sound.mp4") // 2 s of 96×64
	track, err := film.DescribeSound(data, film.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	const frame = 5 + 12*8 + 6 // "<img>", rows, "</img>"
	rows := func(samples int) int { return samples/1600 + 1 }
	first := len("Video:" + "[0m0.00s]")
	for _, tt := range []struct {
		name  string
		deaf  bool
		hints appliance.Hints
		want  int
	}{
		{"all", false, appliance.Hints{}, first + 2*frame + rows(track.Samples())},
		{"its first second", false, appliance.Hints{End: 1}, first + frame + rows(16000)},
		{"its end", false, appliance.Hints{Start: 1}, len("Video:"+"[0m1.00s]") + frame + rows(track.Samples()-16000)},
		{"behind the track", false, appliance.Hints{Start: 1.95}, len("Video:"+"[0m1.95s]") + frame},
		{"as the reference sees it", false, appliance.Hints{Reference: true}, first + 8*frame},
		{"without ears", true, appliance.Hints{}, first + 2*frame},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, enc := looking(t, appliancetest.Options{Context: 4096}, appliancetest.EncoderOptions{Deaf: tt.deaf}, appliance.Config{Film: filmDouble(t, "whole")})
			ask := func() *appliance.Request {
				return showing("<__video__>", 8, appliance.Media{Kind: appliance.Video, Param: "videos[0]", MIME: "video/mp4", Data: data, Hints: tt.hints})
			}
			got := b.complete(t, ask())
			if got.Usage.PromptTokens != tt.want {
				t.Errorf("%d prompt tokens, want %d", got.Usage.PromptTokens, tt.want)
			}
			before := enc.Encoded()
			if again := b.complete(t, ask()); again.Text != got.Text || enc.Encoded() != before {
				t.Errorf("again it is %q, want %q; encoded %d times", again.Text, got.Text, enc.Encoded()-before)
			}
		})
	}
}

func TestFilmDecoderIsNeeded(t *testing.T) {
	video := showing("x", 4, appliance.Media{Kind: appliance.Video, Param: "videos[0]", Data: recordedFile(t, "media/film/testdata/sound.mp4")})
	audio := showing("x", 4, appliance.Media{Kind: appliance.Audio, Param: "audios[0]", Data: recordedFile(t, "../gpu/encoder/testdata/media/aud-a.m4a")})
	o := appliancetest.Options{Context: 4096}
	b, _ := looking(t, o, appliancetest.EncoderOptions{}, appliance.Config{})
	b.refuse(t, video, appliance.CodeMediaType, "videos[0]")
	b.refuse(t, audio, appliance.CodeMediaType, "audios[0]")
	if s := b.Status().Films; s.State != film.Absent {
		t.Errorf("the decoder is %+v", s)
	}
	// A decoder that cannot be compiled is no fault of the file, nor the user's business.
	b, _ = looking(t, o, appliancetest.EncoderOptions{}, appliance.Config{Film: filmDouble(t, "broken")})
	if e := b.refuse(t, audio, appliance.CodeInternal, "audios[0]"); strings.Contains(e.Message, "exit") {
		t.Errorf("%q tells what is internal", e.Message)
	}
	if s := b.Status().Films; s.State != film.Failed || s.Err == nil {
		t.Errorf("the decoder is %+v", s)
	}
	b, _ = looking(t, o, appliancetest.EncoderOptions{}, appliance.Config{Film: filmDouble(t, "slow"), MediaTime: 100 * time.Millisecond})
	b.refuse(t, video, appliance.CodeMediaTimeout, "videos[0]")
	b, _ = looking(t, o, appliancetest.EncoderOptions{}, appliance.Config{Film: filmDouble(t, "whole")})
	b.complete(t, audio)
	if s := b.Status().Films; s.State != film.Ready {
		t.Errorf("the decoder is %+v", s)
	}
}
