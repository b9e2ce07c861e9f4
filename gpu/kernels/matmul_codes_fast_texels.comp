#include "common.glsl"
#define TEXEL
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_codes.glsl"
#include "matmul_texels.glsl"
