package sign

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// module is the smallest module with a manifest and an asset.
func module() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = wasm.AppendCustom(b, abi.SectionManifest, []byte(`{"name":"x"}`))
	return wasm.AppendCustom(b, abi.SectionAsset+"words", []byte("one two"))
}

// newKey makes a key in a folder and reads it again.
func newKey(t *testing.T, name string) (ed25519.PrivateKey, Keys, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	id, err := Generate(path)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ReadPrivate(path)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ReadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 1 || keys[id] == nil {
		t.Fatalf("the folder holds %v, want %s", keys, id)
	}
	return private, keys, path
}

func TestSignAndVerify(t *testing.T) {
	private, keys, _ := newKey(t, "me.key")
	_, others, _ := newKey(t, "you.key")
	file := module()
	if _, err := keys.Verify(file); !errors.Is(err, ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	s, err := Sign(file, private)
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys.Verify(s)
	if err != nil || id != KeyID(private.Public().(ed25519.PublicKey)) {
		t.Errorf("signed: %q, %v", id, err)
	}
	if _, err := others.Verify(s); !errors.Is(err, ErrUnknown) {
		t.Errorf("with another's keys: %v", err)
	}
	again, err := Sign(s, private)
	if err != nil || !bytes.Equal(again, s) {
		t.Errorf("signed again: %d bytes, want the same %d; %v", len(again), len(s), err)
	}
}

// Each byte of the file is covered by the signature or is part of it.
func TestEveryByteCounts(t *testing.T) {
	private, keys, _ := newKey(t, "me.key")
	s, err := Sign(module(), private)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s {
		b := bytes.Clone(s)
		b[i] ^= 1
		if _, err := keys.Verify(b); err == nil {
			t.Errorf("byte %d of %d may be changed", i, len(s))
		}
	}
	for name, b := range map[string][]byte{
		"a section more":   wasm.AppendCustom(s, "more", nil),
		"a section twice":  wasm.AppendCustom(s, abi.SectionSignature, []byte("{}")),
		"no section":       s[:8],
		"not a module":     []byte("no module"),
		"an asset changed": bytes.Replace(s, []byte("one"), []byte("two"), 1),
	} {
		if _, err := keys.Verify(b); err == nil {
			t.Errorf("%s: the signature holds", name)
		}
	}
}

func TestStrangeSections(t *testing.T) {
	good := `{"alg":"ed25519","key":"0011223344556677","sig":"` + strings.Repeat("A", 86) + `=="}`
	if _, err := parse([]byte(good)); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for name, text := range map[string]string{
		"empty": "", "a list": "[]", "null": "null",
		"another algorithm": strings.Replace(good, "ed25519", "rsa", 1),
		"no id":             strings.Replace(good, "0011", "zz11", 1),
		"a short id":        strings.Replace(good, "0011", "", 1),
		"a short signature": strings.Replace(good, "AAAA", "", 1),
		"line breaks":       strings.Replace(good, "AAAA", `AA\nAA`, 1),
		"a name more":       strings.Replace(good, "{", `{"more":1,`, 1),
		"a name twice":      strings.Replace(good, "{", `{"alg":"ed25519",`, 1),
		"too long":          good + strings.Repeat(" ", maxSection),
	} {
		if s, err := parse([]byte(text)); !errors.Is(err, ErrBad) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	_, _, path := newKey(t, "me.key")
	if _, err := Generate(path); err == nil {
		t.Error("a key was written over another")
	}
	if _, err := ReadPrivate(path + ".pub"); err == nil {
		t.Error("a public key was taken for a private one")
	}
	if _, err := ReadPublic(path); err == nil {
		t.Error("a private key was taken for a public one")
	}
	if keys, err := ReadKeys(filepath.Join(t.TempDir(), "none")); err != nil || len(keys) != 0 {
		t.Errorf("a folder that is not there: %v, %v", keys, err)
	}
	if err := os.WriteFile(path+".pub", []byte("no key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeys(filepath.Dir(path)); err == nil {
		t.Error("a folder with a bad key was read")
	}
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key has mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPrivate(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others may read: %v", err)
	}
}
