#define DOT4
#include "common.glsl"
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_q8_0.glsl"
#include "matmul.glsl"
