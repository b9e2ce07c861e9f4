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

// The dialects. GLES 3.1 cannot forbid contraction.
const (
	GLSL430 Dialect = iota
	GLSL320ES
	GLSL310ES
)
