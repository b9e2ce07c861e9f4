// variant.h: the kernels of one instruction set. variant_*.c sets GL_AVX2 and the
// compiler's target, then includes this.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#include "cpu.h"
#include "numerics.h"
#include "k_widen.h"
#include "k_quant.h"
#include "k_float.h"
#include "k_whole.h"
#include "k_exact.h"
#include "k_elementwise.h"
#include "k_gather.h"
#include "k_attention.h"
#include "k_attend.h"
#include "k_heads.h"
#include "k_moe.h"
#include "k_recurrent.h"
#include "k_lowrank.h"
#include "k_scan.h"

static const gl_kernels KERNELS = {
    .name = GL_NAME,
    .ops = {[GL_OP_EMBED] = op_embed, [GL_OP_DEEPSTACK] = op_deepstack, [GL_OP_ROWS] = op_rows, [GL_OP_QUANT] = op_quant, [GL_OP_MATMUL] = op_matmul,
            [GL_OP_RMSNORM] = op_rmsnorm, [GL_OP_LAYERNORM] = op_layernorm, [GL_OP_L2NORM] = op_l2norm,
            [GL_OP_BINARY] = op_binary, [GL_OP_ADDVEC] = op_addvec, [GL_OP_SCALE] = op_scale, [GL_OP_UNARY] = op_unary,
            [GL_OP_GLU] = op_glu, [GL_OP_SOFTCAP] = op_softcap, [GL_OP_POSSCALE] = op_posscale, [GL_OP_ROPE] = op_rope,
            [GL_OP_KVSTORE] = op_kvstore, [GL_OP_ATTENTION] = op_attention, [GL_OP_ROUTE] = op_route,
            [GL_OP_EXPERTMATMUL] = op_expertmatmul, [GL_OP_EXPERTSUM] = op_expertsum, [GL_OP_SHORTCONV] = op_shortconv,
            [GL_OP_MAMBA1] = op_mamba1, [GL_OP_MAMBA2] = op_mamba2, [GL_OP_GATEDDELTA] = op_gateddelta,
            [GL_OP_LOWRANK] = op_lowrank, [GL_OP_GATHER] = op_gather, [GL_OP_HEADS] = op_heads, [GL_OP_NONE] = op_none},
    .mm = {{[GL_F32] = mm_f32, [GL_F16] = mm_f16, [GL_BF16] = mm_bf16, [GL_Q8] = mm_q8, [GL_Q8C] = mm_q8c,
            [GL_Q4] = mm_q4, [GL_Q4M] = mm_q4m, [GL_Q5] = mm_q5, [GL_Q5M] = mm_q5m, [GL_Q2K] = mm_q2k,
            [GL_Q3K] = mm_q3k, [GL_Q4K] = mm_q4k, [GL_Q5K] = mm_q5k, [GL_Q6K] = mm_q6k, [GL_NL4] = mm_nl4,
            [GL_XS4] = mm_xs4, [GL_MX4] = mm_mx4},
           {[GL_F32] = me_f32, [GL_F16] = me_f16, [GL_BF16] = me_bf16, [GL_Q8] = mx_q8, [GL_Q8C] = mx_q8c,
            [GL_Q4] = mx_q4, [GL_Q4M] = mx_q4m, [GL_Q5] = mx_q5, [GL_Q5M] = mx_q5m, [GL_Q2K] = mx_q2k,
            [GL_Q3K] = mx_q3k, [GL_Q4K] = mx_q4k, [GL_Q5K] = mx_q5k, [GL_Q6K] = mx_q6k, [GL_NL4] = mx_nl4,
            [GL_XS4] = mx_xs4, [GL_MX4] = mx_mx4}},
    .moments = scan_moments,
    .mass = scan_mass,
    .limit = scan_limit,
    .above = scan_above,
};
