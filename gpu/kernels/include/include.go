// Package include resolves the include lines of shader texts. It stands apart from
// gpu/kernels so that cmd/kernelgen works while what it generates is broken.
package include

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Resolve returns the text of a file with each line `#include "other"` replaced by the
// text of the other file, the first time it is met, and by nothing afterwards. Files lie
// in one folder.
func Resolve(files fs.FS, name string) (string, error) {
	r := resolver{files: files}
	if err := r.file(name); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

type resolver struct {
	files fs.FS
	out   strings.Builder
	seen  []string
}

func (r *resolver) file(name string) error {
	if slices.Contains(r.seen, name) {
		return nil
	}
	r.seen = append(r.seen, name)
	text, err := fs.ReadFile(r.files, name)
	if err != nil {
		return fmt.Errorf("include: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#include")
		if !ok {
			r.out.WriteString(line)
			continue
		}
		other, ok := strings.CutPrefix(strings.TrimSpace(rest), `"`)
		other, closed := strings.CutSuffix(other, `"`)
		if !ok || !closed || other == "" {
			return fmt.Errorf("include: %s:%d: %q names no file", name, number, strings.TrimSpace(line))
		}
		if err := r.file(other); err != nil {
			return fmt.Errorf("include: %s:%d: %w", name, number, err)
		}
	}
	return nil
}
