#define KV_F32
#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"
#include "act.glsl"
#include "kv.glsl"
#include "headstore.glsl"
