#define NORM_L2
#define FAST
#include "common.glsl"
#include "numerics_fast.glsl"
#include "act.glsl"
#include "norm.glsl"
