#define SUBGROUP
#include "common.glsl"
#include "heads_join.glsl"
