#include "common.glsl"
#define EXACT
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "codes.glsl"
#include "format_iq4_nl.glsl"
#include "matmul.glsl"
