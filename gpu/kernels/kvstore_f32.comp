#define KV_F32
#include "common.glsl"
#include "act.glsl"
#include "kv.glsl"
#include "kvstore.glsl"
