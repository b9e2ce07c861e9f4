#define EXACT
#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"
#include "act.glsl"
#include "normchain.glsl"
