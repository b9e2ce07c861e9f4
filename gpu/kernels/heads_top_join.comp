#include "common.glsl"
#include "heads_top_join.glsl"
