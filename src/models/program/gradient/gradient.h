// program/gradient/gradient.h — reverse mode: nodes that compute how a value changes with others.
//
//   x ──> MatMul ──> Relu ──> ... ──> y          the program as it is
//   dx <── MatMul <── Where <── ... <── 1        what is appended, of ops that exist
//
// Each op has a rule (the tables of gradient_rules.c) that appends nodes: from what is known of the
// change of y with the op's outputs to the same of its inputs. Where a value has several users the
// parts are added. Rules use the values of the program again (a Relu its result, a MatMul its
// factors), so these live until the way back has passed them, unless they are marked to be computed
// once more (`recompute`). All of it is nodes of a program: it runs, is captured and saved as any
// other, and may be differentiated again.
//
// Shapes need not be known: a rule that wants numbers appends the nodes that compute them (Shape,
// Gather, ...), which a plan folds. Rules want ranks and types, which are inferred here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "program/program.h"

typedef struct rondo__gradient_request {
    int32_t y;          // what changes
    int32_t seed;       // how something behind changes with y, of y's shape; NONE: ones
    const int32_t *xs;  // with what it changes
    size_t x_count;
    const int32_t *kept;  // values that are not looked behind: no change comes through them
    size_t kept_count;
    const char *const *recompute;  // patterns of nodes that run once more on the way back
    size_t recompute_count;
} rondo__gradient_request;

// Appends the nodes that compute the changes of y with each of xs.
//
// out_values  one for each of xs; zeros where y does not depend on it.
//
// Errors:    UNSUPPORTED (an op without a gradient between some x and y: op, node and path; an
//            attribute or shape that its rule does not know), BAD_DATA (shapes that do not fit),
//            NO_MEMORY. Nodes may have been appended before: the caller takes them back.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_add_gradients(rondo_program *program,
                                                         const rondo__gradient_request *request,
                                                         int32_t *out_values);
