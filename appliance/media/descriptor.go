package media

import (
	"encoding/binary"
	"fmt"
	"math"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
)

// source is how a descriptor's member holds its media.
type source int

const (
	bytesSource  source = iota // base64, data: address or byte array
	urlSource                  // a string, or an object with url
	nestedSource               // an object that is a descriptor itself
	pathSource
	framesSource
)

// sources are the member names under which the usual APIs put media. A descriptor
// has exactly one of them; every other member is a hint or is ignored.
var sources = map[string]source{
	"data": bytesSource, "base64": bytesSource, "b64": bytesSource, "b64_json": bytesSource,
	"bytes": bytesSource, "file_data": bytesSource,
	"url": urlSource, "image_url": urlSource, "audio_url": urlSource, "video_url": urlSource,
	"input_audio": nestedSource, "inline_data": nestedSource, "inlineData": nestedSource,
	"source": nestedSource, "file": nestedSource,
	"path":   pathSource,
	"frames": framesSource,
}

// descriptor reads an object item with its wishes. What is nested is read the same way:
// depth is bounded, since the text it stands in was.
func (r *reader) descriptor(it item, v jsontext.Value) (appliance.Media, error) {
	m, err := r.described(it, v)
	if err == nil {
		m.Hints, err = hints(it, v, m.Hints)
	}
	return m, err
}

// described reads what a descriptor holds.
func (r *reader) described(it item, v jsontext.Value) (appliance.Media, error) {
	var none appliance.Media
	var name string
	var value jsontext.Value
	for member, mv := range v.Members() {
		if _, ok := sources[member]; !ok || !mv.Present() {
			continue
		}
		if name != "" {
			return none, it.errorf(appliance.CodeInvalid, "has both %q and %q; exactly one source is wanted", name, member)
		}
		name, value = member, mv
	}
	if name == "" {
		return none, it.errorf(appliance.CodeMissing, "has no source such as \"data\", \"b64_json\" or \"url\" with a data: address")
	}
	wrong := func(want string) error {
		return it.errorf(appliance.CodeInvalidType, "%s must be %s, not %s", name, want, value.Kind())
	}
	switch sources[name] {
	case pathSource:
		path, err := value.Text()
		if value.Kind() != jsontext.String || err != nil {
			return none, wrong("a string")
		}
		data, err := r.local(it, path)
		if err != nil {
			return none, err
		}
		return r.check(it, data)
	case framesSource:
		return r.frames(it, value)
	case nestedSource:
		if value.Kind() != jsontext.Object {
			return none, wrong("an object")
		}
		return r.descriptor(it, value)
	case urlSource:
		if value.Kind() == jsontext.Object {
			return r.descriptor(it, value)
		}
		if value.Kind() != jsontext.String {
			return none, wrong("a string or an object with url")
		}
	default:
		if k := value.Kind(); k != jsontext.String && k != jsontext.Array {
			return none, wrong("a base64 string or an array of bytes")
		}
	}
	if format := samplesFormat(v); format != "" {
		return r.samples(it, v, value, format)
	}
	return r.read(it, value)
}

// lowDetail is how many tokens a picture takes at most where its descriptor asks for low
// detail.
const lowDetail = 85

// hints adds the wishes of a descriptor to those of what it holds. Members of other names
// are ignored. A wish that cannot be is named, such as videos[0].fps.
func hints(it item, v jsontext.Value, h appliance.Hints) (_ appliance.Hints, err error) {
	refuse := func(name, format string, args ...any) {
		err = item{kind: it.kind, param: it.param + "." + name}.errorf(appliance.CodeInvalid, format, args...)
	}
	whole := func(name string, n jsontext.Value, max int64) int {
		i, ok := n.Int()
		if n.Kind() != jsontext.Number || ok != jsontext.IsInt || i < 1 || i > max {
			refuse(name, "must be an integer from 1 to %d", max)
		}
		return int(i)
	}
	number := func(name string, n jsontext.Value, max int) float64 {
		f, ok := n.Float()
		if n.Kind() != jsontext.Number || !ok || f < 0 || f > float64(max) {
			refuse(name, "must be a number from 0 to %d", max)
		}
		return f
	}
	for name, mv := range v.Members() {
		if !mv.Present() || err != nil {
			continue
		}
		switch name {
		case "detail":
			switch s, _ := mv.Text(); s {
			case "low":
				if h.MaxTokens == 0 {
					h.MaxTokens = lowDetail
				}
			case "auto", "high", "original":
			default:
				refuse(name, "must be low, high or auto")
			}
		case "video_compat":
			if s, _ := mv.Text(); s != "llama.cpp" {
				refuse(name, "must be llama.cpp")
			}
			h.Reference = true
		case "max_tokens":
			h.MaxTokens = whole(name, mv, 1<<16)
		case "max_frames":
			h.MaxFrames = whole(name, mv, 1<<16)
		case "fps":
			if h.FPS = number(name, mv, 240); err == nil && h.FPS > 0 && h.FPS < 0.001 {
				refuse(name, "must be 0.001 or more")
			}
		case "start":
			h.Start = number(name, mv, 1_000_000)
		case "end":
			h.End = number(name, mv, 1_000_000)
		}
	}
	return h, err
}

// frames reads a video that is given as a list of pictures.
func (r *reader) frames(it item, v jsontext.Value) (appliance.Media, error) {
	m := appliance.Media{Kind: it.kind, Param: it.param, MIME: MIMEFrames, Limits: r.limits.media()}
	if it.kind != appliance.Video {
		return m, it.errorf(CodeWrongModality, "frames belong to videos")
	}
	if v.Kind() != jsontext.Array {
		return m, it.errorf(appliance.CodeInvalidType, "frames must be an array of pictures, not %s", v.Kind())
	}
	for i, e := range v.Elements() {
		if i >= r.limits.Frames {
			return m, it.errorf(appliance.CodeMediaTooLarge, "has more than %d frames", r.limits.Frames)
		}
		frame, err := r.read(item{kind: appliance.Image, param: fmt.Sprintf("%s.frames[%d]", it.param, i)}, e)
		if err != nil {
			return m, err
		}
		m.Frames = append(m.Frames, frame)
	}
	if len(m.Frames) == 0 {
		return m, it.errorf(CodeBroken, "has no frames")
	}
	return m, nil
}

// MIMEFrames is the type of a video given as a list of pictures.
const MIMEFrames = "video/x-frames"

// samplesFormat is the format of samples without a header, "" for a file.
func samplesFormat(v jsontext.Value) string {
	for name, mv := range v.Members() {
		if name != "format" || mv.Kind() != jsontext.String {
			continue
		}
		switch s, _ := mv.Text(); s {
		case "rgb8", "rgba8", "gray8", "pcm_s16le", "pcm_f32le":
			return s
		}
	}
	return ""
}

// samples reads headerless pixels or sound and puts the header before them that
// they lack (PAM, WAV), so that from here on every item describes itself.
func (r *reader) samples(it item, v, value jsontext.Value, format string) (appliance.Media, error) {
	var none appliance.Media
	data, ok := value.Bytes()
	if !ok {
		if value.Kind() != jsontext.String {
			return none, it.errorf(appliance.CodeInvalidType, "must be a base64 string or an array of bytes")
		}
		var err error
		if data, err = r.rawBytes(it, value); err != nil {
			return none, err
		}
	}
	hint := func(name string, max int64) (int64, error) {
		for member, mv := range v.Members() {
			if member != name || mv.Kind() != jsontext.Number {
				continue
			}
			if n, whole := mv.Int(); whole == jsontext.IsInt && n >= 1 && n <= max {
				return n, nil
			}
		}
		return 0, it.errorf(appliance.CodeInvalid, "samples of format %s need %s, an integer from 1 to %d", format, name, max)
	}
	first, second := "width", "height"
	if it.kind == appliance.Audio {
		first, second = "sample_rate", "channels"
	}
	if isSound := format[:3] == "pcm"; isSound != (it.kind == appliance.Audio) || it.kind == appliance.Video {
		return none, it.errorf(CodeWrongModality, "samples of format %s do not belong to %s", format, it.kind)
	}
	a, err := hint(first, math.MaxInt32)
	if err != nil {
		return none, err
	}
	b, err := hint(second, math.MaxInt32)
	if err != nil {
		return none, err
	}
	var head []byte
	switch depth := map[string]int64{"rgb8": 3, "rgba8": 4, "gray8": 1, "pcm_s16le": 2, "pcm_f32le": 4}[format]; {
	case it.kind == appliance.Audio:
		if b > maxChannels || a > maxRate || int64(len(data))%(depth*b) != 0 {
			return none, it.errorf(CodeBroken, "%d bytes are no whole number of %s samples with %d channels at %d Hz", len(data), format, b, a)
		}
		head = wavHeader(len(data), a, b, depth)
	default:
		if err := r.picture(it, fileType{name: format}, header{width: a, height: b}); err != nil {
			return none, err
		}
		if int64(len(data)) != a*b*depth {
			return none, it.errorf(CodeBroken, "has %d bytes, %d×%d pixels of %s need %d", len(data), a, b, format, a*b*depth)
		}
		head = pamHeader(a, b, depth)
	}
	return r.check(it, append(head, data...))
}

// rawBytes decodes base64 without looking for a kind of file in it.
func (r *reader) rawBytes(it item, value jsontext.Value) ([]byte, error) {
	text, err := value.TextBytes()
	if err != nil {
		return nil, it.errorf(CodeBroken, "holds no Unicode text")
	}
	coded, skipped, err := payload(it, text)
	if err != nil {
		return nil, err
	}
	n, err := decodedLen(coded)
	if err != nil {
		return nil, badBase64(it, text, skipped, err)
	}
	if err := r.size(it, int64(n)); err != nil {
		return nil, err
	}
	return decodeInto(make([]byte, 0, n), coded), nil
}

// pamHeader is the header of a Netpbm PAM file of 8-bit samples.
func pamHeader(width, height, depth int64) []byte {
	tuple := map[int64]string{1: "GRAYSCALE", 3: "RGB", 4: "RGB_ALPHA"}[depth]
	return fmt.Appendf(nil, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL 255\nTUPLTYPE %s\nENDHDR\n", width, height, depth, tuple)
}

// wavHeader is the header of a RIFF WAVE file: 2 bytes a sample are integers, 4
// are floats.
func wavHeader(n int, rate, channels, width int64) []byte {
	tag := uint16(wavPCM)
	if width == 4 {
		tag = wavFloat
	}
	le := binary.LittleEndian
	b := append([]byte("RIFF"), le.AppendUint32(nil, uint32(36+n))...)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, tag)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*width))
	b = le.AppendUint16(b, uint16(channels*width))
	b = le.AppendUint16(b, uint16(8*width))
	b = append(b, "data"...)
	return le.AppendUint32(b, uint32(n))
}
