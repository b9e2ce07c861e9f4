#include "common.glsl"
#include "numerics.glsl"
#define KV_F16
#include "attention.glsl"
