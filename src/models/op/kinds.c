// op/kinds.c — see kinds.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/kinds.h"

#include <stdio.h>

#include "tensor/elements.h"
#include "tensor/narrow.h"

static bool is_set(uint32_t mask, size_t input) {
    return (mask >> (input < 31 ? input : 31) & 1u) != 0;
}

// Inputs of this type that the op takes.
static uint32_t get_inputs(const rondo__op_def *def, rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_STRING     ? def->strings
           : rondo__dtype_is_nested(dtype) ? def->nested
           : rondo__dtype_is_narrow(dtype) ? def->moved | def->narrow
                                           : def->moved;
}

// Whether an op may make this narrow or complex type although no input has it. An op on narrow
// numbers makes no complex ones.
static bool may_make(const rondo__op_def *def, rondo_dtype dtype) {
    return def->makes_narrow && (rondo__dtype_is_narrow(dtype) || def->narrow == 0);
}

// Numbers that C calculates with, and f16 and bf16, which become such.
static bool is_usual(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_NONE && dtype < RONDO_DTYPE_STRING;
}

rondo_status rondo__infer_check_kinds(const rondo__infer *infer) {
    const uint32_t flags = infer->op->def->flags;
    if ((flags & RONDO__OP_CONTROL) != 0) {
        return RONDO_STATUS_OK;  // its bodies say what they take
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        rondo_dtype dtype = infer->inputs[i].dtype;
        // The ops that passes make of moves, and a program's own ops, take all plain types.
        if (is_usual(dtype) || ((flags & (RONDO__OP_INTERNAL | RONDO__OP_USER)) != 0 &&
                                rondo__dtype_is_plain(dtype))) {
            continue;
        }
        const uint32_t inputs = get_inputs(infer->op->def, dtype);
        if (!is_set(inputs, i)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_check_made_kinds(const rondo__infer *infer) {
    const uint32_t flags = infer->op->def->flags;
    for (size_t i = 0; i < infer->output_count; ++i) {
        const rondo_dtype dtype = infer->outputs[i].dtype;
        const rondo__op_def *def = infer->op->def;
        if (is_usual(dtype) || rondo__dtype_is_nested(dtype) ||
            (flags & (RONDO__OP_CONTROL | RONDO__OP_INTERNAL | RONDO__OP_USER)) != 0) {
            continue;
        }
        const bool is_text = dtype == RONDO_DTYPE_STRING;
        if (is_text ? def->strings == 0 && !def->makes_strings
                    : def->moved == 0 && !may_make(def, dtype)) {
            char detail[64];
            (void)snprintf(detail, sizeof detail, "an output of %s",
                           is_text ? "strings" : rondo_dtype_get_name(dtype));
            return rondo__op_fail_unsupported(infer->op, detail);
        }
    }
    return RONDO_STATUS_OK;
}
