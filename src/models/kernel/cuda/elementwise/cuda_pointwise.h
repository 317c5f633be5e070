// kernel/cuda/elementwise/cuda_pointwise.h — one generated kernel for any element-wise computation.
//
// The caller gives tensors that broadcast to the output and the statements that compute one
// element; the writer makes a kernel of exactly that. Extents are merged where all tensors allow
// it, so equal shapes become one flat loop, and elements move 16 bytes at a time where the
// innermost merged extent allows it. An operand that is constant along the innermost extent (a
// scalar, or a bias in channels-first layout) is read once per vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"
#include "kernel/cuda/cuda_steps.h"

enum { RONDO__POINTWISE_INPUTS_MAX = 16 };

typedef struct rondo__pointwise {
    size_t input_count;
    struct {
        rondo__address address;
        rondo_dtype dtype;
        rondo_shape shape;  // broadcasts to the output's
    } inputs[RONDO__POINTWISE_INPUTS_MAX];
    rondo__address output;
    rondo_dtype output_dtype;
    rondo_shape output_shape;
    // CUDA C statements over x0, x1, ... (in compute types: float for f16 and bf16, bool for bool)
    // that assign `y`, the output in its compute type.
    rondo__text body;
    rondo__fault fault;  // that they tell of, as `a.told.tell()`; 0: none
} rondo__pointwise;

// What texts with narrow types need, by the attributes of a Cast or QuantizeLinear.
void rondo__cuda_define_narrow(rondo__defines *defines, const rondo__op *op);
// Adds the launch and frees the body, also on failure.
void rondo__cuda_add_pointwise(rondo__cuda_kernel *kernel, rondo__pointwise *pointwise);

// A float as CUDA C text that keeps every bit.
void rondo__pointwise_append_float(rondo__text *text, float value);
// Appends input `index` of the request.
void rondo__pointwise_take_input(rondo__pointwise *pointwise, const rondo__cuda_kernel *kernel,
                                 size_t index);
// Output `index` of the request.
void rondo__pointwise_take_output(rondo__pointwise *pointwise, const rondo__cuda_kernel *kernel,
                                  size_t index);
