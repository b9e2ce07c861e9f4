#define FAST
#include "common.glsl"
#include "numerics_fast.glsl"
#include "act.glsl"
#include "normchain.glsl"
