package appliance

import (
	"os"
	"path/filepath"
	"testing"
)

func TestBestProjector(t *testing.T) {
	for _, tt := range []struct {
		model string
		names []string
		want  string
	}{
		{"gemma-3-4b-it-Q4_K_M", nil, ""},
		{"gemma-3-4b-it-Q4_K_M", []string{"mmproj-model-f16.gguf"}, "mmproj-model-f16.gguf"},
		{"gemma-3-4b-it-Q4_K_M", []string{"mmproj.gguf"}, "mmproj.gguf"},
		{"gemma-3-4b-it-Q4_K_M", []string{"mmproj-BF16.gguf", "mmproj-F32.gguf"}, ""},
		{"gemma-3-4b-it-Q4_K_M", []string{"mmproj-gemma-3-4b-it-f32.gguf", "mmproj-gemma-3-4b-it-f16.gguf", "mmproj-smolvlm.gguf"}, "mmproj-gemma-3-4b-it-f16.gguf"},
		{"gemma-3-4b-it-Q4_K_M", []string{"mmproj-gemma-3-12b-it-f16.gguf", "gemma-3-4b-it.mmproj-q8_0.gguf"}, "gemma-3-4b-it.mmproj-q8_0.gguf"},
		{"llama", []string{"mmproj-gemma-3-4b-it-f16.gguf"}, ""},
	} {
		if got := bestProjector(tt.model, tt.names); got != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.model, tt.names, got, tt.want)
		}
	}
}

func TestFindEncoder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model, enc, exe := write("m.gguf", "GGUFmodel"), write("mmproj-f16.gguf", "GGUFencoder"), write("exe", "program")
	if f, ok, err := FindEncoder(Found{Path: model}, ""); err != nil || !ok || f != (EncoderFile{Path: enc}) {
		t.Errorf("beside the model: %+v, %v, %v", f, ok, err)
	}
	if f, ok, _ := FindEncoder(Found{Path: model}, "other.gguf"); !ok || f != (EncoderFile{Path: "other.gguf", Named: true}) {
		t.Errorf("named: %+v, %v", f, ok)
	}
	if f, ok, _ := FindEncoder(Found{Path: model}, NoEncoder); ok {
		t.Errorf("none: %+v", f)
	}
	out := filepath.Join(dir, "out")
	for _, with := range []string{"", enc} {
		if err := AppendModel(out, exe, Bundled{Model: model, Encoder: with}, nil); err != nil {
			t.Fatal(err)
		}
		f, ok, err := FindEncoder(Found{Path: out, Source: "embedded"}, "")
		if err != nil || ok != (with != "") {
			t.Fatalf("inside, with %q: %+v, %v, %v", with, f, ok, err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if ok && (f.Offset%embedAlign != 0 || string(b[f.Offset:f.Offset+11]) != "GGUFencoder") {
			t.Errorf("inside: %+v", f)
		}
		offset, size, ok, err := Embedded(out)
		if err != nil || !ok || string(b[offset:offset+size]) != "GGUFmodel" {
			t.Errorf("the model is at %d, %d bytes, %v, %v", offset, size, ok, err)
		}
	}
	if err := AppendModel(out, exe, Bundled{Model: model, Encoder: exe}, nil); err == nil {
		t.Error("a program was taken for an encoder")
	}
}
