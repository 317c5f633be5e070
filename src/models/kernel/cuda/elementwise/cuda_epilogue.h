// kernel/cuda/elementwise/cuda_epilogue.h — what a fused convolution or product does to its sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "kernel/cuda/cuda_steps.h"
#include "kernel/cuda/normalize/cuda_row_norm.h"
#include "op/fused/fused.h"

typedef struct rondo__cuda_epilogue {
    rondo__activation activation;
    float alpha, beta;
    bool has_bias, has_residual;
    bool gates;         // the residual, activated, is a factor of the sums; of products alone
    bool has_row_bias;  // the bias has a number for each row; by the tensor core kernels alone
    rondo__address bias, residual;
    bool has_moments;  // of the rows of y, as op/fused/fused.h has them
    rondo__address moments;
} rondo__cuda_epilogue;

// Attributes activation, alpha and beta of a fused op; an op of a file has none.
bool rondo__cuda_read_epilogue(rondo__cuda_kernel *kernel, rondo__cuda_epilogue *out_epilogue);
// What the kernels for tensor cores end with: ending_arguments of rondo_ending.cuh.
typedef struct rondo__cuda_ending {
    const rondo__cuda_epilogue *epilogue;
    const rondo__cuda_row_norm *norm;  // NULL: rows are not normalised
    rondo__address y;
    int64_t pixels, filters, depth;
} rondo__cuda_ending;

// What the text of the kernel has to know of it, beside the activation and the type of y.
void rondo__define_ending(rondo__defines *defines, const rondo__cuda_ending *ending);
void rondo__step_ending(rondo__step *step, const rondo__cuda_ending *ending);
void rondo__step_epilogue_addresses(rondo__step *step, const rondo__cuda_epilogue *epilogue);
