#include "common.glsl"
#define EXACT
#include "quantize.glsl"
