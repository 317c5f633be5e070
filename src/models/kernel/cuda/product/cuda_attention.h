// kernel/cuda/product/cuda_attention.h — attention wherever its operands lie, for each head
// softmax(scale * q k^T + mask) v: what rondo.Attention and the ops of op/attention come down to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"
#include "op/attention/attention_form.h"
#include "op/fused/attention.h"

// Which keys a row sees; cu/include/rondo_attention.cuh. Zero: all of them.
typedef struct rondo__cuda_sight {
    bool is_partial;
    rondo__attention_lengths lengths;
    int32_t lengths_input, total_input;
    int64_t fresh, past, keys, columns;
    bool is_causal;
    int64_t left, right;
} rondo__cuda_sight;

typedef struct rondo__cuda_attention {
    rondo__attention attention;  // its heads are those of k and v, its m and strides those of q
    int64_t group;               // heads of q for each
    rondo_dtype dtype;
    rondo__address q, k, v, y;  // the first element of each
    bool has_mask;
    rondo_dtype mask_dtype;  // `dtype`, or BOOL
    rondo__address mask;
    float softcap;  // 0: none
    bool has_sink, is_smooth;
    rondo__address sinks;
    bool zeroes_empty;
    bool has_factors;  // of heads; with unit rows alone
    rondo__address factors;
    rondo__cuda_sight sight;
} rondo__cuda_attention;

// Adds the steps of the fastest way.
void rondo__cuda_add_attention(rondo__cuda_kernel *kernel, const rondo__cuda_attention *attention);
// Defines LENGTHS, and appends a `sight_arguments` of the device text.
void rondo__cuda_define_sight(rondo__defines *defines, const rondo__cuda_sight *sight);
void rondo__cuda_push_sight(rondo__step *step, const rondo__cuda_kernel *kernel,
                            const rondo__cuda_sight *sight);
