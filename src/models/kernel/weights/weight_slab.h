// kernel/weights/weight_slab.h — host memory for many forms of constants, in a few large pieces.
//
// A network's weights pass by once in each run, so what counts is how fast they are read; and on
// pages of 4 KiB finding the pages takes longer than reading them: 100 MB in a virtual machine
// 9 ms, on pages of 2 MiB 4 ms. The system gives large pages to large pieces only. Pieces grow with
// what there is, so that a small network takes little.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_WEIGHTS_WEIGHT_SLAB_H
#define RONDO_KERNEL_WEIGHTS_WEIGHT_SLAB_H

#include <stddef.h>

typedef struct rondo__slab rondo__slab;

// All pieces of one owner, who guards them. Zeroed: none.
typedef struct rondo__slab_list {
    rondo__slab *newest;
    size_t total_bytes;
} rondo__slab_list;

// Zero-filled bytes that start a line of the processor's cache. What they count against is the
// caller's business: the piece counts against no budget.
//
// Errors:    NULL: NO_MEMORY, recorded.
// Ownership: give back to the same list.
void *rondo__slab_take(rondo__slab_list *list, size_t bytes, rondo__slab **out_slab);
// The last bytes of a piece free it.
void rondo__slab_give_back(rondo__slab_list *list, rondo__slab *slab);

#endif  // RONDO_KERNEL_WEIGHTS_WEIGHT_SLAB_H
