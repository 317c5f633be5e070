// executor/state/op_span.h — an op in profiles, and copies for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdio.h>

#include "base/log/hook.h"
#include "device/copy_note.h"
#include "executor/state/plan.h"

// "Conv /layer1/conv", as the labels of recorded nodes have it; what is longer is cut.
#define RONDO__OP_TITLE "%.40s%s%.64s"
#define RONDO__OP_TITLE_OF(op) (op)->def->name, (op)->name[0] != '\0' ? " " : "", (op)->name

enum { RONDO__OP_TITLE_BYTES = 112 };

static inline void rondo__op_format_title(const rondo__op *op, char title[RONDO__OP_TITLE_BYTES]) {
    (void)snprintf(title, RONDO__OP_TITLE_BYTES, RONDO__OP_TITLE, RONDO__OP_TITLE_OF(op));
}

// `stream`: where its kernels are launched; NULL: the processor computes it. `is_next`: right
// behind the op whose span this thread ended last.
static inline rondo__hook_scope rondo__op_span_enter(const rondo__op *op, rondo_stream *stream,
                                                     bool is_next) {
    if (!rondo__hook_is_on(RONDO__HOOK_SPANS)) {
        return (rondo__hook_scope){0};
    }
    // A rest is no op of the model: it stands for the ops that had to wait, from one on.
    return op->def->id == RONDO__FUSED_Rest
               ? rondo__hook_begin_op(stream, is_next, "ops from %.64s on, planned in the run",
                                      op->name)
               : rondo__hook_begin_op(stream, is_next, RONDO__OP_TITLE, RONDO__OP_TITLE_OF(op));
}

// Whether the op needs no value of its inputs, in no type: Shape and Size. They may lie anywhere.
static inline bool rondo__op_asks_shapes(const rondo__op *op) {
    const uint32_t flags = RONDO__OP_SHAPE_ONLY | RONDO__OP_NATIVE_HALF;
    return (op->def->flags & flags) == flags;
}

// The purpose of a value's copy: an op, or `what` if `op` is NULL.
static inline rondo__copy_note rondo__plan_note_copy(const rondo__plan *plan, int32_t value,
                                                     const rondo__op *op, const char *what) {
    return (rondo__copy_note){.op = op != NULL ? op->def->name : what,
                              .name = op != NULL ? op->name : NULL,
                              .variable = plan->program->values[value].name,
                              .dtype = plan->slots[value].dtype,
                              .shape = &plan->slots[value].shape};
}
