// Package sign signs plugins and checks their signatures.
//
// A signature stands in the file's last section, ganglion.sig. It is an Ed25519 signature
// (RFC 8032) over the SHA-256 of all other bytes of the file. The section is one JSON
// object:
//
//	{"alg":"ed25519","key":"9f86d081884c7d65","sig":"…base64, 64 bytes…"}
//
// key is the start of the SHA-256 of the public key: it says which key to try, and is no
// proof of anything. Keys are kept as PEM files, as openssl writes and reads them: private
// ones as PKCS #8, readable by their owner alone, public ones as PKIX.
//
// The package imports plugins/abi and plugins/wasm.
package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// What a check of a signature may find.
var (
	ErrUnsigned = errors.New("sign: the file has no signature")
	ErrUnknown  = errors.New("sign: the key is not one of those that are trusted")
	ErrBad      = errors.New("sign: the signature does not belong to the file")
)

const (
	algorithm  = "ed25519"
	maxSection = 4 << 10
	keyIDBytes = 8
)

// Signature is what a file says about its signature.
type Signature struct {
	Key   string // id of the key
	Bytes []byte // [ed25519.SignatureSize]
}

// KeyID is the id of a public key: 16 hexadecimal digits.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:keyIDBytes])
}

// Sign returns a copy of a file that is signed with a key, in place of signatures that it
// had.
func Sign(file []byte, key ed25519.PrivateKey) ([]byte, error) {
	rest, message, err := signed(file)
	if err != nil {
		return nil, err
	}
	section, err := json.Marshal(map[string]string{
		"alg": algorithm, "key": KeyID(key.Public().(ed25519.PublicKey)),
		"sig": base64.StdEncoding.EncodeToString(ed25519.Sign(key, message)),
	})
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return wasm.AppendCustom(rest, abi.SectionSignature, section), nil
}

// Read returns the signature that a file carries, without checking it. Without one the
// error is ErrUnsigned; two are an error.
func Read(file []byte) (Signature, error) {
	m, err := wasm.Parse(file)
	if err != nil {
		return Signature{}, fmt.Errorf("sign: %w", err)
	}
	found := -1
	for i, s := range m.Sections {
		switch {
		case s.ID != wasm.SectionCustom || s.Name != abi.SectionSignature:
		case found >= 0:
			return Signature{}, fmt.Errorf("%w: it has more than one", ErrBad)
		default:
			found = i
		}
	}
	if found < 0 {
		return Signature{}, ErrUnsigned
	}
	content := m.Sections[found].Data
	return parse(file[content.Start:content.End])
}

// parse reads the section, which a stranger may have written.
func parse(section []byte) (Signature, error) {
	if len(section) > maxSection {
		return Signature{}, fmt.Errorf("%w: its section has %d bytes, at most %d", ErrBad, len(section), maxSection)
	}
	v, err := abi.ParseJSON(section)
	if err != nil {
		return Signature{}, fmt.Errorf("%w: %w", ErrBad, err)
	}
	o, _ := v.(map[string]any)
	alg, _ := o["alg"].(string)
	key, _ := o["key"].(string)
	text, _ := o["sig"].(string)
	if alg != algorithm || len(o) != 3 {
		return Signature{}, fmt.Errorf("%w: its section is not {alg: %q, key, sig}", ErrBad, algorithm)
	}
	if b, err := hex.DecodeString(key); err != nil || len(b) != keyIDBytes {
		return Signature{}, fmt.Errorf("%w: key is no id", ErrBad)
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(sig) != ed25519.SignatureSize || base64.StdEncoding.EncodeToString(sig) != text { // it would skip line breaks
		return Signature{}, fmt.Errorf("%w: sig is not %d bytes in base64", ErrBad, ed25519.SignatureSize)
	}
	return Signature{Key: key, Bytes: sig}, nil
}

// Verify checks a file's signature against the keys that are trusted and returns the id of
// the key that made it. The error is ErrUnsigned, ErrUnknown, ErrBad or one that wraps
// them.
func (k Keys) Verify(file []byte) (key string, err error) {
	s, err := Read(file)
	if err != nil {
		return "", err
	}
	public, ok := k[s.Key]
	if !ok {
		return s.Key, fmt.Errorf("%w: %s", ErrUnknown, s.Key)
	}
	_, message, err := signed(file)
	if err != nil {
		return s.Key, err
	}
	if !ed25519.Verify(public, message, s.Bytes) {
		return s.Key, ErrBad
	}
	return s.Key, nil
}

// signed returns a file without its signatures, and what is signed of it.
func signed(file []byte) (rest, message []byte, err error) {
	rest, err = wasm.DropCustom(file, abi.SectionSignature)
	if err != nil {
		return nil, nil, fmt.Errorf("sign: %w", err)
	}
	sum := sha256.Sum256(rest)
	return rest, sum[:], nil
}
