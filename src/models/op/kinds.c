// SPDX-License-Identifier: Apache-2.0

#include "op/kinds.h"

#include "tensor/elements.h"

static bool is_set(uint32_t mask, size_t input) {
    return (mask >> (input < 31 ? input : 31) & 1u) != 0;
}

rondo_status rondo__infer_check_kinds(const rondo__infer *infer) {
    if ((infer->op->def->flags & RONDO__OP_CONTROL) != 0) {
        return RONDO_STATUS_OK;  // its bodies say what they take
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        rondo_dtype dtype = infer->inputs[i].dtype;
        if (dtype == RONDO_DTYPE_NONE || rondo__dtype_is_plain(dtype)) {
            continue;
        }
        const rondo__op_def *def = infer->op->def;
        if (!is_set(dtype == RONDO_DTYPE_STRING ? def->strings : def->nested, i)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_check_made_kinds(const rondo__infer *infer) {
    for (size_t i = 0; i < infer->output_count; ++i) {
        const rondo__op_def *def = infer->op->def;
        if (infer->outputs[i].dtype == RONDO_DTYPE_STRING && def->strings == 0 &&
            !def->makes_strings) {
            return rondo__op_fail_unsupported(infer->op, "an output of strings");
        }
    }
    return RONDO_STATUS_OK;
}
