#include "common.glsl"
#include "numerics.glsl"
#include "act.glsl"
#include "softcap.glsl"
