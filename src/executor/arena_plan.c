// executor/arena_plan.c — see arena_plan.h.
#include "executor/arena_plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

static int compare_by_size(const void *a, const void *b) {
    const rondo__block *x = *(rondo__block *const *)a;
    const rondo__block *y = *(rondo__block *const *)b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x < y ? -1 : x > y;  // the order of the list, so that plans are reproducible
}

static int compare_by_offset(const void *a, const void *b) {
    const rondo__block *x = *(rondo__block *const *)a;
    const rondo__block *y = *(rondo__block *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

rondo_status rondo__arena_plan(rondo__block *blocks, size_t block_count, size_t *out_arena_bytes) {
    *out_arena_bytes = 0;
    rondo_status status = RONDO_STATUS_OK;
    rondo__block **order = rondo__calloc(block_count + 1, sizeof *order);
    rondo__block **rivals = rondo__calloc(block_count + 1, sizeof *rivals);
    if (order == NULL || rivals == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_lists;
    }
    for (size_t i = 0; i < block_count; ++i) {
        if (blocks[i].bytes > SIZE_MAX / 4) {
            status = RONDO_FAIL(INVALID, "a value of %zu bytes does not fit into an arena",
                                blocks[i].bytes);
            goto free_lists;
        }
        order[i] = &blocks[i];
    }
    qsort(order, block_count, sizeof(rondo__block *), compare_by_size);
    size_t arena_bytes = 0;
    for (size_t i = 0; i < block_count; ++i) {
        rondo__block *block = order[i];
        size_t rival_count = 0;
        for (size_t k = 0; k < i; ++k) {
            if (order[k]->first <= block->last && block->first <= order[k]->last) {
                rivals[rival_count++] = order[k];
            }
        }
        qsort(rivals, rival_count, sizeof(rondo__block *), compare_by_offset);
        size_t need = rondo__align_up(block->bytes, RONDO__ARENA_ALIGNMENT);
        size_t end = 0;  // of the rivals seen so far
        for (size_t k = 0; k < rival_count; ++k) {
            if (rivals[k]->offset >= end && rivals[k]->offset - end >= need) {
                break;
            }
            size_t rival_end =
                rivals[k]->offset + rondo__align_up(rivals[k]->bytes, RONDO__ARENA_ALIGNMENT);
            end = rival_end > end ? rival_end : end;
        }
        block->offset = end;
        size_t block_end;
        if (!rondo__add_size(end, need, &block_end)) {
            status =
                RONDO_FAIL(INVALID, "the values alive at once do not fit into an address space");
            goto free_lists;
        }
        arena_bytes = block_end > arena_bytes ? block_end : arena_bytes;
    }
    *out_arena_bytes = arena_bytes;

free_lists:
    rondo__free(order);
    rondo__free(rivals);
    return status;
}
