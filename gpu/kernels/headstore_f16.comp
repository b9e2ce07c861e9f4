#define KV_F16
#include "common.glsl"
#include "numerics.glsl"
#include "lanes.glsl"
#include "act.glsl"
#include "kv.glsl"
#include "headstore.glsl"
