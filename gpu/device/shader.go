package device

// Shader is one compute kernel as gpu/kernels holds it: SPIR-V for Vulkan and the text
// for OpenGL and OpenGL ES, both made from the same .comp file.
type Shader struct {
	Name       string     // file name without .comp: "matvec_q4_k"
	SPIRV      []byte     // for Vulkan 1.1
	GLSL       string     // text with includes resolved, without version line and constants; see Text
	Bindings   []Binding  // by binding number, without gaps
	ParamBytes int        // size of the parameter block
	Constants  []Constant // constant 0 is WG, the invocations of a workgroup
	Shared     int        // bytes of shared memory with the default constants
}

// Binding is one storage buffer of a shader.
type Binding struct {
	Name     string
	ReadOnly bool
}

// Constant is a specialisation constant (Vulkan) or a textual one (OpenGL): an unsigned
// integer that is fixed when the kernel is compiled. Its number is its index.
type Constant struct {
	Name    string
	Default uint32
}

// Dialect is a shading language that Text can write.
type Dialect uint8

// The dialects. GLES 3.1 cannot forbid contraction.
const (
	GLSL430 Dialect = iota
	GLSL320ES
	GLSL310ES
)
