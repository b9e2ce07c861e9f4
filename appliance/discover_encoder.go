package appliance

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// NoEncoder is the value of the setting mmproj that loads none.
const NoEncoder = "none"

// EncoderFile is where an encoder lies: a file, or a part of one. Size 0 is all of it.
type EncoderFile struct {
	Path         string
	Offset, Size int64
	Named        bool // in the settings, so that it must fit
}

// FindEncoder finds the encoder of a model: the one that is named, what lies beside the
// model inside an executable, or the file beside the model whose name says so (mmproj). ok
// is false where there is none, or where it is not clear which one is meant.
func FindEncoder(model Found, named string) (f EncoderFile, ok bool, err error) {
	switch {
	case named == NoEncoder:
		return f, false, nil
	case named != "":
		return EncoderFile{Path: named, Named: true}, true, nil
	case model.Source == "embedded":
		return embeddedEncoder(model.Path)
	}
	entries, err := readDirBounded(filepath.Dir(model.Path))
	if err != nil {
		return f, false, nil // the model itself will say what is wrong
	}
	var names []string
	for _, e := range entries {
		if isProjectorName(e.Name()) && strings.EqualFold(filepath.Ext(e.Name()), ".gguf") {
			names = append(names, e.Name())
		}
	}
	name := bestProjector(modelName(model.Path), names)
	if name == "" {
		return f, false, nil
	}
	return EncoderFile{Path: filepath.Join(filepath.Dir(model.Path), name)}, true, nil
}

// formats are in names of encoder files, the best first: more bits bring nothing.
var formats = []string{"f16", "bf16", "q8_0", "f32"}

// bestProjector chooses the encoder file that is named like a model, or one that is named
// like none where it is the only one. Empty: none.
func bestProjector(model string, names []string) string {
	best, bestScore := "", 0
	for _, name := range names {
		subject := projectorSubject(name)
		score := 0
		if subject == "" && len(names) == 1 {
			score = 1
		}
		if n := commonPrefix(subject, strings.ToLower(model)); n >= 4 {
			score = n*len(formats) + len(formats) - formatOf(name)
		}
		if score > bestScore {
			best, bestScore = name, score
		}
	}
	return best
}

// projectorSubject is what the name of an encoder file says of its model, empty for
// nothing.
func projectorSubject(name string) string {
	words := strings.FieldsFunc(strings.ToLower(modelName(name)), func(r rune) bool { return r == '-' || r == '.' })
	words = slices.DeleteFunc(words, func(w string) bool { return w == "mmproj" || w == "model" || slices.Contains(formats, w) })
	return strings.Join(words, "-")
}

// formatOf is the place of a file's format in formats.
func formatOf(name string) int {
	for i, f := range formats {
		if strings.Contains(strings.ToLower(name), "-"+f) {
			return i
		}
	}
	return len(formats)
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// embeddedEncoder finds the encoder between the program and the model of an executable.
func embeddedEncoder(exe string) (f EncoderFile, ok bool, err error) {
	file, err := os.Open(exe)
	if err != nil {
		return f, false, err
	}
	defer file.Close()
	t, ok, err := readEmbedTrailer(file)
	begin := embedOffset(t.program)
	if err != nil || !ok || begin >= t.offset {
		return f, false, err
	}
	magic := make([]byte, len(ggufMagic))
	if _, err := file.ReadAt(magic, begin); err != nil || !bytes.Equal(magic, []byte(ggufMagic)) {
		return f, false, err
	}
	return EncoderFile{Path: exe, Offset: begin, Size: t.offset - begin}, true, nil
}
