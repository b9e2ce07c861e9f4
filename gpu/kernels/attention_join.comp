#include "common.glsl"
#include "numerics.glsl"
#include "attention_join.glsl"
