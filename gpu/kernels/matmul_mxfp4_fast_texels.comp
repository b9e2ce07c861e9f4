#include "common.glsl"
#define TEXEL
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_mxfp4.glsl"
#include "matmul_texels.glsl"
