package media

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
)

// headBytes of a file are decoded first: enough for the headers of nearly every
// file, so that a picture that declares too many pixels is refused before its
// data take memory.
const headBytes = 64 << 10

// decode reads a string item: a data: address or bare base64.
func (r *reader) decode(it item, v jsontext.Value) ([]byte, error) {
	text, err := v.TextBytes()
	if err != nil {
		return nil, it.errorf(CodeBroken, "holds no Unicode text")
	}
	if name := strings.TrimLeft(string(text[:min(len(text), 4096)]), " \t\r\n\f\v"); isFileAddress(name) {
		return r.local(it, name)
	}
	coded, skipped, err := payload(it, text)
	if err != nil {
		return nil, err
	}
	if err := r.peek(it, coded); err != nil {
		return nil, err
	}
	n, err := decodedLen(coded)
	if err != nil && looksLikePath(text) {
		return r.local(it, string(text))
	}
	if err != nil {
		return nil, badBase64(it, text, skipped, err)
	}
	if n == 0 {
		return nil, it.errorf(CodeBroken, "is empty")
	}
	if err := r.size(it, int64(n)); err != nil {
		return nil, err
	}
	data := decodeInto(make([]byte, 0, n), coded)
	// "/etc/passwd" is base64 as well.
	if _, ok := detect(data); !ok && len(text) < 256 && looksLikePath(text) {
		return r.local(it, string(text))
	}
	return data, nil
}

// peek decodes the beginning of a long item and refuses it if that is enough to
// know that it must be. Whatever it cannot say is said of the whole.
func (r *reader) peek(it item, coded []byte) error {
	const digits = headBytes / 3 * 4
	if len(coded) <= digits {
		return nil
	}
	if _, err := decodedLen(coded[:digits]); errors.As(err, new(badByte)) {
		return nil
	}
	head := decodeInto(make([]byte, 0, headBytes), coded[:digits])
	if t, ok := detect(head); !ok || it.kind == appliance.Video && t.name == typeJPEG.name { // a second one may follow
		return nil
	}
	t, err := sniff(it, head)
	if err != nil || it.kind == appliance.Audio { // the length of a sound follows from all of it
		return err
	}
	return r.inspect(it, t, head, false)
}

// payload finds the base64 in a string and how many bytes stand before it.
// Addresses of any other kind are refused here.
func payload(it item, text []byte) (coded []byte, skipped int, err error) {
	s := bytes.TrimLeft(text, " \t\r\n\f\v")
	skipped = len(text) - len(s)
	if len(s) >= 5 && strings.EqualFold(string(s[:5]), "data:") {
		comma := bytes.IndexByte(s, ',')
		if comma < 0 {
			return nil, 0, it.errorf(CodeBroken, "is a data: address without a comma")
		}
		params := strings.TrimRight(strings.ToLower(string(s[5:min(comma, 1024)])), " ")
		if !strings.HasSuffix(params, ";base64") {
			return nil, 0, it.errorf(CodeBroken, "is a data: address that is not base64")
		}
		return s[comma+1:], skipped + comma + 1, nil
	}
	scheme, _, ok := strings.Cut(string(s[:min(len(s), 32)]), "://")
	switch {
	case ok && strings.EqualFold(scheme, "file"):
		return nil, 0, notLocal(it)
	case ok && scheme != "" && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-") == "":
		return nil, 0, it.errorf(CodeRemote, "is an address of %s://; media are never fetched, send the bytes in base64", strings.ToLower(scheme))
	}
	return s, skipped, nil
}

// badBase64 words the failure to decode: a path is better called a path.
func badBase64(it item, text []byte, skipped int, err error) error {
	if looksLikePath(text) {
		return notLocal(it)
	}
	bad, ok := err.(badByte)
	if !ok {
		return it.errorf(CodeBroken, "is no base64: %v", err)
	}
	at := skipped + int(bad)
	return it.errorf(CodeBroken, "is no base64: byte %d is %#02x", at, text[at])
}

// looksLikePath tells whether a string that is no media file is meant as the name
// of one.
func looksLikePath(text []byte) bool {
	if len(text) > 1024 || bytes.ContainsAny(text, "\r\n") {
		return false
	}
	s := string(text)
	for _, p := range []string{"/", "./", "../", "~/", `\\`, `.\`} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	if len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') {
		return true // C:\
	}
	dot := strings.LastIndexByte(s, '.')
	return dot > 0 && len(s)-dot >= 2 && len(s)-dot <= 5 && !strings.ContainsAny(s[dot:], " /=+")
}

// badByte is the offset of a byte that is in neither alphabet.
type badByte int

func (b badByte) Error() string { return fmt.Sprintf("byte %d", int(b)) }

const (
	codeBad   = 0xFF
	codeSpace = 0xFE
	codePad   = 0xFD
)

// alphabet holds the value of each byte: the standard and the URL alphabet of RFC
// 4648 together, which share 62 characters and do not contradict each other.
var alphabet = func() (t [256]byte) {
	for i := range t {
		t[i] = codeBad
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" {
		t[c] = byte(i)
	}
	t['+'], t['-'] = 62, 62
	t['/'], t['_'] = 63, 63
	t['='] = codePad
	for _, c := range " \t\r\n\f\v" {
		t[c] = codeSpace
	}
	return t
}()

// decodedLen checks that s is base64, padded or not, with white space anywhere,
// and tells how many bytes it stands for.
func decodedLen(s []byte) (int, error) {
	digits, pads := 0, 0
	for i, c := range s {
		switch v := alphabet[c]; {
		case v < 64 && pads > 0, v == codeBad:
			return 0, badByte(i)
		case v < 64:
			digits++
		case v == codePad:
			if pads++; pads > 2 {
				return 0, badByte(i)
			}
		}
	}
	if pads > 0 && (digits+pads)%4 != 0 || digits%4 == 1 {
		return 0, fmt.Errorf("it ends in the middle of a group of four after %d digits", digits)
	}
	return digits * 3 / 4, nil
}

// decodeInto decodes checked base64 until it ends or dst is full to its capacity.
func decodeInto(dst, s []byte) []byte {
	var bits uint32
	n := 0
	for _, c := range s {
		v := alphabet[c]
		if v >= 64 {
			continue
		}
		bits = bits<<6 | uint32(v)
		if n++; n%4 == 0 {
			if cap(dst)-len(dst) < 3 {
				return dst
			}
			dst = append(dst, byte(bits>>16), byte(bits>>8), byte(bits))
		}
	}
	switch n % 4 {
	case 2:
		dst = append(dst, byte(bits>>4))
	case 3:
		dst = append(dst, byte(bits>>10), byte(bits>>2))
	}
	return dst
}
