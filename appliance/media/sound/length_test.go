package sound

import (
	"math"
	"os"
	"testing"
)

// Sounds that others decode are measured, as well as MP3 that is decoded here.
func TestLength(t *testing.T) {
	for _, tt := range []struct {
		file, codec string
		seconds     float64
	}{
		{"../film/testdata/low.mp3", "MP3", 1.5}, {"../film/testdata/ima.wav", "WAV", 1.5}, {"../film/testdata/adpcm.wav", "WAV", 1.5},
		{"../film/testdata/gsm.wav", "WAV", 1.5}, {"testdata/s24.wav", "WAV", 0}, {"testdata/u8.wav", "WAV", 0}, {"testdata/tones-noxing.mp3", "MP3", -1},
		{"testdata/tones-24.flac", "", 0}, {"testdata/tones.ogg", "", 0},
	} {
		b, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		if tt.seconds < 0 {
			i, err := Inspect(b)
			if err != nil {
				t.Fatal(err)
			}
			tt.seconds = i.Seconds()
		}
		codec, seconds, ok := Length(b)
		if codec != tt.codec && ok || ok != (tt.seconds > 0) || math.Abs(seconds-tt.seconds) > .1 {
			t.Errorf("%s: %s, %.3f s, %v; want %s, %.3f s", tt.file, codec, seconds, ok, tt.codec, tt.seconds)
		}
		for cut := range 20 { // no length is longer than the whole's, and nothing panics
			if _, part, _ := Length(b[:len(b)*cut/20]); part > seconds+.001 {
				t.Errorf("%s cut at %d/20: %.3f s of %.3f", tt.file, cut, part, seconds)
			}
		}
	}
}
