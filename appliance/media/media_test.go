package media

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
	"ganglion/appliance/media/picture"
	"ganglion/gpu/cputime"
)

// read reads one field written as JSON.
func read(kind appliance.MediaKind, text string) ([]appliance.Media, error) {
	v, err := jsontext.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	f := map[appliance.MediaKind]Fields{appliance.Image: {Images: v}, appliance.Audio: {Audios: v}, appliance.Video: {Videos: v}}[kind]
	return Read(f, DefaultLimits())
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func list(b []byte) string { return strings.ReplaceAll(fmt.Sprint(b), " ", ",") }

func wantCode(t *testing.T, name string, err error, code appliance.Code, param string) {
	t.Helper()
	var e *appliance.Error
	if !errors.As(err, &e) || e.Code != code || e.Param != param || !strings.HasPrefix(e.Message, param) {
		t.Errorf("%s: %+v, want %s about %s", name, err, code, param)
	}
}

func TestF52F53EverySpellingOfAnItem(t *testing.T) {
	file := pngFile(9, 7)
	std, url := b64(file), base64.URLEncoding.EncodeToString(file)
	q := func(s string) string { return `"` + s + `"` }
	every := func(n int, sep string) string {
		var b strings.Builder
		for i := range len(std) {
			if i > 0 && i%n == 0 {
				b.WriteString(sep)
			}
			b.WriteByte(std[i])
		}
		return b.String()
	}
	values := map[string]string{
		"bare": q(std), "url alphabet": q(url), "no padding": q(strings.TrimRight(std, "=")), "escaped slashes": q(strings.ReplaceAll(std, "/", `\/`)),
		"data": q("data:image/png;base64," + std), "data with parameters": q("data:image/PNG;charset=x;base64," + std),
		"data of a wrong type": q("data:image/jpeg;base64," + std), "data without type": q("data:;base64," + std), "data in capitals": q("DATA:image/png;BASE64," + std),
		"LF every 76": q(every(76, `\n`)), "CRLF": q(every(76, `\r\n`)), "tabs": q(every(5, `\t`)), "spaces": q(every(3, " ")), "spaces around": q("  " + std + " "),
		"bytes": list(file), "data key": `{"data":"` + std + `"}`, "base64 key": `{"base64":"` + std + `"}`, "b64": `{"b64":"` + std + `"}`, "b64_json": `{"b64_json":"` + std + `"}`,
		"bytes key": `{"bytes":` + list(file) + `,"mime_type":"image/png"}`, "url string": `{"url":"data:image/png;base64,` + std + `"}`,
		"OpenAI part": `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + std + `","detail":"low"}}`,
		"Responses":   `{"type":"input_image","image_url":"data:image/png;base64,` + std + `"}`, "Gemini": `{"inline_data":{"mime_type":"image/png","data":"` + std + `"}}`,
		"Gemini JS": `{"inlineData":{"mimeType":"image/png","data":"` + std + `"}}`, "Anthropic": `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + std + `"}}`,
		"file": `{"type":"file","file":{"filename":"a.png","file_data":"data:image/png;base64,` + std + `"}}`, "null beside": `{"data":"` + std + `","url":null,"unknown":1}`,
	}
	for name, v := range values {
		for _, field := range []string{v, "[" + v + "]", "[" + v + "," + v + "]"} {
			items, err := read(appliance.Image, field)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, m := range items {
				if m.MIME != "image/png" || !bytes.Equal(m.Data, file) || m.Kind != appliance.Image {
					t.Errorf("%s: %s, %d bytes", name, m.MIME, len(m.Data))
				}
			}
		}
	}
	items, err := read(appliance.Image, `[`+values["bare"]+`,`+values["bytes"]+`]`)
	if err != nil || items[0].Param != "images[0]" || items[1].Param != "images[1]" {
		t.Errorf("%v, %v", items, err)
	}
	for _, none := range []string{`null`, `[]`} {
		if items, err := read(appliance.Image, none); len(items) != 0 || err != nil {
			t.Errorf("%s: %v, %v", none, items, err)
		}
	}
	_, err = read(appliance.Image, `"data:text/html;base64,`+b64([]byte("<html><body>hello</body></html>"))+`"`)
	wantCode(t, "html", err, CodeUnknownType, "images")
}

func TestWhatIsNoItem(t *testing.T) {
	std := b64(pngFile(2, 2))
	tests := []struct {
		name, value string
		code        appliance.Code
		param       string
	}{
		{"number", `5`, appliance.CodeInvalidType, "images"},
		{"boolean", `true`, appliance.CodeInvalidType, "images"},
		{"null in the array", `["` + std + `",null]`, appliance.CodeInvalidType, "images[1]"},
		{"mixed array", `[1,"` + std + `"]`, appliance.CodeInvalidType, "images[0]"},
		{"not bytes", `[256,1]`, appliance.CodeInvalidType, "images[0]"},
		{"nested deeper", `[[[1]]]`, appliance.CodeInvalidType, "images[0]"},
		{"http", `["http://example.com/a.png"]`, CodeRemote, "images[0]"},
		{"https in an object", `[{"image_url":{"url":"HTTPS://example.com"}}]`, CodeRemote, "images[0]"},
		{"ftp", `"ftp://x"`, CodeRemote, "images"},
		{"file", `["file:///etc/passwd"]`, CodeLocal, "images[0]"},
		{"path", `["/etc/passwd"]`, CodeLocal, "images[0]"},
		{"relative path", `["../a.png"]`, CodeLocal, "images[0]"},
		{"name", `["picture.png"]`, CodeLocal, "images[0]"},
		{"drive", `["C:\\a.png"]`, CodeLocal, "images[0]"},
		{"path key", `[{"path":"/a.png"}]`, CodeLocal, "images[0]"},
		{"empty", `""`, CodeBroken, "images"},
		{"blank", `["  "]`, CodeBroken, "images[0]"},
		{"data of nothing", `"data:image/png;base64,"`, CodeBroken, "images"},
		{"data without base64", `"data:image/png,abc"`, CodeBroken, "images"},
		{"data without comma", `"data:image/png;base64"`, CodeBroken, "images"},
		{"bad byte", `["` + std[:8] + `*` + std[8:] + `"]`, CodeBroken, "images[0]"},
		{"cut group", `["` + std[:9] + `"]`, CodeBroken, "images[0]"},
		{"data behind the padding", `["aGk=aGk="]`, CodeBroken, "images[0]"},
		{"too much padding", `["aGk==="]`, CodeBroken, "images[0]"},
		{"surrogate", `["\ud800"]`, CodeBroken, "images[0]"},
		{"no source", `[{"mime_type":"image/png"}]`, appliance.CodeMissing, "images[0]"},
		{"two sources", `[{"data":"` + std + `","url":"data:,"}]`, appliance.CodeInvalid, "images[0]"},
		{"source of a wrong type", `[{"data":5}]`, appliance.CodeInvalidType, "images[0]"},
		{"nested of a wrong type", `[{"source":"x"}]`, appliance.CodeInvalidType, "images[0]"},
		{"url of a wrong type", `[{"url":[1]}]`, appliance.CodeInvalidType, "images[0]"},
		{"frames of an image", `[{"frames":["` + std + `"]}]`, CodeWrongModality, "images[0]"},
		{"a sound", `["` + b64(wavFileOf(1, 1, 16, 16000, .01)) + `"]`, CodeWrongModality, "images[0]"},
		{"a video", `["` + b64([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x00\x00")) + `"]`, CodeWrongModality, "images[0]"},
		{"HEIC", `["` + b64([]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00")) + `"]`, CodeUnknownType, "images[0]"},
		{"SVG", `["` + b64([]byte("<svg xmlns='x'/>")) + `"]`, CodeUnknownType, "images[0]"},
		{"F56 text", `["aGVsbG8="]`, CodeUnknownType, "images[0]"},
		{"too many", `["` + strings.Repeat(std+`","`, 16) + std + `"]`, appliance.CodeInvalid, "images"},
	}
	for _, tt := range tests {
		_, err := read(appliance.Image, tt.value)
		wantCode(t, tt.name, err, tt.code, tt.param)
	}
}

func TestKindsAreFoundFromTheBytes(t *testing.T) {
	mp3 := append([]byte("\xff\xfb\x90\x64"), make([]byte, 413)...)
	ogg, err := os.ReadFile("sound/testdata/tones-silk.opus")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		data []byte
		mime string
		kind appliance.MediaKind
	}{
		{"png", pngFile(3, 5000), "image/png", appliance.Image}, {"jpeg", jpegFile(), "image/jpeg", appliance.Image},
		{"gif", gifFile(), "image/gif", appliance.Image}, {"gif as video", gifFile(), "image/gif", appliance.Video},
		{"bmp", bmpFile(3, -4), "image/bmp", appliance.Image}, {"tiff", tiffFile(le, 3, 4), "image/tiff", appliance.Image}, {"tiff be", tiffFile(be, 3, 4), "image/tiff", appliance.Image},
		{"webp x", webpFile("VP8X", 3, 4), "image/webp", appliance.Image}, {"webp l", webpFile("VP8L", 3, 4), "image/webp", appliance.Image}, {"webp", webpFile("VP8 ", 3, 4), "image/webp", appliance.Image},
		{"wav 8", wavFileOf(1, 1, 8, 8000, .1), "audio/wav", appliance.Audio}, {"wav 24", wavFileOf(1, 2, 24, 44100, .1), "audio/wav", appliance.Audio},
		{"wav float", wavFileOf(3, 2, 32, 48000, .1), "audio/wav", appliance.Audio}, {"wav extensible", wavFileOf(0xFFFE, 2, 16, 48000, .1), "audio/wav", appliance.Audio},
		{"mp3", mp3, "audio/mpeg", appliance.Audio}, {"mp3 id3", append([]byte("ID3\x04\x00\x00\x00\x00\x00\x00"), mp3...), "audio/mpeg", appliance.Audio},
		{"flac", flacFile(44100, 44100), "audio/flac", appliance.Audio}, {"ogg", ogg, "audio/ogg", appliance.Audio},
		{"m4a", []byte("\x00\x00\x00\x20ftypM4A \x00"), "audio/mp4", appliance.Audio}, {"aac", []byte("\xff\xf1\x50\x80\x00"), "audio/aac", appliance.Audio},
		{"amr", []byte("#!AMR\n\x00"), "audio/amr", appliance.Audio}, {"amr wide", []byte("#!AMR-WB\n\x00"), "audio/amr", appliance.Audio},
		{"mp4", []byte("\x00\x00\x00\x20ftypisom\x00"), "video/mp4", appliance.Video}, {"mov", []byte("\x00\x00\x00\x20ftypqt  \x00"), "video/quicktime", appliance.Video},
		{"old mov", []byte("\x00\x00\x00\x20moov\x00\x00\x00\x00"), "video/quicktime", appliance.Video}, {"avi", []byte("RIFF\x00\x00\x00\x00AVI LIST"), "video/x-msvideo", appliance.Video},
		{"mkv", []byte("\x1a\x45\xdf\xa3\x42\x82\x88matroska"), "video/x-matroska", appliance.Video}, {"webm", []byte("\x1a\x45\xdf\xa3\x42\x82\x84webm"), "video/webm", appliance.Video},
	}
	for _, tt := range tests {
		items, err := read(tt.kind, `["`+b64(tt.data)+`"]`)
		if err != nil || items[0].MIME != tt.mime {
			t.Errorf("%s: %v, %v", tt.name, items, err)
		}
	}
	frames, err := read(appliance.Video, `[{"frames":["`+b64(pngFile(2, 2))+`",{"data":"`+b64(jpegFile())+`"}],"fps":2}]`)
	if err != nil || frames[0].MIME != MIMEFrames || len(frames[0].Frames) != 2 || frames[0].Frames[1].MIME != "image/jpeg" || frames[0].Frames[1].Param != "videos[0].frames[1]" {
		t.Errorf("frames: %+v, %v", frames, err)
	}
}

func TestHeaderlessSamples(t *testing.T) {
	items, err := read(appliance.Image, `{"data":[1,2,3,4,5,6],"format":"rgb8","width":2,"height":1}`)
	if err != nil || items[0].MIME != "image/x-portable-arbitrarymap" || !bytes.HasSuffix(items[0].Data, []byte("ENDHDR\n\x01\x02\x03\x04\x05\x06")) {
		t.Errorf("%+v, %v", items, err)
	}
	for _, format := range []string{"pcm_s16le", "pcm_f32le"} {
		items, err = read(appliance.Audio, `{"data":"AAAAAAAAAAA=","format":"`+format+`","sample_rate":16000,"channels":2}`)
		if err != nil || items[0].MIME != "audio/wav" || len(items[0].Data) != 44+8 {
			t.Errorf("%+v, %v", items, err)
		}
	}
	for name, v := range map[string]string{
		"length": `{"data":[1,2],"format":"rgb8","width":2,"height":1}`, "no width": `{"data":[1,2,3],"format":"rgb8","height":1}`,
		"sound among images": `{"data":[1,2],"format":"pcm_s16le","sample_rate":1,"channels":1}`, "huge": `{"data":[1],"format":"gray8","width":2000000000,"height":2000000000}`,
	} {
		if _, err := read(appliance.Image, v); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestF56BrokenPicturesAreRefusedSoon(t *testing.T) {
	file := pngFile(64, 64)
	broken := map[string][]byte{}
	for i := range 20 {
		broken[fmt.Sprintf("png cut at %d/20", i+1)] = file[:9+i*(len(file)-10)/20]
	}
	flipped := bytes.Clone(file)
	flipped[len(flipped)-20] ^= 1
	broken["png with a flipped bit"] = flipped
	j := jpegFile()
	wrong := bytes.Clone(j)
	wrong[3] = 0x01
	broken["jpeg with a wrong marker"] = wrong
	noMarker := bytes.Clone(j)
	noMarker[2] = 0x55
	broken["jpeg without a marker"] = noMarker
	for i := range 20 {
		broken[fmt.Sprintf("jpeg cut at %d/20", i+1)] = j[:4+i*(len(j)-5)/20]
		g := gifFile()
		broken[fmt.Sprintf("gif cut at %d/20", i+1)] = g[:7+i*(len(g)-20)/40]
	}
	broken["webp cut"] = append(webpFile("VP8X", 3, 4)[:28], 0)
	broken["bmp of no size"] = bmpFile(0, 0)
	broken["tiff of no size"] = tiffFile(le, 0, 0)
	broken["wav without samples"] = wavFileOf(1, 1, 16, 8000, 0)
	for name, data := range broken {
		kind := appliance.Image
		if strings.HasPrefix(name, "wav") {
			kind = appliance.Audio
		}
		var err error
		took := time.Hour
		for range 3 { // the garbage collector may be at work
			begin := cputime.Used()
			_, err = read(kind, `["`+b64(data)+`"]`)
			took = min(took, cputime.Used()-begin)
		}
		var e *appliance.Error
		if !errors.As(err, &e) || e.Param != string(kind)+"[0]" || e.Code != CodeBroken && e.Code != CodeUnknownType {
			t.Errorf("%s: %v", name, err)
		}
		if took > 100*time.Millisecond {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// hugePNG declares 40000×40000 pixels and holds n bytes.
func hugePNG(n int) []byte {
	b := bytes.Clone(pngFile(1, 1))
	be.PutUint32(b[16:], 40000)
	be.PutUint32(b[20:], 40000)
	be.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return append(b, make([]byte, n)...)
}

// deepTIFF is the header of a picture with 16 bits for each of three samples.
func deepTIFF(w, h uint32) []byte {
	b := []byte("II*\x00\x08\x00\x00\x00\x03\x00")
	for _, e := range [][4]uint32{{256, 4, 1, w}, {257, 4, 1, h}, {258, 3, 3, 50}} {
		b = le.AppendUint16(le.AppendUint16(b, uint16(e[0])), uint16(e[1]))
		b = le.AppendUint32(le.AppendUint32(b, e[2]), e[3])
	}
	return append(b, "\x00\x00\x00\x00\x10\x00\x10\x00\x10\x00"...)
}

func TestF57DeclaredSizeIsCheckedBeforeDecoding(t *testing.T) {
	g := append(append([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), ','), make([]byte, 20)...)
	files := map[string][]byte{
		"gif": g, "webp": webpFile("VP8X", 16384, 16384), "webp lossless": webpFile("VP8L", 16384, 16384), "png": hugePNG(5 << 20),
		"bmp": bmpFile(-2147483648, -2147483648), "tiff": tiffFile(le, 65535, 65535), "long": webpFile("VP8X", 16385, 1),
	}
	delete(files, "bmp") // a negative width is broken, not large
	for name, file := range files {
		text := `["` + b64(file) + `"]`
		v, err := jsontext.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		fastest := time.Hour
		for range 5 { // the machine may be busy
			begin := cputime.Used()
			_, err = Read(Fields{Images: v}, DefaultLimits())
			fastest = min(fastest, cputime.Used()-begin)
		}
		wantCode(t, name, err, appliance.CodeImageTooLarge, "images[0]")
		if fastest > 10*time.Millisecond {
			t.Errorf("%s took %v", name, fastest)
		}
	}
	// 36 megapixels of 16 bits take a gigabyte to decode.
	_, err := read(appliance.Image, `["`+b64(deepTIFF(6000, 6000))+`"]`)
	wantCode(t, "deep TIFF", err, appliance.CodeImageTooLarge, "images[0]")
	_, err = read(appliance.Image, `["`+b64(deepTIFF(4000, 5000))+`"]`)
	if errors.As(err, new(*appliance.Error)) && err.(*appliance.Error).Code == appliance.CodeImageTooLarge {
		t.Errorf("20 megapixels of 16 bits: %v", err)
	}
	// 200 at once: what is allocated in all, kept or not, stays below 16 MiB.
	v, _ := jsontext.Parse([]byte(`["` + b64(files["png"]) + `"]`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { Read(Fields{Images: v}, DefaultLimits()) })
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("200 at once allocate %d bytes", grown)
	}
}

func TestSizeLimits(t *testing.T) {
	file := wavFileOf(1, 1, 16, 8000, 1)
	v, _ := jsontext.Parse([]byte(`["` + b64(file) + `","` + b64(file) + `"]`))
	n := int64(len(file))
	for name, tt := range map[string]struct {
		limits Limits
		param  string
	}{
		"item":  {Limits{ItemBytes: n - 1, TotalBytes: 9 * n, Audios: 4, Seconds: 600}, "audios[0]"},
		"total": {Limits{ItemBytes: n, TotalBytes: 2*n - 1, Audios: 4, Seconds: 600}, "audios[1]"},
	} {
		_, err := Read(Fields{Audios: v}, tt.limits)
		wantCode(t, name, err, appliance.CodeMediaTooLarge, tt.param)
	}
	if _, err := Read(Fields{Audios: v}, Limits{ItemBytes: n, TotalBytes: 2 * n, Audios: 2, Seconds: 1}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := read(appliance.Audio, `["`+b64(flacFile(8000, 8000*601))+`"]`)
	wantCode(t, "length", err, appliance.CodeMediaTooLarge, "audios[0]")
	_, err = read(appliance.Audio, `["`+b64(wavFileOf(5, 1, 4, 8000, .1))+`"]`)
	wantCode(t, "an encoding that nobody reads", err, CodeUnknownType, "audios[0]")
}

func TestF59WAVEncodings(t *testing.T) {
	for _, tt := range []struct {
		tag, bits uint16
		ok        bool
	}{{1, 8, true}, {1, 16, true}, {1, 24, true}, {1, 32, true}, {3, 32, true}, {3, 64, true}, {6, 8, true}, {7, 8, true}, {0xFFFE, 16, true},
		{1, 12, false}, {3, 16, false}, {5, 4, false}, {0x69, 4, false},
		{2, 4, false}, {0x11, 4, false}, {0x31, 16, false}} { // the last three do not tell their blocks
		for _, rate := range []uint32{8000, 16000, 44100, 48000} {
			for _, channels := range []uint16{1, 2} {
				_, err := read(appliance.Audio, `["`+b64(wavFileOf(tt.tag, channels, tt.bits, rate, .01))+`"]`)
				if (err == nil) != tt.ok {
					t.Errorf("format %d, %d bits, %d Hz, %d channels: %v", tt.tag, tt.bits, rate, channels, err)
				}
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, b := range [][]byte{pngFile(3, 3), jpegFile(), gifFile(), bmpFile(2, 2), tiffFile(le, 2, 2), tiffFile(be, 2, 2), webpFile("VP8X", 3, 4), webpFile("VP8L", 3, 4),
		webpFile("VP8 ", 3, 4), wavFileOf(1, 1, 8, 8000, .001), wavFileOf(0xFFFE, 2, 16, 8000, .001), flacFile(8000, 100), []byte("\x00\x00\x00\x20ftypM4A \x00")} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, kind := range []appliance.MediaKind{appliance.Image, appliance.Audio, appliance.Video} {
			items, err := read(kind, `["`+b64(file)+`"]`)
			var e *appliance.Error
			if err != nil && (!errors.As(err, &e) || !strings.HasPrefix(e.Param, string(kind))) {
				t.Errorf("%s: %v", kind, err)
			}
			if err == nil && !bytes.Equal(items[0].Data, file) {
				t.Errorf("%s: other bytes", kind)
			}
		}
	})
}

// What is wrong with an item is said without its bytes.
func TestErrorsDoNotRepeatBytes(t *testing.T) {
	for kind, data := range map[appliance.MediaKind]string{
		appliance.Image: "SECRET and more than that",
		appliance.Audio: "RIFF\x20\x00\x00\x00WAVESECR\xff\x00\x00\x00SECRET and more",
		appliance.Video: "SECRET and more than that",
	} {
		_, err := read(kind, `["`+b64([]byte(data))+`"]`)
		if err == nil || strings.Contains(err.Error(), "SECR") || strings.Contains(err.Error(), "53 45") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Files that the decoder of films reads belong to their fields, and what is said of broken ones
// names no package.
func TestFilesForTheFilmDecoder(t *testing.T) {
	file := func(path string) []byte {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	mjpeg := file("film/testdata/raw.mjpeg")
	one := mjpeg[:picture.JPEGLength(mjpeg)]
	for _, tt := range []struct {
		name string
		kind appliance.MediaKind
		data []byte
		mime string
	}{
		{"Motion-JPEG", appliance.Video, mjpeg, "video/x-motion-jpeg"},
		{"long Motion-JPEG", appliance.Video, bytes.Repeat(mjpeg, 20), "video/x-motion-jpeg"},
		{"its first frame", appliance.Image, mjpeg, "image/jpeg"},
		{"IMA ADPCM", appliance.Audio, file("film/testdata/ima.wav"), "audio/wav"},
		{"Microsoft's ADPCM", appliance.Audio, file("film/testdata/adpcm.wav"), "audio/wav"},
		{"GSM", appliance.Audio, file("film/testdata/gsm.wav"), "audio/wav"},
		{"MPEG-2.5", appliance.Audio, file("film/testdata/low.mp3"), "audio/mpeg"},
	} {
		got, err := read(tt.kind, `["`+b64(tt.data)+`"]`)
		if err != nil || len(got) != 1 || got[0].MIME != tt.mime {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
	_, err := read(appliance.Video, `["`+b64(one)+`"]`)
	wantCode(t, "a photograph as a video", err, CodeWrongModality, "videos[0]")
	broken := bytes.Clone(one)
	copy(broken[200:], make([]byte, 100))
	for _, b := range [][]byte{broken, one[:len(one)/2], pngFile(3, 3)[:30], append(tiffFile(le, 2, 2)[:20], 1)} {
		if _, err := read(appliance.Image, `["`+b64(b)+`"]`); err != nil && (strings.Contains(err.Error(), "picture:") || strings.Contains(err.Error(), "tiff:")) {
			t.Errorf("%v names a package", err)
		}
	}
}
