package appliance

import (
	"fmt"
	"strings"
	"testing"

	"ganglion/appliance/media/film"
	"ganglion/appliance/media/picture"
	"ganglion/gpu/encoder"
)

// TestPlacement shows each part of a prompt in brackets, an item as its kind and number.
func TestPlacement(t *testing.T) {
	framed := Layout{{Text: "<img>"}, {Tokens: 1}, {Text: "</img>"}}
	seen := Layout{{Text: "Video:"}, {Text: "<img>"}, {Tokens: 1}, {Text: "</img>"}, {Text: "[0m0.00s]"}}
	info := EncoderInfo{Placeholders: map[MediaKind][]string{Image: {"<image>", "<img>"}, Audio: {"<|AUDIO|>"}}}
	const i, a, v = Image, Audio, Video
	for _, tt := range []struct {
		name, prompt string
		media        []MediaKind
		want         string
	}{
		{"own markers", "x<__image__>y<__audio__>z", []MediaKind{i, a}, "[x]i0[y]a1[z]"},
		{"by kind, not by order", "<__audio__> <__image__>", []MediaKind{i, a}, "[]a1[ ]i0[]"},
		{"any kind takes the next", "<__media__><__media__><__media__>", []MediaKind{i, a, v}, "[]i0[]a1[]v2[]"},
		{"any kind takes what is left", "<__image__><__media__>", []MediaKind{i, i}, "[]i0[]i1[]"},
		{"a frame is not doubled", "x<img><__image__></img>y", []MediaKind{i}, "[x]i0[y]"},
		{"half a frame is not doubled", "x<img><__image__>y", []MediaKind{i}, "[x]i0[y]"},
		{"the frame of a film's frames is not doubled", "x<img><__video__></img>y", []MediaKind{v}, "[x]v0[y]"},
		{"nor what stands around a film", "xVideo:<__video__>[0m0.00s]y", []MediaKind{v}, "[x]v0[y]"},
		{"two frames", "<img><__image__></img><img><__image__></img>", []MediaKind{i, i}, "[]i0[]i1[]"},
		{"the model's placeholder", "x<image>y", []MediaKind{i}, "[x]i0[y]"},
		{"the frame's begin as placeholder", "x<img>y", []MediaKind{i}, "[x]i0[y]"},
		{"the frame as placeholder", "x<img></img>y", []MediaKind{i}, "[x]i0[y]"},
		{"a placeholder of another kind is text", "<|AUDIO|><image>", []MediaKind{i}, "[<|AUDIO|>]i0[]"},
		{"placeholders beside own markers are text", "<image><__image__>", []MediaKind{i}, "[<image>]i0[]"},
		{"markers of others", "[IMG] [img] [img-12]", []MediaKind{i, i, i}, "[]i0[ ]i1[ ]i2[]"},
		{"no numbered marker", "[img-] [img-x] [img-1", []MediaKind{i}, "[]i0[[img-] [img-x] [img-1]"},
		{"no marker: behind the user's last turn", "<|im_start|>user\na<|im_end|><|im_start|>user\nb", []MediaKind{i, a}, "[<|im_start|>user\na<|im_end|><|im_start|>user\n]i0a1[b]"},
		{"no marker, no turn: in front", "what is this", []MediaKind{i, a, v}, "[]i0a1v2[what is this]"},
		{"empty", "", []MediaKind{a}, "[]a0[]"},
		{"too few markers", "<__image__>", []MediaKind{i, i}, "media_count_mismatch"},
		{"too many markers", "<__media__><__media__>", []MediaKind{i}, "media_count_mismatch"},
		{"the wrong kind", "<__audio__>", []MediaKind{i}, "media_count_mismatch"},
		{"too many placeholders", "<image><image>", []MediaKind{i}, "media_count_mismatch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var media []Media
			var frames [][]frame
			for _, kind := range tt.media {
				media = append(media, Media{Kind: kind})
				frames = append(frames, map[MediaKind][]frame{i: {frameOf(framed)}, a: {frameOf(Layout{{Tokens: 2}})}, v: {frameOf(framed), frameOf(seen)}}[kind])
			}
			parts, fault := placeMedia(tt.prompt, media, frames, info)
			got := ""
			if fault != nil {
				got = string(fault.Code)
			}
			for _, p := range parts {
				if p.item < 0 {
					got += "[" + p.text + "]"
				} else {
					got += fmt.Sprintf("%c%d", media[p.item].Kind[0], p.item)
				}
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	_, fault := placeMedia("<__image__>", []Media{{Kind: Image}, {Kind: Image}, {Kind: Audio}}, make([][]frame, 3), info)
	if fault == nil || !strings.Contains(fault.Message, "1 marker") || !strings.Contains(fault.Message, "2 in images, 1 in audios") {
		t.Errorf("%v", fault)
	}
	_, fault = placeMedia("<__audio__>", []Media{{Kind: Video}}, make([][]frame, 1), info)
	if fault == nil || fault.Message != "the prompt has 1 marker for audios, the request has 1 in videos" {
		t.Errorf("of the wrong kind: %v", fault)
	}
	item := attachment{media: &Media{Param: "images[0]"}}
	for _, tt := range []struct {
		err  error
		code Code
		text string
	}{
		{fmt.Errorf("encoder: a picture of 9×1 takes 99×1 tokens: %w", encoder.ErrTooLong), CodeMediaTooLarge, "images[0]: a picture of 9×1 takes 99×1 tokens: it is too long and narrow"},
		{fmt.Errorf("picture: %w: of TIFF others are", picture.ErrUnsupported), CodeMediaType, "images[0]: a file that is not read: of TIFF others are"},
		{fmt.Errorf("film: %w", film.ErrShort), CodeMediaDecode, "images[0]: it is cut short"},
	} {
		if e := item.fault(tt.err); e.Code != tt.code || e.Message != tt.text {
			t.Errorf("%v became %s, %q", tt.err, e.Code, e.Message)
		}
	}
}

// TestRotary compares with positions that are written down row by row.
func TestRotary(t *testing.T) {
	s := &spread{}
	s.attachments = []*attachment{{layout: Layout{{Tokens: 6, NX: 3, NY: 2}}}, {layout: Layout{{Tokens: 2}}}, {layout: Layout{{Tokens: 4, NX: 1, NY: 4, Whole: true}}}}
	ids := []int32{7, 7}
	ids = s.add(ids, 0, nil, 1)
	ids = append(ids, 7)
	ids = s.add(ids, 1, nil, 1)
	ids = s.add(ids, 2, nil, 1)
	if len(ids) != 15 {
		t.Fatalf("%d ids", len(ids))
	}
	want := [][3]int32{
		{0, 0, 0}, {1, 1, 1}, // text
		{2, 2, 2}, {2, 2, 3}, {2, 2, 4}, {2, 3, 2}, {2, 3, 3}, {2, 3, 4}, // a picture of 3×2
		{5, 5, 5},            // text goes on 3 further
		{6, 6, 6}, {7, 7, 7}, // sound
		{8, 8, 8}, {8, 9, 8}, {8, 10, 8}, {8, 11, 8}, // a picture of 1×4
		{12, 12, 12}, {13, 13, 13}, // text behind
	}
	for pos, w := range want {
		if got := s.rotary(s.at(pos), pos); got != w {
			t.Errorf("position %d: %v, want %v", pos, got, w)
		}
	}
	for _, tt := range [][4]int{{0, 5, 5, 0}, {0, 11, 11, 0}, {0, 12, 11, 0}, {0, 15, 15, 0}, {11, 2, 0, 4}, {11, 4, 4, 4}, {13, 1, 0, 2}, {13, 2, 2, 2}, {14, 5, 5, 1}} {
		if cut, unit := s.cut(tt[0], tt[1]), s.unit(tt[0]); cut != tt[2] || unit != tt[3] {
			t.Errorf("from %d, %d rows: cut to %d, unit %d; want %d, %d", tt[0], tt[1], cut, unit, tt[2], tt[3])
		}
	}
}

func TestIDsOfRows(t *testing.T) {
	c := newEmbeddings(1 << 20)
	a := c.put([32]byte{1}, [][]float32{make([]float32, 8)}, 4)
	b := c.put([32]byte{2}, [][]float32{make([]float32, 8)}, 4)
	if a.first != -2 || b.first != -6 {
		t.Errorf("first ids %d, %d", a.first, b.first)
	}
	c.last = -1<<31 + 3 // they begin again, and pass over those that are known
	if d := c.put([32]byte{3}, [][]float32{make([]float32, 8)}, 4); d.first != -10 {
		t.Errorf("after the last id comes %d", d.first)
	}
	c.limit = 70
	c.get([32]byte{1})
	c.put([32]byte{4}, [][]float32{make([]float32, 8)}, 4)
	if c.get([32]byte{1}) == nil || c.get([32]byte{2}) != nil || c.get([32]byte{4}) == nil || c.bytes > 70 {
		t.Errorf("the cache keeps the wrong ones, %d bytes", c.bytes)
	}
}
