// op/math/einsum.h — the functions of Einsum, and what its equation comes down to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "op/op.h"

enum {
    RONDO__EINSUM_OPERAND_MAX = 8,
    RONDO__EINSUM_LABEL_MAX = 52 + RONDO_RANK_MAX,
};

typedef struct rondo__einsum_plan {
    size_t operand_count;
    int32_t label_count;   // labels in use, those of the output first
    int32_t output_count;  // how many of them are the output's
    int64_t extent[RONDO__EINSUM_LABEL_MAX];
    // How far an operand's element moves when the label counts up.
    int64_t step[RONDO__EINSUM_OPERAND_MAX][RONDO__EINSUM_LABEL_MAX];
    rondo_shape output;
} rondo__einsum_plan;

// Errors:    BAD_DATA (attribute equation), UNSUPPORTED (rank, input count).
RONDO_MUST_USE rondo_status rondo__einsum_make_plan(const rondo__op *op, size_t operand_count,
                                                    const rondo_shape *const *shapes,
                                                    rondo__einsum_plan *out_plan);

// Errors:    BAD_DATA (attribute equation), UNSUPPORTED (rank, input count).
RONDO_MUST_USE rondo_status rondo__einsum_infer(rondo__infer *infer);

// Errors:    as rondo__einsum_infer, and NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__einsum_compute(rondo__compute *compute);
