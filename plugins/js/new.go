package js

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed example/top-a.js
var example []byte

// New begins a plugin: the example as NAME.js in a folder, which must not hold it yet. It
// returns the file's path.
func New(dir, name string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("js: %w", err)
	}
	path = filepath.Join(dir, name+".js")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", fmt.Errorf("js: %w", err)
	}
	_, err = f.Write(bytes.Replace(example, []byte(`"top-a"`), []byte(`"`+name+`"`), 1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("js: %w", err)
	}
	return path, nil
}
