#include "common.glsl"
#define TEXEL
#define FAST
#include "numerics_fast.glsl"
#define KV_F32
#include "attention.glsl"
