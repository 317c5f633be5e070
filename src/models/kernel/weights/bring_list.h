// kernel/weights/bring_list.h — weights that are brought to a GPU in each run instead of staying
// there: the forms that kernels want of them, in pinned memory, and for which inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/weights/weight_store.h"

typedef struct rondo__bring {
    size_t node;   // of the plan's program
    size_t input;  // of the node
    const void *from;
    size_t bytes;
} rondo__bring;

typedef struct rondo__bring_list {
    rondo__weight_list weights;  // of a store in pinned memory
    size_t count, capacity;
    rondo__bring *list;
} rondo__bring_list;

// Has the form brought for an input; once is enough.
//
// Errors:    as rondo__weight_list_add.
// Threads:   one thread per list.
RONDO_MUST_USE rondo_status rondo__bring_list_add(rondo__bring_list *list, size_t node,
                                                  size_t input, const rondo__weight_want *want);
void rondo__bring_list_deinit(rondo__bring_list *list);
