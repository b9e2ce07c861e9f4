#include "common.glsl"
#include "heads_max.glsl"
