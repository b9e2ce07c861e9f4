#define WHOLE
#define EXACT
#include "common.glsl"
#include "numerics.glsl"
#include "act.glsl"
#include "glu.glsl"
