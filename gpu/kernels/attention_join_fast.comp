#include "common.glsl"
#define FAST
#include "numerics_fast.glsl"
#include "attention_join.glsl"
