// program/row_map.h — a value as rows of another value in another order.
//
//   x [1, 64, 64, 96] ── Slice, Concat ── Reshape ── Transpose ── Reshape ── windows [64, 64, 96]
//
// Row i of the windows is row index[i] of x, where a row is as wide as x's last extent. Moves that
// keep such rows whole only change the list, so that a chain of any length is one Gather.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "program/edit.h"

typedef struct rondo__row_map {
    int32_t base;    // the value whose rows they are; RONDO__VALUE_NONE: nothing is known
    int64_t width;   // of a row, in elements
    int64_t rows;    // of the base
    int64_t count;   // of the list
    int32_t *index;  // `count` rows of the base; NULL: all of them in order
    int32_t moves;   // nodes on the way that move something
    bool is_moved;   // the way in the program no longer leads there: the base is another
    bool is_free;    // all rows of the base once, and what works row by row may go before
} rondo__row_map;

// The value as it is: its own rows in order. False: it has none, or too many for a list.
bool rondo__row_map_begin(const rondo_program *program, int32_t value, rondo__row_map *out_map);

// What the node's output 0 is, whose inputs are as `inputs` says, one for each. *out_map is cleared
// (its base is RONDO__VALUE_NONE) where the node is no move of whole rows of one value.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__row_map_apply(const rondo_program *program,
                                                 const rondo__node *node,
                                                 const rondo__row_map *const *inputs,
                                                 rondo__row_map *out_map);

// A map of its own with the same list.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__row_map_copy(const rondo__row_map *map,
                                                rondo__row_map *out_copy);
void rondo__row_map_deinit(rondo__row_map *map);

// Whether the list has each row of the base once.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__row_map_is_whole(const rondo__row_map *map, bool *out_is_whole);

// The rows of `first` in the order in which `second` has all rows of its base: what stands beside
// row j of that base where both maps' values stand beside each other. `second` has each row once.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__row_map_beside(const rondo__row_map *first,
                                                  const rondo__row_map *second,
                                                  rondo__row_map *out_map);

// Whether both are the same rows of the same value.
bool rondo__row_map_is_equal(const rondo__row_map *map, const rondo__row_map *other);
