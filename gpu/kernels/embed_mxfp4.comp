#include "common.glsl"
#define EXACT
#define SMALLEST 0u
#include "half.glsl"
#include "texels.glsl"
#include "embed_params.glsl"
#include "codes.glsl"
#include "format_mxfp4.glsl"
#include "embed_block.glsl"
