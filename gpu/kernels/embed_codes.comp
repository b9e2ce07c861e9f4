#include "common.glsl"
#define EXACT
#include "half.glsl"
#include "texels.glsl"
#include "embed_params.glsl"
#include "codes.glsl"
#include "format_codes.glsl"
#include "embed_block.glsl"
