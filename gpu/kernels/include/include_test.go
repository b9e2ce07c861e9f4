package include

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestResolve(t *testing.T) {
	files := fstest.MapFS{
		"a.comp":   {Data: []byte("#include \"b.glsl\"\n#include \"c.glsl\"\nmain\n")},
		"b.glsl":   {Data: []byte("#include \"c.glsl\"\nb\n")},
		"c.glsl":   {Data: []byte("c\n")},
		"bad.comp": {Data: []byte("x\n#include <c.glsl>\n")},
		"no.comp":  {Data: []byte("#include \"none.glsl\"\n")},
	}
	tests := []struct{ name, want, err string }{
		{"a.comp", "c\nb\nmain\n", ""},
		{"bad.comp", "", "bad.comp:2"},
		{"no.comp", "", "none.glsl"},
		{"missing.comp", "", "missing.comp"},
	}
	for _, tt := range tests {
		got, err := Resolve(files, tt.name)
		if got != tt.want || (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %q, %v, want %q, error with %q", tt.name, got, err, tt.want, tt.err)
		}
	}
}
