#define NORM_RMS
#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"
#include "act.glsl"
#include "norm.glsl"
