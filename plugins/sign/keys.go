package sign

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Keys are public keys that are trusted, by their ids. It is not changed while it is used.
type Keys map[string]ed25519.PublicKey

const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
	publicGlob   = "*.pub"
	maxKeyFile   = 16 << 10
)

// Generate makes a key and writes it to path, with mode 0600, and its public half to
// path + ".pub". It never writes over a file.
func Generate(path string) (id string, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	open, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	if err := create(path, privateBlock, secret, 0o600); err != nil {
		return "", err
	}
	if err := create(path+".pub", publicBlock, open, 0o644); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return KeyID(public), nil
}

func create(path, kind string, der []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: kind, Bytes: der})
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("sign: %w", err), os.Remove(path))
	}
	return nil
}

// ReadPrivate reads a private key. A file that others than its owner may read is refused.
func ReadPrivate(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("sign: %s: others than its owner may use it (mode %#o): chmod 600 it, and make a new key if it was seen", path, mode)
	}
	der, err := readPEM(path, privateBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("sign: %s: %w", path, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("sign: %s: is no Ed25519 key", path)
	}
	return private, nil
}

// ReadPublic reads a public key.
func ReadPublic(path string) (ed25519.PublicKey, error) {
	der, err := readPEM(path, publicBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("sign: %s: %w", path, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("sign: %s: is no Ed25519 key", path)
	}
	return public, nil
}

func readPEM(path, kind string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fmt.Errorf("sign: %s: is no key file", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("sign: %s: holds no %s in PEM", path, kind)
	}
	return block.Bytes, nil
}

// ReadKeys reads the public keys of a folder, its *.pub files. A folder that is not there
// holds none.
func ReadKeys(dir string) (Keys, error) {
	files, err := filepath.Glob(filepath.Join(dir, publicGlob))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	k := Keys{}
	for _, f := range files {
		public, err := ReadPublic(f)
		if err != nil {
			return nil, err
		}
		k[KeyID(public)] = public
	}
	return k, nil
}
