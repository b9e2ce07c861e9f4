#include "common.glsl"
#include "numerics.glsl"
#define KV_F32
#include "attention.glsl"
