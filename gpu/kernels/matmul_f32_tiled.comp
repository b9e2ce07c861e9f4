#include "common.glsl"
#define TILED
#define F32
#include "half.glsl"
#include "texels.glsl"
#include "product_params.glsl"
#include "matmul_float_tiled.glsl"
