#include "common.glsl"
#define TEXEL
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_q5_0.glsl"
#include "matmul_texels.glsl"
