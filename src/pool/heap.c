// pool/heap.c — see heap.h.
#include "pool/heap.h"

#include <string.h>

#include "base/memory.h"

// Row and column of a size in units: row = position of the highest bit, column = the four bits
// below it.
static void find_list(uint64_t units, unsigned *out_row, unsigned *out_column) {
    unsigned row = 63u - (unsigned)__builtin_clzll(units);
    *out_row = row;
    *out_column =
        row >= 4 ? (unsigned)(units >> (row - 4)) & 15u : (unsigned)(units << (4 - row)) & 15u;
}

static void link_free(rondo__heap *heap, rondo__heap_block *block) {
    unsigned row;
    unsigned column;
    find_list(block->bytes / RONDO__HEAP_UNIT, &row, &column);
    block->is_free = true;
    block->home = heap;
    block->previous = NULL;
    block->next = heap->free[row][column];
    if (block->next != NULL) {
        block->next->previous = block;
    }
    heap->free[row][column] = block;
    heap->columns[row] = (uint16_t)(heap->columns[row] | 1u << column);
    heap->rows |= UINT64_C(1) << row;
}

static void unlink_free(rondo__heap *heap, rondo__heap_block *block) {
    unsigned row;
    unsigned column;
    find_list(block->bytes / RONDO__HEAP_UNIT, &row, &column);
    block->is_free = false;
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    if (block->previous != NULL) {
        block->previous->next = block->next;
        return;
    }
    heap->free[row][column] = block->next;
    if (block->next == NULL) {
        heap->columns[row] = (uint16_t)(heap->columns[row] & ~(1u << column));
        if (heap->columns[row] == 0) {
            heap->rows &= ~(UINT64_C(1) << row);
        }
    }
}

static rondo__heap_block *get_record(rondo__heap *heap) {
    rondo__heap_block *record = heap->spare;
    if (record == NULL) {
        return rondo__calloc(1, sizeof *record);
    }
    heap->spare = record->next;
    memset(record, 0, sizeof *record);
    return record;
}

static void drop_record(rondo__heap *heap, rondo__heap_block *record) {
    record->next = heap->spare;
    heap->spare = record;
}

void rondo__heap_deinit(rondo__heap *heap) {
    while (heap->regions != NULL) {
        rondo__heap_region *region = heap->regions;
        heap->regions = region->next;
        for (rondo__heap_block *block = region->first; block != NULL;) {
            rondo__heap_block *after = block->after;
            rondo__free(block);
            block = after;
        }
        rondo__free(region);
    }
    while (heap->spare != NULL) {
        rondo__heap_block *next = heap->spare->next;
        rondo__free(heap->spare);
        heap->spare = next;
    }
    memset(heap, 0, sizeof *heap);
}

static void link_region(rondo__heap *heap, rondo__heap_region *region) {
    region->previous = NULL;
    region->next = heap->regions;
    if (region->next != NULL) {
        region->next->previous = region;
    }
    heap->regions = region;
}

static void unlink_region(rondo__heap *heap, rondo__heap_region *region) {
    if (region->next != NULL) {
        region->next->previous = region->previous;
    }
    if (region->previous != NULL) {
        region->previous->next = region->next;
    } else {
        heap->regions = region->next;
    }
}

rondo_status rondo__heap_add(rondo__heap *heap, void *base, uint64_t bytes,
                             rondo__heap_region **out_region) {
    *out_region = NULL;
    rondo__heap_region *region = rondo__calloc(1, sizeof *region);
    if (region == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__heap_block *block = get_record(heap);
    if (block == NULL) {
        rondo__free(region);
        return RONDO_STATUS_NO_MEMORY;
    }
    region->base = base;
    region->bytes = bytes;
    region->first = block;
    block->region = region;
    block->bytes = bytes;
    link_region(heap, region);
    link_free(heap, block);
    *out_region = region;
    return RONDO_STATUS_OK;
}

// The first block of the first list whose blocks all fit; NULL when there is none.
static rondo__heap_block *find_fit(const rondo__heap *heap, uint64_t units) {
    // Blocks in the list of `units` itself may be a little smaller; the next list's all fit.
    unsigned row;
    unsigned column;
    uint64_t step =
        units >= 16 ? (UINT64_C(1) << (63u - (unsigned)__builtin_clzll(units) - 4)) - 1 : 0;
    find_list(units + step, &row, &column);
    if (row >= RONDO__HEAP_ROWS) {
        return NULL;
    }
    uint32_t columns = heap->columns[row] & (uint32_t)(UINT16_MAX << column);
    if (columns == 0) {
        uint64_t rows = row + 1 < 64 ? heap->rows & (UINT64_MAX << (row + 1)) : 0;
        if (rows == 0) {
            return NULL;
        }
        row = (unsigned)__builtin_ctzll(rows);
        columns = heap->columns[row];
    }
    return heap->free[row][__builtin_ctz(columns)];
}

// A block of exactly this size, as buffers of a loop have, may sit in a list whose blocks need not
// all fit.
static rondo__heap_block *find_exact(const rondo__heap *heap, uint64_t units) {
    enum { LOOKS_MAX = 4 };  // bounds the search
    unsigned row;
    unsigned column;
    find_list(units, &row, &column);
    if (row >= RONDO__HEAP_ROWS) {
        return NULL;
    }
    rondo__heap_block *block = heap->free[row][column];
    for (int looks = 0; block != NULL && looks < LOOKS_MAX; ++looks, block = block->next) {
        if (block->bytes >= units * RONDO__HEAP_UNIT) {
            return block;
        }
    }
    return NULL;
}

static uint64_t count_units(uint64_t bytes) {
    uint64_t units = bytes / RONDO__HEAP_UNIT + (bytes % RONDO__HEAP_UNIT != 0 ? 1 : 0);
    return units > 0 ? units : 1;
}

// Takes `wanted` bytes of a free block out of its lists; the rest stays in them.
static rondo_status carve(rondo__heap *heap, rondo__heap_block *block, uint64_t wanted,
                          rondo__heap_block **out_block) {
    if (block->bytes > wanted) {
        rondo__heap_block *rest = get_record(heap);
        if (rest == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        unlink_free(heap, block);
        rest->region = block->region;
        rest->offset = block->offset + wanted;
        rest->bytes = block->bytes - wanted;
        rest->mark = block->mark;
        rest->before = block;
        rest->after = block->after;
        if (rest->after != NULL) {
            rest->after->before = rest;
        }
        block->after = rest;
        block->bytes = wanted;
        link_free(heap, rest);
    } else {
        unlink_free(heap, block);
    }
    block->region->live_count += 1;
    *out_block = block;
    return RONDO_STATUS_OK;
}

rondo_status rondo__heap_take(rondo__heap *heap, uint64_t bytes, rondo__heap_block **out_block) {
    *out_block = NULL;
    uint64_t units = count_units(bytes);
    rondo__heap_block *block = find_exact(heap, units);
    if (block == NULL) {
        block = find_fit(heap, units);
    }
    return block != NULL ? carve(heap, block, units * RONDO__HEAP_UNIT, out_block)
                         : RONDO_STATUS_OK;
}

rondo_status rondo__heap_take_marked(rondo__heap *heap, uint64_t bytes, uint64_t mark_max,
                                     rondo__heap_block **out_block) {
    *out_block = NULL;
    uint64_t units = count_units(bytes);
    unsigned first_row;
    unsigned first_column;
    find_list(units, &first_row, &first_column);
    for (unsigned row = first_row; row < RONDO__HEAP_ROWS; ++row) {
        unsigned column = row == first_row ? first_column : 0;
        for (; (heap->rows >> row & 1u) != 0 && column < RONDO__HEAP_COLUMNS; ++column) {
            for (rondo__heap_block *b = heap->free[row][column]; b != NULL; b = b->next) {
                if (b->mark <= mark_max && b->bytes >= units * RONDO__HEAP_UNIT) {
                    return carve(heap, b, units * RONDO__HEAP_UNIT, out_block);
                }
            }
        }
    }
    return RONDO_STATUS_OK;
}

// Lets `block` swallow its neighbour `after`.
static void merge_after(rondo__heap *heap, rondo__heap_block *block) {
    rondo__heap_block *after = block->after;
    block->mark = after->mark > block->mark ? after->mark : block->mark;
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after != NULL) {
        block->after->before = block;
    }
    drop_record(heap, after);
}

static bool is_free_in(const rondo__heap *heap, const rondo__heap_block *block) {
    return block != NULL && block->is_free && block->home == heap;
}

static void merge_and_link(rondo__heap *heap, rondo__heap_block *block) {
    if (is_free_in(heap, block->after)) {
        unlink_free(heap, block->after);
        merge_after(heap, block);
    }
    if (is_free_in(heap, block->before)) {
        block = block->before;
        unlink_free(heap, block);
        merge_after(heap, block);
    }
    link_free(heap, block);
}

void rondo__heap_give(rondo__heap *heap, rondo__heap_block *block) {
    block->region->live_count -= 1;
    merge_and_link(heap, block);
}

void rondo__heap_absorb(rondo__heap *heap, rondo__heap *from) {
    while (from->rows != 0) {
        unsigned row = (unsigned)__builtin_ctzll(from->rows);
        unsigned column = (unsigned)__builtin_ctz(from->columns[row]);
        rondo__heap_block *block = from->free[row][column];
        unlink_free(from, block);
        block->mark = 0;
        merge_and_link(heap, block);
    }
}

bool rondo__heap_is_whole(const rondo__heap *heap, const rondo__heap_region *region) {
    return region->first->after == NULL && is_free_in(heap, region->first);
}

void rondo__heap_remove(rondo__heap *heap, rondo__heap_region *region) {
    unlink_free(heap, region->first);
    unlink_region(heap, region);
    rondo__free(region->first);  // no spare: regions that come and go would pile them up
    rondo__free(region);
}

void rondo__heap_move(rondo__heap *heap, rondo__heap_region *region, rondo__heap *to) {
    unlink_free(heap, region->first);
    unlink_region(heap, region);
    link_region(to, region);
    link_free(to, region->first);
}

static bool is_listed(const rondo__heap *heap, const rondo__heap_block *block) {
    unsigned row;
    unsigned column;
    find_list(block->bytes / RONDO__HEAP_UNIT, &row, &column);
    for (const rondo__heap_block *b = heap->free[row][column]; b != NULL; b = b->next) {
        if (b == block) {
            return (heap->rows >> row & 1u) != 0 && (heap->columns[row] >> column & 1u) != 0;
        }
    }
    return false;
}

static size_t count_listed(const rondo__heap *heap) {
    size_t count = 0;
    for (size_t row = 0; row < RONDO__HEAP_ROWS; ++row) {
        for (size_t column = 0; column < RONDO__HEAP_COLUMNS; ++column) {
            for (const rondo__heap_block *b = heap->free[row][column]; b != NULL; b = b->next) {
                count += 1;
            }
        }
    }
    return count;
}

bool rondo__heap_check_shared(const rondo__heap *heap, const rondo__heap *shared) {
    size_t count = 0;
    for (const rondo__heap_region *region = heap->regions; region != NULL; region = region->next) {
        for (const rondo__heap_block *block = region->first; block != NULL; block = block->after) {
            count += is_free_in(shared, block) ? 1 : 0;
        }
    }
    return count == count_listed(shared);
}

bool rondo__heap_check(const rondo__heap *heap) {
    for (const rondo__heap_region *region = heap->regions; region != NULL; region = region->next) {
        uint64_t end = 0;
        uint64_t live = 0;
        for (const rondo__heap_block *block = region->first; block != NULL; block = block->after) {
            if (block->region != region || block->offset != end || block->bytes == 0 ||
                block->bytes % RONDO__HEAP_UNIT != 0 ||
                (block->after != NULL && block->after->before != block) ||
                (block->is_free && is_free_in(block->home, block->after)) ||
                (block->is_free && !is_listed(block->home, block))) {
                return false;
            }
            end += block->bytes;
            live += block->is_free ? 0 : 1;
        }
        if (end != region->bytes || live != region->live_count) {
            return false;
        }
    }
    return rondo__heap_check_shared(heap, heap);
}
