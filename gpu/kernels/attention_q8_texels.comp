#include "common.glsl"
#define TEXEL
#include "numerics.glsl"
#define KV_Q8
#include "attention.glsl"
