// program/saved/data_blocks.c — see data_blocks.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/saved/data_blocks.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

enum { SLOT_COUNT_MIN = 64 };

typedef uint64_t (*hash_function)(const rondo__data_block *block);
typedef bool (*compare_function)(const rondo__data_block *a, const rondo__data_block *b);

static uint64_t hash_address(const rondo__data_block *block) {
    return rondo__hash64(RONDO__HASH_SEED, &block->bytes, sizeof block->bytes);
}

static bool has_address(const rondo__data_block *a, const rondo__data_block *b) {
    return a->bytes == b->bytes && a->byte_count == b->byte_count;
}

static uint64_t hash_content(const rondo__data_block *block) {
    return block->sum.low;
}

static bool has_content(const rondo__data_block *a, const rondo__data_block *b) {
    return a->sum.low == b->sum.low && a->sum.high == b->sum.high &&
           a->byte_count == b->byte_count && memcmp(a->bytes, b->bytes, a->byte_count) == 0;
}

typedef struct block_rule {
    hash_function hash;
    compare_function compare;
} block_rule;

static const block_rule by_address = {hash_address, has_address};
static const block_rule by_content = {hash_content, has_content};

// The slot of the block, or the free one where it belongs. There is always a free one.
static size_t *find_slot(const rondo__data_blocks *blocks, const rondo__block_map *map,
                         const block_rule *rule, const rondo__data_block *block) {
    const size_t mask = map->slot_count - 1;
    const uint64_t hash = rule->hash(block);
    size_t at = (size_t)(hash ^ hash >> 32) & mask;
    while (map->slots[at] != 0 && !rule->compare(&blocks->blocks[map->slots[at] - 1], block)) {
        at = (at + 1) & mask;
    }
    return &map->slots[at];
}

static rondo_status reserve_slots(const rondo__data_blocks *blocks, rondo__block_map *map,
                                  const block_rule *rule) {
    if (2 * (blocks->block_count + 1) <= map->slot_count) {
        return RONDO_STATUS_OK;
    }
    const size_t count = map->slot_count == 0 ? SLOT_COUNT_MIN : 2 * map->slot_count;
    size_t *slots = rondo__calloc(count, sizeof *slots);
    if (slots == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(map->slots);
    map->slots = slots;
    map->slot_count = count;
    for (size_t i = 0; i < blocks->block_count; ++i) {
        size_t *slot = find_slot(blocks, map, rule, &blocks->blocks[i]);
        *slot = *slot == 0 ? i + 1 : *slot;
    }
    return RONDO_STATUS_OK;
}

// The piece that has the block's bytes, added where there is none.
static size_t get_piece(rondo__data_blocks *blocks, const rondo__data_block *block) {
    size_t *slot = find_slot(blocks, &blocks->by_content, &by_content, block);
    if (*slot != 0) {
        return blocks->blocks[*slot - 1].piece;
    }
    const uint64_t offset = (blocks->byte_count + RONDO__DATA_ALIGNMENT - 1) /
                            RONDO__DATA_ALIGNMENT * RONDO__DATA_ALIGNMENT;
    blocks->pieces[blocks->count] = (rondo__section_piece){block->bytes, block->byte_count, offset};
    blocks->byte_count = offset + block->byte_count;
    *slot = blocks->block_count + 1;
    return blocks->count++;
}

rondo_status rondo__data_blocks_add(rondo__data_blocks *blocks, const void *bytes,
                                    size_t byte_count, uint64_t *out_offset) {
    rondo__data_block block = {.bytes = bytes, .byte_count = byte_count};
    *out_offset = 0;
    if (byte_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(reserve_slots(blocks, &blocks->by_address, &by_address));
    RETURN_IF_ERROR(reserve_slots(blocks, &blocks->by_content, &by_content));
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(blocks->pieces, blocks->capacity, blocks->count + 1));
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(blocks->blocks, blocks->block_capacity, blocks->block_count + 1));
    size_t *slot = find_slot(blocks, &blocks->by_address, &by_address, &block);
    if (*slot == 0) {
        block.sum = rondo__hash128_bytes(bytes, byte_count);
        block.piece = get_piece(blocks, &block);
        blocks->blocks[blocks->block_count++] = block;
        *slot = blocks->block_count;
    }
    *out_offset = blocks->pieces[blocks->blocks[*slot - 1].piece].offset;
    return RONDO_STATUS_OK;
}

void rondo__data_blocks_deinit(rondo__data_blocks *blocks) {
    rondo__free(blocks->pieces);
    rondo__free(blocks->blocks);
    rondo__free(blocks->by_address.slots);
    rondo__free(blocks->by_content.slots);
    *blocks = (rondo__data_blocks){0};
}
