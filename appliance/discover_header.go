package appliance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	ggufMagic = "GGUF"
	// peekBytes of each file are looked at. The general keys come first in every file
	// that a converter writes; reading whole headers would cost megabytes a file for
	// vocabularies nobody asked for yet.
	peekBytes = 64 << 10
)

// errNoModel says that a file is none that text can be generated with; such files are
// left out of the list.
var errNoModel = errors.New("appliance: not a text model")

// peekModel looks at the beginning of the GGUF in a window of a file. The error is
// errNoModel for files of another kind, vocabularies and projectors. A part of a split
// model may hold no tensor of its own.
func peekModel(path string, offset, size int64, part bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, min(peekBytes, max(size, 0)))
	n, err := f.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	b = b[:n]
	// magic, version, tensors, keys
	if len(b) < 24 || string(b[:4]) != ggufMagic || !part && binary.LittleEndian.Uint64(b[8:]) == 0 {
		return errNoModel
	}
	if a := peekString(b, "general.architecture"); a == "clip" {
		return errNoModel
	}
	if t := peekString(b, "general.type"); t != "" && t != "model" {
		return errNoModel // mmproj, adapter, vocab, imatrix
	}
	return nil
}

// peekString finds the value of a text key near the beginning of a file: the key with
// its length before it, type 8, then length and text. It returns "" where there is
// none. A match inside another value only misjudges a file made for that.
func peekString(b []byte, key string) string {
	pattern := binary.LittleEndian.AppendUint64(nil, uint64(len(key)))
	pattern = append(pattern, key...)
	pattern = binary.LittleEndian.AppendUint32(pattern, 8)
	_, rest, found := bytes.Cut(b, pattern)
	if !found || len(rest) < 8 {
		return ""
	}
	n := binary.LittleEndian.Uint64(rest)
	if rest = rest[8:]; n > uint64(len(rest)) {
		return ""
	}
	return string(rest[:n])
}

// isProjectorName tells a vision or audio projector, which older converters do not
// mark inside the file.
func isProjectorName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "mmproj") || strings.Contains(name, "-mmproj") || strings.Contains(name, ".mmproj")
}

// fingerprint tells copies of a file from other models of the same size: a hash of
// samples at the beginning, the middle and the end. Fine-tunes may share the whole
// header, so that alone would not do.
func fingerprint(path string, size int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for _, at := range []int64{0, size / 2, max(0, size-peekBytes)} {
		if _, err := io.Copy(h, io.NewSectionReader(f, at, peekBytes)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d-%x", size, h.Sum(nil)), nil
}
