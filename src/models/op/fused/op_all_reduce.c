// op/fused/op_all_reduce.c — rondo.AllReduce: what all ranks have, added up or averaged; and
// rondo.AllGather: each rank's part of it, of a variable of which every rank updates a part. Each
// output is that of the input at its place; kernels have a communicator, which the reference lacks.
//
//   average    1: divided by the number of ranks
//   parts      of AllReduce, for each tensor 1: what comes out is right in this rank's part alone
//              (op/rank_part.h)
//   zeros      1: and 0 in the parts of others
//   elements   of sums of scalars, for each how many elements of a tensor it stands for; where that
//              tensor has no parts all ranks have the same scalar, which stays
//   variables  of AllGather: the names of all variables of which a rank has only its part; of the
//              first AllReduce of a step: those in which each rank adds up its own gradients
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "op/half.h"
#include "op/op.h"
#include "tensor/elements.h"

static rondo_status infer_all_reduce(rondo__infer *infer) {
    const bool is_average = rondo__op_get_int(infer->op, "average", 0) != 0;
    if (infer->input_count != infer->output_count) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "it has %zu inputs and %zu outputs",
                             infer->input_count, infer->output_count);
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        const rondo_dtype dtype = infer->inputs[i].dtype;
        const bool is_whole = dtype == RONDO_DTYPE_I32 || dtype == RONDO_DTYPE_I64;
        if (!rondo__dtype_is_float(dtype) && (is_average || !is_whole)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, dtype, &infer->inputs[i].shape));
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_all_reduce(rondo__compute *compute) {
    return RONDO_OP_FAIL(compute->op, UNSUPPORTED,
                         "it needs the other ranks, and so an executor with options.communicator");
}

static rondo_status infer_all_gather(rondo__infer *infer) {
    if (infer->input_count != infer->output_count) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "it has %zu inputs and %zu outputs",
                             infer->input_count, infer->output_count);
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        const rondo_dtype dtype = infer->inputs[i].dtype;
        if (!rondo__dtype_is_float(dtype)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, dtype, &infer->inputs[i].shape));
    }
    return RONDO_STATUS_OK;
}

static const char *const attributes[] = {"average", "parts",     "zeros", "elements",
                                         "step",    "variables", NULL};
static const char *const gather_attributes[] = {"variables", NULL};

const rondo__op_def rondo__op_table_all_reduce[] = {
    RONDO_OP_ROW(FUSED, AllReduce, 1, RONDO_OP_OPSET_MAX, 1, 240, 1, 240,
                 .flags = RONDO__OP_INTERNAL | RONDO__OP_IMPURE | RONDO__OP_NATIVE_HALF,
                 .capture = RONDO__CAPTURE_YES, .attributes = attributes, .infer = infer_all_reduce,
                 .compute = compute_all_reduce, .half = {HALF_STAYS, HALF_PLAIN, HALF_TRAINED}),
    RONDO_OP_ROW(FUSED, AllGather, 1, RONDO_OP_OPSET_MAX, 1, 240, 1, 240,
                 .flags = RONDO__OP_INTERNAL | RONDO__OP_IMPURE | RONDO__OP_NATIVE_HALF,
                 .capture = RONDO__CAPTURE_YES, .attributes = gather_attributes,
                 .infer = infer_all_gather, .compute = compute_all_reduce,
                 .half = {HALF_STAYS, HALF_PLAIN, HALF_GATHERED}),
    {.name = NULL},
};
