package media

import (
	"testing"

	"ganglion/appliance"
)

// Limits other than the usual ones reach the item, for what is measured later.
func TestLimitsReachTheItem(t *testing.T) {
	l := DefaultLimits()
	l.Seconds, l.Frames, l.Pixels = 30, 8, 100
	got, err := ReadFiles(Files{Images: [][]byte{pngFile(10, 10)}, Videos: [][]byte{gifFile()}}, l)
	if err != nil || len(got) != 2 || got[1].Limits != (appliance.MediaLimits{Seconds: 30, Frames: 8}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = ReadFiles(Files{Images: [][]byte{pngFile(11, 10)}}, l)
	wantCode(t, "one line more", err, appliance.CodeImageTooLarge, "images[0]")
	l.Seconds = 1
	if _, err = ReadFiles(Files{Audios: [][]byte{wavFileOf(1, 1, 16, 8000, 1)}}, l); err != nil {
		t.Error(err)
	}
	_, err = ReadFiles(Files{Audios: [][]byte{wavFileOf(1, 1, 16, 8000, 1.1)}}, l)
	wantCode(t, "a sound of more than a second", err, appliance.CodeMediaTooLarge, "audios[0]")
}
