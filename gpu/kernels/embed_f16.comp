#include "common.glsl"
#define F16
#include "half.glsl"
#include "texels.glsl"
#include "embed_params.glsl"
#include "widen.glsl"
#include "embed_float.glsl"
