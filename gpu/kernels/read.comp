#include "common.glsl"
#include "texels.glsl"
#include "read.glsl"
