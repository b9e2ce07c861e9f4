package appliance

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"
)

// clumsy is an encoder that panics over sizes.
type clumsy struct{ Encoder }

func (clumsy) Info() EncoderInfo { return EncoderInfo{Images: true} }

func (clumsy) Picture(int, int, PictureOptions) (Layout, error) { panic("secret") }

// A slip over the headers of a file is a fault of that file, and nothing inside is told.
func TestHeadersThatPanic(t *testing.T) {
	var b bytes.Buffer
	png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2)))
	m := &Media{Kind: Image, Param: "images[0]", Data: b.Bytes()}
	_, fault := attach(context.Background(), m, clumsy{}, nil)
	if fault == nil || fault.Code != CodeMediaDecode || fault.Param != "images[0]" || strings.Contains(fault.Message, "secret") {
		t.Fatalf("%+v", fault)
	}
	if len(measuring) != 0 {
		t.Error("a place was not given back")
	}
}

// Headers are read a few at once, and who waits for that can leave.
func TestHeadersAreReadAFewAtOnce(t *testing.T) {
	for range cap(measuring) {
		measuring <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, fault := attach(ctx, &Media{Kind: Image, Param: "images[0]"}, clumsy{}, nil)
	for range cap(measuring) {
		<-measuring
	}
	if fault != errCancelled {
		t.Errorf("%+v", fault)
	}
	if _, fault := attach(context.Background(), &Media{Kind: Image, Param: "images[0]"}, clumsy{}, nil); fault == nil || fault == errCancelled {
		t.Errorf("%+v", fault)
	}
}

// An item that takes much memory is decoded alone, and others wait for it; two such items do
// not wait for one another for ever.
func TestHeavyItemsAreDecodedAlone(t *testing.T) {
	light, err := takePlace(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan func())
	for range 2 {
		go func() {
			done, err := takePlace(context.Background(), true)
			if err != nil {
				t.Error(err)
			}
			got <- done
		}()
	}
	select {
	case <-got:
		t.Fatal("a heavy item came in beside another one")
	case <-time.After(20 * time.Millisecond):
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, all := range []bool{true, false} {
		if _, err := takePlace(ctx, all); err == nil {
			t.Error("a place was had after a cancel")
		}
	}
	light()
	for range 2 {
		done := <-got
		if len(decoding) != decoders {
			t.Errorf("%d of %d places are taken", len(decoding), decoders)
		}
		done()
	}
	if len(decoding) != 0 || len(gathering) != 0 {
		t.Error("a place was not given back")
	}
	for _, tt := range []struct {
		file  string
		heavy bool
	}{
		{"\xff\xd8\xff\xc0\x00\x11\x08\x18\xa0\x18\xa0\x03\x01\x22\x00\x02\x11\x00\x03\x11\x00", false}, // 4:2:0
		{"\xff\xd8\xff\xc2\x00\x14\x08\x18\xa0\x18\xa0\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00", true},
	} {
		a := &attachment{media: &Media{Kind: Image, Data: []byte(tt.file)}}
		if err := a.measurePicture(sized{}); err != nil || a.heavy() != tt.heavy {
			t.Errorf("% x: heavy is %v, %v", tt.file, a.heavy(), err)
		}
	}
}

// sized is an encoder that takes every picture.
type sized struct{ Encoder }

func (sized) Picture(int, int, PictureOptions) (Layout, error) { return Layout{{Tokens: 1}}, nil }
