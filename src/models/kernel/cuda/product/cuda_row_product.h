// kernel/cuda/product/cuda_row_product.h — products of one row and a few, which take as long as
// reading their weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/product/cuda_matmul.h"

// What rondo.RowProduct does beside a product.
typedef struct rondo__cuda_row_extras {
    bool has_gain, has_gate;
    rondo__address gain, gate;
    float epsilon;
} rondo__cuda_row_extras;

// Whether a launch makes the product with what is beside it.
bool rondo__cuda_takes_row_product(const rondo__cuda_kernel *kernel,
                                   const rondo__cuda_matmul *matmul,
                                   const rondo__cuda_row_extras *extras);

// Whether that is a way to make the product alone.
//
// out_is_only  no other way is to be tried: what this one gains lies between launches, where no
//              contest looks
bool rondo__cuda_suits_row_product(const rondo__cuda_kernel *kernel,
                                   const rondo__cuda_matmul *matmul, bool *out_is_only);

// The launch.
void rondo__cuda_add_row_product(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *matmul,
                                 const rondo__cuda_row_extras *extras);
