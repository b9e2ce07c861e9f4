#define WHOLE
#include "common.glsl"
#include "numerics_fast.glsl"
#include "act.glsl"
#include "glu.glsl"
