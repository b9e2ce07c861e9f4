#define FAST
#define ADDERS 32u // as in product_chain.glsl: a row has the same bits in a product's workgroup
#include "common.glsl"
#include "numerics_fast.glsl"
#include "act.glsl"
#include "normchain.glsl"
