#include "common.glsl"

// out[i] = x + 2·y + 3·z + 4·w of texel i of the first buffer, plus word i of the third.

CONSTANT(0, WG, 64)
LOCAL_SIZE

PARAMS uniform Params { uint count; } p;
TEXELS(0) uniform usamplerBuffer src;
STORAGE(1) buffer Out { uint result[]; };
TEXELS(2) uniform usamplerBuffer add;

void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < p.count) {
		uvec4 t = texelFetch(src, int(i));
		result[i] = t.x + 2u * t.y + 3u * t.z + 4u * t.w + texelFetch(add, int(i / 4u))[i % 4u];
	}
}
