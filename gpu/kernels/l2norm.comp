#define NORM_L2
#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"
#include "act.glsl"
#include "norm.glsl"
