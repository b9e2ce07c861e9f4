#define SUBGROUP
#include "common.glsl"
#include "heads_top.glsl"
