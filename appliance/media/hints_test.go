package media

import (
	"strings"
	"testing"

	"ganglion/appliance"
)

// Wishes of a descriptor are read, and what cannot be is refused by its name.
func TestHints(t *testing.T) {
	for text, want := range map[string]appliance.Hints{
		`{"data":"X","detail":"low"}`: {MaxTokens: 85}, `{"data":"X","detail":"low","max_tokens":300}`: {MaxTokens: 300},
		`{"type":"image_url","image_url":{"url":"data:;base64,X","detail":"low"}}`: {MaxTokens: 85},
		`{"source":{"data":"X","fps":2.5},"max_frames":9,"start":0,"end":1.5}`:     {FPS: 2.5, MaxFrames: 9, End: 1.5},
		`{"data":"X","fps":null,"other":"x"}`:                                      {},
	} {
		items, err := read(appliance.Image, strings.ReplaceAll(text, "X", b64(pngFile(2, 2))))
		if err != nil || items[0].Hints != want {
			t.Errorf("%s: %+v, %v, want %+v", text, items, err, want)
		}
	}
	bad := []struct{ wish, name, said string }{
		{`"detail":"none"`, "detail", "must be low, high or auto"}, {`"detail":3`, "detail", "must be low, high or auto"}, {`"video_compat":"x"`, "video_compat", "must be llama.cpp"},
		{`"max_tokens":0`, "max_tokens", "must be an integer from 1 to 65536"}, {`"max_tokens":1.5`, "max_tokens", "must be an integer from 1 to 65536"},
		{`"max_frames":"3"`, "max_frames", "must be an integer from 1 to 65536"}, {`"max_frames":65537`, "max_frames", "must be an integer from 1 to 65536"},
		{`"fps":-1`, "fps", "must be a number from 0 to 240"}, {`"fps":240.5`, "fps", "must be a number from 0 to 240"}, {`"fps":1e-9`, "fps", "must be 0.001 or more"},
		{`"start":true`, "start", "must be a number from 0 to 1000000"}, {`"end":1e9`, "end", "must be a number from 0 to 1000000"},
	}
	for _, tt := range bad {
		_, err := read(appliance.Image, `[{"data":"`+b64(pngFile(2, 2))+`",`+tt.wish+`}]`)
		wantCode(t, tt.wish, err, appliance.CodeInvalid, "images[0]."+tt.name)
		if want := "images[0]." + tt.name + ": " + tt.said; err != nil && err.Error() != want {
			t.Errorf("%s: %q, want %q", tt.wish, err, want)
		}
	}
}
