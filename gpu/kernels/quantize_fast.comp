#include "common.glsl"
#include "quantize.glsl"
