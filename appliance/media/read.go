package media

import (
	"errors"
	"fmt"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
	"ganglion/appliance/media/picture"
)

// The codes this package adds to those of appliance.
const (
	CodeBroken        appliance.Code = "media_invalid"         // no base64, or a damaged file
	CodeWrongModality appliance.Code = "wrong_modality"        // such as a sound among the images
	CodeUnknownType                  = appliance.CodeMediaType // a kind of file that is not read
	CodeRemote        appliance.Code = "remote_media_disabled"
	CodeLocal         appliance.Code = "local_media_disabled"
)

// Limits bound what one request may carry.
type Limits struct {
	ItemBytes  int64 // bytes of one decoded item
	TotalBytes int64 // bytes of all decoded items
	Images     int   // items in images
	Audios     int   // items in audios
	Videos     int   // items in videos
	Side       int   // pixels along one side of a picture
	Pixels     int64 // pixels of one picture
	Seconds    int   // length of one sound, where its header tells
	Frames     int   // pictures in a list of frames
	// Folder is where files lie that a request may name; empty: it may name none.
	Folder string
}

// DefaultLimits are limits that a small machine bears.
func DefaultLimits() Limits {
	return Limits{
		ItemBytes: 32 << 20, TotalBytes: 64 << 20,
		Images: 16, Audios: 4, Videos: 2,
		Side: 16384, Pixels: 40_000_000, Seconds: 600, Frames: 64,
	}
}

// media are the limits that hold when an item is measured.
func (l Limits) media() appliance.MediaLimits {
	return appliance.MediaLimits{Seconds: l.Seconds, Frames: l.Frames}
}

// Fields are the three media fields of a request as written; a field that is
// absent, null or [] has no items.
type Fields struct {
	Images, Audios, Videos jsontext.Value
}

// Read reads the media of a request: first the images, then the audios, then the
// videos. Errors are *appliance.Error and name the item at fault. The bytes of an
// item are its own memory.
func Read(f Fields, l Limits) ([]appliance.Media, error) {
	r := reader{limits: l}
	fields := []struct {
		kind  appliance.MediaKind
		value jsontext.Value
		max   int
	}{
		{appliance.Image, f.Images, l.Images},
		{appliance.Audio, f.Audios, l.Audios},
		{appliance.Video, f.Videos, l.Videos},
	}
	for _, f := range fields {
		if err := r.field(f.kind, f.value, f.max); err != nil {
			return nil, err
		}
	}
	return r.items, nil
}

// Files are the media of a request as the bytes of files.
type Files struct {
	Images, Audios, Videos [][]byte
}

// ReadFiles is Read for files, whose bytes the items keep.
func ReadFiles(f Files, l Limits) ([]appliance.Media, error) {
	r := reader{limits: l}
	for _, f := range []struct {
		kind  appliance.MediaKind
		files [][]byte
		max   int
	}{{appliance.Image, f.Images, l.Images}, {appliance.Audio, f.Audios, l.Audios}, {appliance.Video, f.Videos, l.Videos}} {
		if len(f.files) > f.max {
			return nil, item{kind: f.kind, param: string(f.kind)}.errorf(appliance.CodeInvalid, "holds more than %d items", f.max)
		}
		for i, data := range f.files {
			if err := r.take(item{kind: f.kind, param: fmt.Sprintf("%s[%d]", f.kind, i)}, data); err != nil {
				return nil, err
			}
		}
	}
	return r.items, nil
}

// reader collects the items of one request.
type reader struct {
	limits Limits
	items  []appliance.Media
	total  int64
}

// item is where a value stands: the field decides what it may be, param is its
// name in errors.
type item struct {
	kind  appliance.MediaKind
	param string
}

func (it item) errorf(code appliance.Code, format string, args ...any) error {
	return appliance.Errorf(code, it.param, "%s: %s", it.param, fmt.Sprintf(format, args...))
}

// field normalises a field to items: a string or an object is one, an array of
// bytes is one, any other array holds one in each element.
func (r *reader) field(kind appliance.MediaKind, v jsontext.Value, max int) error {
	name := item{kind: kind, param: string(kind)}
	switch v.Kind() {
	case jsontext.None, jsontext.Null:
		return nil
	case jsontext.String, jsontext.Object:
		return r.add(name, v)
	case jsontext.Array:
	default:
		return name.errorf(appliance.CodeInvalidType, "must be an array, a string or an object, not %s", v.Kind())
	}
	if data, ok := v.Bytes(); ok {
		if len(data) == 0 {
			return nil
		}
		return r.take(name, data)
	}
	for i, e := range v.Elements() {
		if i >= max {
			return name.errorf(appliance.CodeInvalid, "holds more than %d items", max)
		}
		if err := r.add(item{kind: kind, param: fmt.Sprintf("%s[%d]", kind, i)}, e); err != nil {
			return err
		}
	}
	return nil
}

// add reads one item from its value and keeps it.
func (r *reader) add(it item, v jsontext.Value) error {
	m, err := r.read(it, v)
	if err != nil {
		return err
	}
	r.items = append(r.items, m)
	return nil
}

func (r *reader) take(it item, data []byte) error {
	m, err := r.check(it, data)
	if err != nil {
		return err
	}
	r.items = append(r.items, m)
	return nil
}

func (r *reader) read(it item, v jsontext.Value) (appliance.Media, error) {
	switch v.Kind() {
	case jsontext.String:
		data, err := r.decode(it, v)
		if err != nil {
			return appliance.Media{}, err
		}
		return r.check(it, data)
	case jsontext.Array:
		data, ok := v.Bytes()
		if !ok {
			return appliance.Media{}, it.errorf(appliance.CodeInvalidType, "an array inside %s must hold integers from 0 to 255", it.kind)
		}
		return r.check(it, data)
	case jsontext.Object:
		return r.descriptor(it, v)
	}
	return appliance.Media{}, it.errorf(appliance.CodeInvalidType, "must be a string, an object or an array of bytes, not %s", v.Kind())
}

// check finds the kind of an item's bytes and holds them against the limits.
func (r *reader) check(it item, data []byte) (appliance.Media, error) {
	if len(data) == 0 {
		return appliance.Media{}, it.errorf(CodeBroken, "is empty")
	}
	if err := r.size(it, int64(len(data))); err != nil {
		return appliance.Media{}, err
	}
	t, err := sniff(it, data)
	if err != nil {
		return appliance.Media{}, err
	}
	if err := r.inspect(it, t, data, true); err != nil {
		return appliance.Media{}, err
	}
	r.total += int64(len(data))
	return appliance.Media{Kind: it.kind, Param: it.param, MIME: t.mime, Data: data, Limits: r.limits.media()}, nil
}

// size refuses an item of n bytes that is over a limit.
func (r *reader) size(it item, n int64) error {
	if n > r.limits.ItemBytes {
		return it.errorf(appliance.CodeMediaTooLarge, "has %d bytes, the limit is %d", n, r.limits.ItemBytes)
	}
	if r.total+n > r.limits.TotalBytes {
		return it.errorf(appliance.CodeMediaTooLarge, "brings the media of the request to %d bytes, the limit is %d", r.total+n, r.limits.TotalBytes)
	}
	return nil
}

// inspect reads the headers of a file whose kind is known. With whole false, data
// is only its beginning and nothing is said about what may follow.
func (r *reader) inspect(it item, t fileType, data []byte, whole bool) error {
	if t.header == nil {
		return nil
	}
	h, err := t.header(data)
	switch {
	case err == errShort && !whole:
		return nil
	case errors.As(err, new(unread)):
		return it.errorf(CodeUnknownType, "is a %s file that is not read: %v", t.name, err)
	case err != nil:
		return it.errorf(CodeBroken, "is a broken %s file: %v", t.name, err)
	}
	if h.picture {
		if err := r.picture(it, t, h); err != nil {
			return err
		}
	}
	if limit := float64(r.limits.Seconds); h.seconds > limit {
		return it.errorf(appliance.CodeMediaTooLarge, "lasts %.0f s, the limit is %.0f s", h.seconds, limit)
	}
	if whole && t.body != nil {
		if err := t.body(data); err != nil {
			return it.errorf(CodeBroken, "is a broken %s file: %v", t.name, err)
		}
	}
	return nil
}

// picture holds a declared size against the limits.
func (r *reader) picture(it item, t fileType, h header) error {
	if h.width <= 0 || h.height <= 0 {
		return it.errorf(CodeBroken, "is a broken %s file: it declares %d×%d pixels", t.name, h.width, h.height)
	}
	if h.width > int64(r.limits.Side) || h.height > int64(r.limits.Side) || h.width*h.height > r.limits.Pixels {
		return it.errorf(appliance.CodeImageTooLarge, "declares %d×%d pixels, the limit is %d a side and %d in all",
			h.width, h.height, r.limits.Side, r.limits.Pixels)
	}
	if most := picture.DefaultLimits().Bytes; h.memory > most {
		return it.errorf(appliance.CodeImageTooLarge, "is a %s file of %d×%d pixels, which take %d MiB to decode, the limit is %d", t.name, h.width, h.height, h.memory>>20, most>>20)
	}
	return nil
}
