#include "common.glsl"
#define TILED
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_q2_k.glsl"
#include "matmul_tiled.glsl"
