// kernel/weights/weight_slab.h — host memory for many forms of constants, in a few large pieces.
//
// A run reads a network's weights once, so the speed of reading counts. On pages of 4 KiB the
// processor takes longer to find the pages than to read them: 9 ms for 100 MB in a virtual machine,
// against 4 ms on pages of 2 MiB. The system gives large pages to large pieces only. Pieces grow
// with what there is, so that a small network takes little.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

typedef struct rondo__slab rondo__slab;

// All pieces of one owner, which guards them by its lock. Zeroed: none.
typedef struct rondo__slab_list {
    rondo__slab *newest;
    size_t total_bytes;
} rondo__slab_list;

// Zero-filled bytes that start a line of the processor's cache. The caller counts them against its
// budget; the piece itself counts against none.
//
// Errors:    NULL: NO_MEMORY, recorded.
// Ownership: give back to the same list.
void *rondo__slab_take(rondo__slab_list *list, size_t bytes, rondo__slab **out_slab);
// The last bytes of a piece free it.
void rondo__slab_give_back(rondo__slab_list *list, rondo__slab *slab);
