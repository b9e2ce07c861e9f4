package wasm_test

import (
	"strconv"
	"testing"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// What of the specification's tests is decided differently here, and why.
var specExceptions = map[string]string{
	"binary-leb128:969": "an opcode behind a prefix is padded, which no tool writes and readers disagree on",
}

// TestSpec decides every binary module of the specification's tests.
func TestSpec(t *testing.T) {
	scripts, err := wasmtest.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	valid, bad := 0, 0
	for _, s := range scripts {
		for _, c := range s.Commands {
			if c.Binary == nil {
				continue
			}
			m, err := wasm.Parse(c.Binary)
			if err == nil {
				err = wasm.Validate(m)
			}
			name := s.Name + ":" + strconv.Itoa(c.Line)
			want := c.Type != "assert_invalid" && c.Type != "assert_malformed"
			if _, ok := specExceptions[name]; ok {
				want = !want
			}
			if want {
				valid++
			} else {
				bad++
			}
			if want != (err == nil) {
				t.Errorf("%s %s %q: %v", name, c.Type, c.Text, err)
			}
		}
	}
	if valid < 1500 || bad < 2500 {
		t.Errorf("%d valid and %d bad modules: tests are missing", valid, bad)
	}
}
