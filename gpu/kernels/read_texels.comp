#include "common.glsl"
#define TEXEL
#include "texels.glsl"
#include "read.glsl"
