#include "common.glsl"
#define TEXEL
#define FAST
#include "numerics_fast.glsl"
#define KV_F16
#include "attention.glsl"
