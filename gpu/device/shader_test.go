package device

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	s := &Shader{GLSL: "LOCAL_SIZE\nbody\n", Constants: []Constant{{"WG", 64}, {"TILE", 4}}}
	tests := []struct {
		d         Dialect
		constants []uint32
		want      []string
	}{
		{GLSL430, nil, []string{"#version 430\n", "#define PRECISE precise\n", "#define WG 64u\n", "#define TILE 4u\n", "local_size_x = 64)"}},
		{GLSL430, []uint32{128}, []string{"#version 430\n", "#define WG 128u\n", "#define TILE 4u\n", "local_size_x = 128)"}},
		{GLSL320ES, []uint32{32, 8}, []string{"#version 320 es\n", "precision highp float;\n", "#define PRECISE precise\n", "#define TILE 8u\n"}},
		{GLSL310ES, nil, []string{"#version 310 es\n#extension GL_EXT_gpu_shader5 : enable\n", "#define PRECISE\n", "precision highp int;\n"}},
	}
	for _, tt := range tests {
		got := s.Text(tt.d, tt.constants)
		if !strings.HasPrefix(got, tt.want[0]) || !strings.HasSuffix(got, s.GLSL) {
			t.Errorf("%s: %q", tt.d, got)
		}
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s, %v: %q is not in %q", tt.d, tt.constants, w, got)
			}
		}
	}
}

func TestTextOfTexels(t *testing.T) {
	s := &Shader{GLSL: "body\n", Bindings: []Binding{{Name: "w", ReadOnly: true, Texels: true}}}
	for d, want := range map[Dialect]string{
		GLSL320ES: "precision highp usamplerBuffer;\n",
		GLSL310ES: "#version 310 es\n#extension GL_EXT_texture_buffer : enable\n",
	} {
		if got := s.Text(d, nil); !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in %q", d, want, got)
		}
	}
	if got := s.Text(GLSL430, nil); strings.Contains(got, "precision") {
		t.Errorf("GLSL 4.30 with precisions: %q", got)
	}
}

func TestTextOfSubgroups(t *testing.T) {
	s := &Shader{GLSL: "body\n", Needs: Subgroups}
	for _, d := range []Dialect{GLSL430, GLSL320ES, GLSL310ES} {
		want := "#version " + d.String() + "\n#extension GL_KHR_shader_subgroup_basic : require\n#extension GL_KHR_shader_subgroup_arithmetic : require\n"
		if got := s.Text(d, nil); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q at the beginning", d, got, want)
		}
	}
}

func TestCapsHave(t *testing.T) {
	for a, with := range map[Ability]Caps{Subgroups: {Subgroup: 8}, Dot4: {Dot4: true}} {
		for _, b := range Abilities() {
			if got := with.Has(b); got != (a == b) {
				t.Errorf("%+v has %s: %v", with, b, got)
			}
		}
	}
	if c := (Caps{}); !c.Has("") || c.Has("none") {
		t.Error("a device without abilities has what it has not")
	}
}
