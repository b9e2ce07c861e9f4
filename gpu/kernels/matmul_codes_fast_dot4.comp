#define DOT4
#include "common.glsl"
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_codes.glsl"
#include "matmul.glsl"
