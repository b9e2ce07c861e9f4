package device

import (
	"fmt"
	"slices"
	"strings"
)

// Shader is one compute kernel as gpu/kernels holds it: SPIR-V for Vulkan and the text
// for OpenGL and OpenGL ES, both made from the same .comp file.
type Shader struct {
	Name       string     // file name without .comp: "matvec_q4_k"
	SPIRV      []byte     // for Vulkan 1.1
	GLSL       string     // text with includes resolved, without version line and constants; see Text. "": for Vulkan alone
	Bindings   []Binding  // by binding number, without gaps
	ParamBytes int        // size of the parameter block
	Constants  []Constant // constant 0 is WG, the invocations of a workgroup
	// Needs is what the kernel makes use of beyond the floor, "" in the base set. Such a
	// kernel is a variant: Base names the kernel of the base set that it can stand for,
	// with the same bindings, parameters, constants and results, to the bit.
	Needs Ability
	Base  string
	// Shared gives the bytes of shared memory with the values of all constants; nil: none.
	// See SharedBytes.
	Shared func(c []uint32) int
}

// Ability is something beyond the floor that variants of kernels make use of.
type Ability string

// The abilities.
const (
	Subgroups Ability = "subgroup" // Caps.Subgroup: sums and maxima over a subgroup
	Dot4      Ability = "dot4"     // Caps.Dot4; Vulkan alone has it
)

// Abilities lists all of them.
func Abilities() []Ability { return []Ability{Subgroups, Dot4} }

// Has tells whether a device has an ability. All have what the base set needs: none.
func (c Caps) Has(a Ability) bool {
	switch a {
	case "":
		return true
	case Subgroups:
		return c.Subgroup > 0
	case Dot4:
		return c.Dot4
	}
	return false
}

// Binding is one buffer of a shader: a storage buffer, or with Texels a buffer that is
// read by texel fetches, four words each (a uniform texel buffer of R32G32B32A32_UINT in
// Vulkan, in OpenGL a buffer texture of RGBA32UI in the texture unit with the binding's
// number). Some devices read such a binding many times faster, see gpu/kernels/README.md.
type Binding struct {
	Name     string
	ReadOnly bool
	Texels   bool // only where Limits.Texels is not 0; always ReadOnly
}

// Constant is a specialisation constant (Vulkan) or a textual one (OpenGL): an unsigned
// integer that is fixed when the kernel is compiled. Its number is its index.
type Constant struct {
	Name    string
	Default uint32
}

// Dialect is a shading language that Text can write.
type Dialect uint8

// The dialects. GLES 3.1 can forbid contraction only where GL_EXT_gpu_shader5 is there.
const (
	GLSL430 Dialect = iota
	GLSL320ES
	GLSL310ES
)

func (d Dialect) String() string {
	switch d {
	case GLSL320ES:
		return "320 es"
	case GLSL310ES:
		return "310 es"
	}
	return "430"
}

// precisions are the lines an ES text needs: without them floats and integers have no
// precision or a low one.
const precisions = "precision highp float;\nprecision highp int;\n"

// preciseIfThere is for ES 3.1, which has the qualifier as an extension only. Where it
// is missing the compiler may contract, which a known-answer test must find.
const preciseIfThere = "#extension GL_EXT_gpu_shader5 : enable\n" +
	"#ifdef GL_EXT_gpu_shader5\n#define PRECISE precise\n#else\n#define PRECISE\n#endif\n"

// texels are the lines that an ES text with texel fetches needs.
const texels = "precision highp usamplerBuffer;\n"
const texelsES31 = "#extension GL_EXT_texture_buffer : enable\n#extension GL_OES_texture_buffer : enable\n"

// subgroups are the lines that a text of OpenGL needs for Subgroups.
const subgroups = "#extension GL_KHR_shader_subgroup_basic : require\n#extension GL_KHR_shader_subgroup_arithmetic : require\n"

func (s *Shader) hasTexels() bool {
	return slices.ContainsFunc(s.Bindings, func(b Binding) bool { return b.Texels })
}

// Values are the values of all constants: those given and the defaults of the rest.
// A Vulkan driver specialises with all of them, for the default of the workgroup size
// in SPIR-V is 1.
func (s *Shader) Values(constants []uint32) []uint32 {
	values := make([]uint32, len(s.Constants))
	for i, c := range s.Constants {
		values[i] = c.Default
	}
	copy(values, constants)
	return values
}

// SharedBytes is the shared memory of a workgroup with the values of the constants by
// Shader.Constants; a shorter list leaves the rest at their defaults.
func (s *Shader) SharedBytes(constants []uint32) int {
	if s.Shared == nil {
		return 0
	}
	return s.Shared(s.Values(constants))
}

// Text is the complete text of the shader in a dialect of OpenGL, with the values of
// its constants by Shader.Constants written as literals; a shorter list leaves the rest
// at their defaults. Constants are macros and not variables, because sizes in layout
// lines must be literals before GLSL 4.40.
func (s *Shader) Text(d Dialect, constants []uint32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#version %s\n", d)
	if s.Needs == Subgroups {
		b.WriteString(subgroups)
	}
	if d == GLSL310ES && s.hasTexels() {
		b.WriteString(texelsES31)
	}
	if d == GLSL310ES {
		b.WriteString(preciseIfThere)
	} else {
		b.WriteString("#define PRECISE precise\n")
	}
	if d != GLSL430 {
		b.WriteString(precisions)
		if s.hasTexels() {
			b.WriteString(texels)
		}
	}
	values := s.Values(constants)
	for i, c := range s.Constants {
		fmt.Fprintf(&b, "#define %s %du\n", c.Name, values[i])
	}
	if len(values) > 0 {
		fmt.Fprintf(&b, "#define LOCAL_SIZE layout(local_size_x = %d) in;\n", values[0])
	}
	b.WriteString(s.GLSL)
	return b.String()
}
