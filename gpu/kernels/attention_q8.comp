#include "common.glsl"
#include "numerics.glsl"
#define KV_Q8
#include "attention.glsl"
