#include "common.glsl"
#define TEXEL
#include "numerics.glsl"
#define KV_F32
#include "attention.glsl"
