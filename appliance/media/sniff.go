package media

import (
	"bytes"
	"errors"
	"slices"

	"ganglion/appliance"
	"ganglion/appliance/media/picture"
)

// fileType is a kind of file: how it is known, where it belongs, and how its
// headers are read. read false means that it is known only to be refused by name.
type fileType struct {
	name   string
	mime   string
	fields []appliance.MediaKind
	read   bool
	header func(data []byte) (header, error)
	body   func(data []byte) error // whether the rest of the file hangs together
}

// header is what a file declares about itself.
type header struct {
	picture       bool
	width, height int64
	memory        int64   // that decoding takes
	seconds       float64 // 0 where the header does not tell
}

// errShort tells that the headers go on behind the bytes at hand.
var errShort = errors.New("it is cut short")

var (
	asImage = []appliance.MediaKind{appliance.Image}
	asAudio = []appliance.MediaKind{appliance.Audio}
	asVideo = []appliance.MediaKind{appliance.Video}
	// moving pictures are an image (their first frame) or a video (all frames)
	moving = []appliance.MediaKind{appliance.Image, appliance.Video}
	// containers that may hold sound alone
	either = []appliance.MediaKind{appliance.Video, appliance.Audio}
)

var (
	typePNG  = fileType{"PNG", "image/png", moving, true, pictureHeader, pictureBody}
	typeJPEG = fileType{"JPEG", "image/jpeg", asImage, true, pictureHeader, pictureBody}
	typeGIF  = fileType{"GIF", "image/gif", moving, true, pictureHeader, pictureBody}
	typeBMP  = fileType{"BMP", "image/bmp", asImage, true, pictureHeader, nil}
	typeTIFF = fileType{"TIFF", "image/tiff", asImage, true, pictureHeader, nil}
	typeWebP = fileType{"WebP", "image/webp", moving, true, pictureHeader, pictureBody}
	typePAM  = fileType{"PAM", "image/x-portable-arbitrarymap", asImage, true, pictureHeader, nil}
	typeWAV  = fileType{"WAV", "audio/wav", asAudio, true, foreignWAV, nil}
	typeMP3  = fileType{"MP3", "audio/mpeg", asAudio, true, foreignSound, nil}
	typeFLAC = fileType{"FLAC", "audio/flac", asAudio, true, soundHeader, nil}
	typeOGG  = fileType{"Ogg", "audio/ogg", either, true, foreignSound, nil}
	typeM4A  = fileType{"M4A", "audio/mp4", asAudio, true, nil, nil}
	typeAAC  = fileType{"AAC", "audio/aac", asAudio, true, nil, nil}
	typeAMR  = fileType{"AMR", "audio/amr", asAudio, true, nil, nil}
	typeMP4  = fileType{"MP4", "video/mp4", either, true, nil, nil}
	typeMOV  = fileType{"QuickTime", "video/quicktime", either, true, nil, nil}
	typeMKV  = fileType{"Matroska", "video/x-matroska", either, true, nil, nil}
	typeWebM = fileType{"WebM", "video/webm", either, true, nil, nil}
	typeAVI  = fileType{"AVI", "video/x-msvideo", asVideo, true, nil, nil}
	typeMJPG = fileType{"Motion-JPEG", "video/x-motion-jpeg", asVideo, true, nil, nil}
)

func refused(name string, fields []appliance.MediaKind) fileType {
	return fileType{name: name, fields: fields}
}

// sniff finds the kind of a file and refuses one that is not read or does not
// belong into its field.
func sniff(it item, data []byte) (fileType, error) {
	t, ok := detect(data)
	if it.kind == appliance.Video && t.name == typeJPEG.name && followed(data) {
		return typeMJPG, nil
	}
	switch {
	case !ok:
		return t, it.errorf(CodeUnknownType, "is no %s: it begins like none of them", expected[it.kind])
	case !t.read:
		return t, it.errorf(CodeUnknownType, "is %s, which is not read; send %s", t.name, expected[it.kind])
	case !slices.Contains(t.fields, it.kind):
		return t, it.errorf(CodeWrongModality, "is %s, which does not belong to %s; send %s", t.name, it.kind, expected[it.kind])
	}
	return t, nil
}

// followed tells whether behind a JPEG file stands another one. Where only the beginning is
// at hand it need not have come yet.
func followed(data []byte) bool {
	n := picture.JPEGLength(data)
	return n > 0 && bytes.HasPrefix(bytes.TrimLeft(data[n:], "\x00"), []byte("\xff\xd8"))
}

var expected = map[appliance.MediaKind]string{
	appliance.Image: "PNG, JPEG, GIF, BMP, TIFF or WebP",
	appliance.Audio: "WAV, MP3, FLAC, Ogg, M4A, AAC or AMR",
	appliance.Video: "MP4, QuickTime, Matroska, WebM, AVI, Motion-JPEG, GIF or a list of frames",
}

// magic are the kinds known by fixed first bytes.
var magic = []struct {
	prefix string
	t      fileType
}{
	{"\x89PNG\r\n\x1a\n", typePNG},
	{"\xff\xd8\xff", typeJPEG},
	{"GIF87a", typeGIF},
	{"GIF89a", typeGIF},
	{"II*\x00", typeTIFF},
	{"MM\x00*", typeTIFF},
	{"P7\nWIDTH ", typePAM},
	{"fLaC", typeFLAC},
	{"OggS", typeOGG},
	{"ID3", typeMP3},
	{"#!AMR\n", typeAMR},
	{"#!AMR-WB\n", typeAMR},
	{"II+\x00", refused("BigTIFF", asImage)},
	{"MM\x00+", refused("BigTIFF", asImage)},
	{"8BPS", refused("Photoshop", asImage)},
	{"\xff\x0a", refused("JPEG XL", asImage)},
	{"\x00\x00\x00\x0cJXL ", refused("JPEG XL", asImage)},
	{"\x00\x00\x00\x0cjP  ", refused("JPEG 2000", asImage)},
	{"\x00\x00\x01\x00", refused("a Windows icon", asImage)},
	{"%PDF-", refused("PDF", asImage)},
	{"FORM", refused("AIFF", asAudio)},
	{"FLV\x01", refused("Flash video", asVideo)},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11", refused("Windows Media", asVideo)},
}

// detect finds the kind of a file from its first bytes.
func detect(data []byte) (fileType, bool) {
	for _, m := range magic {
		if bytes.HasPrefix(data, []byte(m.prefix)) {
			return m.t, true
		}
	}
	if t, ok := detectRIFF(data); ok {
		return t, true
	}
	if t, ok := detectBoxes(data); ok {
		return t, true
	}
	switch {
	case len(data) >= 26 && data[0] == 'B' && data[1] == 'M' && bytes.Equal(data[6:10], []byte{0, 0, 0, 0}):
		return typeBMP, true
	case bytes.HasPrefix(data, []byte("\x1a\x45\xdf\xa3")):
		if bytes.Contains(data[:min(len(data), 64)], []byte("webm")) {
			return typeWebM, true
		}
		return typeMKV, true
	case len(data) >= 4 && data[0] == 0xff && data[1]&0xf6 == 0xf0:
		return typeAAC, true // ADTS: sync word, layer 0
	case len(data) >= 4 && data[0] == 0xff && data[1]&0xe6 == 0xe2 && data[1]&0x18 != 0x08 && data[2]&0xf0 != 0xf0 && data[2]&0x0c != 0x0c:
		return typeMP3, true // frame header of layer III with a legal rate
	case bytes.HasPrefix(bytes.TrimLeft(data[:min(len(data), 256)], " \t\r\n\ufeff"), []byte("<svg")):
		return refused("SVG", asImage), true
	}
	return fileType{}, false
}

func detectRIFF(data []byte) (fileType, bool) {
	if len(data) < 12 || string(data[:4]) != "RIFF" && string(data[:4]) != "RF64" {
		return fileType{}, false
	}
	switch string(data[8:12]) {
	case "WAVE":
		return typeWAV, true
	case "WEBP":
		return typeWebP, true
	case "AVI ":
		return typeAVI, true
	}
	return fileType{}, false
}

// detectBoxes knows the files made of ISO base media boxes by their brand.
func detectBoxes(data []byte) (fileType, bool) {
	if len(data) < 12 {
		return fileType{}, false
	}
	switch string(data[4:8]) {
	case "ftyp":
	case "moov", "mdat", "wide", "free", "skip", "pnot":
		return typeMOV, true // QuickTime before it had brands
	default:
		return fileType{}, false
	}
	switch string(data[8:12]) {
	case "qt  ":
		return typeMOV, true
	case "M4A ", "M4B ", "M4P ":
		return typeM4A, true
	case "heic", "heix", "hevc", "heim", "heis", "mif1", "msf1":
		return refused("HEIC", asImage), true
	case "avif", "avis":
		return refused("AVIF", asImage), true
	}
	return typeMP4, true
}
