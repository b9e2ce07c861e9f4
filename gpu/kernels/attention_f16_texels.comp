#include "common.glsl"
#define TEXEL
#include "numerics.glsl"
#define KV_F16
#include "attention.glsl"
