// pool/heap.c — see heap.h.
// SPDX-License-Identifier: Apache-2.0
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

static void link_free(rondo__heap *heap, rondo__heap_piece *piece) {
    unsigned row;
    unsigned column;
    find_list(piece->bytes / RONDO__HEAP_UNIT, &row, &column);
    piece->is_free = true;
    piece->home = heap;
    piece->previous = NULL;
    piece->next = heap->free[row][column];
    if (piece->next != NULL) {
        piece->next->previous = piece;
    }
    heap->free[row][column] = piece;
    heap->columns[row] = (uint16_t)(heap->columns[row] | 1u << column);
    heap->rows |= UINT64_C(1) << row;
}

static void unlink_free(rondo__heap *heap, rondo__heap_piece *piece) {
    unsigned row;
    unsigned column;
    find_list(piece->bytes / RONDO__HEAP_UNIT, &row, &column);
    piece->is_free = false;
    if (piece->next != NULL) {
        piece->next->previous = piece->previous;
    }
    if (piece->previous != NULL) {
        piece->previous->next = piece->next;
        return;
    }
    heap->free[row][column] = piece->next;
    if (piece->next == NULL) {
        heap->columns[row] = (uint16_t)(heap->columns[row] & ~(1u << column));
        if (heap->columns[row] == 0) {
            heap->rows &= ~(UINT64_C(1) << row);
        }
    }
}

static rondo__heap_piece *get_record(rondo__heap *heap) {
    rondo__heap_piece *record = heap->spare;
    if (record == NULL) {
        return rondo__calloc(1, sizeof *record);
    }
    heap->spare = record->next;
    memset(record, 0, sizeof *record);
    return record;
}

static void drop_record(rondo__heap *heap, rondo__heap_piece *record) {
    record->next = heap->spare;
    heap->spare = record;
}

void rondo__heap_deinit(rondo__heap *heap) {
    while (heap->regions != NULL) {
        rondo__heap_region *region = heap->regions;
        heap->regions = region->next;
        for (rondo__heap_piece *piece = region->first; piece != NULL;) {
            rondo__heap_piece *after = piece->after;
            rondo__free(piece);
            piece = after;
        }
        rondo__free(region);
    }
    while (heap->spare != NULL) {
        rondo__heap_piece *next = heap->spare->next;
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
    rondo__heap_piece *piece = get_record(heap);
    if (piece == NULL) {
        rondo__free(region);
        return RONDO_STATUS_NO_MEMORY;
    }
    region->base = base;
    region->bytes = bytes;
    region->first = piece;
    piece->region = region;
    piece->bytes = bytes;
    link_region(heap, region);
    link_free(heap, piece);
    *out_region = region;
    return RONDO_STATUS_OK;
}

// The first piece of the first list whose pieces all fit; NULL when there is none.
static rondo__heap_piece *find_fit(const rondo__heap *heap, uint64_t units) {
    // Pieces in the list of `units` itself may be a little smaller; the next list's all fit.
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

// A piece of exactly this size, as buffers of a loop have, may sit in a list whose pieces need not
// all fit.
static rondo__heap_piece *find_exact(const rondo__heap *heap, uint64_t units) {
    enum { LOOKS_MAX = 4 };  // bounds the search
    unsigned row;
    unsigned column;
    find_list(units, &row, &column);
    if (row >= RONDO__HEAP_ROWS) {
        return NULL;
    }
    rondo__heap_piece *piece = heap->free[row][column];
    for (int looks = 0; piece != NULL && looks < LOOKS_MAX; ++looks, piece = piece->next) {
        if (piece->bytes >= units * RONDO__HEAP_UNIT) {
            return piece;
        }
    }
    return NULL;
}

static uint64_t count_units(uint64_t bytes) {
    uint64_t units = bytes / RONDO__HEAP_UNIT + (bytes % RONDO__HEAP_UNIT != 0 ? 1 : 0);
    return units > 0 ? units : 1;
}

// Takes `wanted` bytes of a free piece out of its lists; the rest stays in them.
static rondo_status carve(rondo__heap *heap, rondo__heap_piece *piece, uint64_t wanted,
                          rondo__heap_piece **out_piece) {
    if (piece->bytes > wanted) {
        rondo__heap_piece *rest = get_record(heap);
        if (rest == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        unlink_free(heap, piece);
        rest->region = piece->region;
        rest->offset = piece->offset + wanted;
        rest->bytes = piece->bytes - wanted;
        rest->freed_at = piece->freed_at;
        rest->before = piece;
        rest->after = piece->after;
        if (rest->after != NULL) {
            rest->after->before = rest;
        }
        piece->after = rest;
        piece->bytes = wanted;
        link_free(heap, rest);
    } else {
        unlink_free(heap, piece);
    }
    piece->region->live_count += 1;
    *out_piece = piece;
    return RONDO_STATUS_OK;
}

rondo_status rondo__heap_take(rondo__heap *heap, uint64_t bytes, rondo__heap_piece **out_piece) {
    *out_piece = NULL;
    uint64_t units = count_units(bytes);
    rondo__heap_piece *piece = find_exact(heap, units);
    if (piece == NULL) {
        piece = find_fit(heap, units);
    }
    return piece != NULL ? carve(heap, piece, units * RONDO__HEAP_UNIT, out_piece)
                         : RONDO_STATUS_OK;
}

rondo_status rondo__heap_take_freed(rondo__heap *heap, uint64_t bytes, uint64_t freed_at_max,
                                    rondo__heap_piece **out_piece) {
    *out_piece = NULL;
    uint64_t units = count_units(bytes);
    unsigned first_row;
    unsigned first_column;
    find_list(units, &first_row, &first_column);
    for (unsigned row = first_row; row < RONDO__HEAP_ROWS; ++row) {
        unsigned column = row == first_row ? first_column : 0;
        for (; (heap->rows >> row & 1u) != 0 && column < RONDO__HEAP_COLUMNS; ++column) {
            for (rondo__heap_piece *b = heap->free[row][column]; b != NULL; b = b->next) {
                if (b->freed_at <= freed_at_max && b->bytes >= units * RONDO__HEAP_UNIT) {
                    return carve(heap, b, units * RONDO__HEAP_UNIT, out_piece);
                }
            }
        }
    }
    return RONDO_STATUS_OK;
}

// Lets `piece` swallow its neighbour `after`.
static void merge_after(rondo__heap *heap, rondo__heap_piece *piece) {
    rondo__heap_piece *after = piece->after;
    piece->freed_at = after->freed_at > piece->freed_at ? after->freed_at : piece->freed_at;
    piece->bytes += after->bytes;
    piece->after = after->after;
    if (piece->after != NULL) {
        piece->after->before = piece;
    }
    drop_record(heap, after);
}

static bool is_free_in(const rondo__heap *heap, const rondo__heap_piece *piece) {
    return piece != NULL && piece->is_free && piece->home == heap;
}

static void merge_and_link(rondo__heap *heap, rondo__heap_piece *piece) {
    if (is_free_in(heap, piece->after)) {
        unlink_free(heap, piece->after);
        merge_after(heap, piece);
    }
    if (is_free_in(heap, piece->before)) {
        piece = piece->before;
        unlink_free(heap, piece);
        merge_after(heap, piece);
    }
    link_free(heap, piece);
}

void rondo__heap_give(rondo__heap *heap, rondo__heap_piece *piece) {
    piece->region->live_count -= 1;
    merge_and_link(heap, piece);
}

void rondo__heap_absorb(rondo__heap *heap, rondo__heap *from) {
    while (from->rows != 0) {
        unsigned row = (unsigned)__builtin_ctzll(from->rows);
        unsigned column = (unsigned)__builtin_ctz(from->columns[row]);
        rondo__heap_piece *piece = from->free[row][column];
        unlink_free(from, piece);
        piece->freed_at = 0;
        merge_and_link(heap, piece);
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

static bool is_listed(const rondo__heap *heap, const rondo__heap_piece *piece) {
    unsigned row;
    unsigned column;
    find_list(piece->bytes / RONDO__HEAP_UNIT, &row, &column);
    for (const rondo__heap_piece *b = heap->free[row][column]; b != NULL; b = b->next) {
        if (b == piece) {
            return (heap->rows >> row & 1u) != 0 && (heap->columns[row] >> column & 1u) != 0;
        }
    }
    return false;
}

static size_t count_listed(const rondo__heap *heap) {
    size_t count = 0;
    for (size_t row = 0; row < RONDO__HEAP_ROWS; ++row) {
        for (size_t column = 0; column < RONDO__HEAP_COLUMNS; ++column) {
            for (const rondo__heap_piece *b = heap->free[row][column]; b != NULL; b = b->next) {
                count += 1;
            }
        }
    }
    return count;
}

bool rondo__heap_check_shared(const rondo__heap *heap, const rondo__heap *shared) {
    size_t count = 0;
    for (const rondo__heap_region *region = heap->regions; region != NULL; region = region->next) {
        for (const rondo__heap_piece *piece = region->first; piece != NULL; piece = piece->after) {
            count += is_free_in(shared, piece) ? 1 : 0;
        }
    }
    return count == count_listed(shared);
}

bool rondo__heap_check(const rondo__heap *heap) {
    for (const rondo__heap_region *region = heap->regions; region != NULL; region = region->next) {
        uint64_t end = 0;
        uint64_t live = 0;
        for (const rondo__heap_piece *piece = region->first; piece != NULL; piece = piece->after) {
            if (piece->region != region || piece->offset != end || piece->bytes == 0 ||
                piece->bytes % RONDO__HEAP_UNIT != 0 ||
                (piece->after != NULL && piece->after->before != piece) ||
                (piece->is_free && is_free_in(piece->home, piece->after)) ||
                (piece->is_free && !is_listed(piece->home, piece))) {
                return false;
            }
            end += piece->bytes;
            live += piece->is_free ? 0 : 1;
        }
        if (end != region->bytes || live != region->live_count) {
            return false;
        }
    }
    return rondo__heap_check_shared(heap, heap);
}
