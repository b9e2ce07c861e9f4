#define KV_F16
#include "common.glsl"
#include "half.glsl"
#include "act.glsl"
#include "kv.glsl"
#include "kvstore.glsl"
