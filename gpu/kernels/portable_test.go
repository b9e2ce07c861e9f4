package kernels

import (
	"strings"
	"testing"
)

// OpenGL ES has no pasting of names.
func TestTextsPasteNoNames(t *testing.T) {
	for _, s := range All() {
		for line := range strings.Lines(s.GLSL) {
			if strings.Contains(line, "##") {
				t.Errorf("%s: %s", s.Name, strings.TrimSpace(line))
			}
		}
	}
}
