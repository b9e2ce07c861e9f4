// What every kernel begins with: one spelling for the layouts of Vulkan and OpenGL. The
// macros that OpenGL's text gets from device.Shader.Text (PRECISE, LOCAL_SIZE and the
// constants) are made here for Vulkan alone.
#ifdef VULKAN
#ifdef SUBGROUP // variants (README.md); in OpenGL device.Shader.Text writes these lines
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#ifdef DOT4
#extension GL_EXT_spirv_intrinsics : require
#endif
#define PARAMS layout(push_constant)
#define STORAGE(n) layout(std430, set = 0, binding = n)
#define TEXELS(n) layout(set = 0, binding = n)
#define CONSTANT(id, name, value) layout(constant_id = id) const uint name = value;
#define LOCAL_SIZE layout(local_size_x_id = 0) in;
#define PRECISE precise
#else
#define PARAMS layout(std140, binding = 0)
#define STORAGE(n) layout(std430, binding = n)
#define TEXELS(n) layout(binding = n)
#define CONSTANT(id, name, value)
#endif

// What the workgroup wrote to shared memory is visible to all of it afterwards. All
// invocations pass it.
void sync() {
	memoryBarrierShared();
	barrier();
}
