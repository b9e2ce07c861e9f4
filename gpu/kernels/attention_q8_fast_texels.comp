#include "common.glsl"
#define TEXEL
#define FAST
#include "numerics_fast.glsl"
#define KV_Q8
#include "attention.glsl"
