// op/arrange/sort_key.h — unsigned keys for elements of any dtype, ordered like the elements; and
// what comes first by them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "rondo/tensor.h"

// Keys of the elements first, first + step, ...: equal elements have equal keys (-0 is 0); NaN
// comes after all numbers, as in numpy. Keys of one dtype compare with each other.
void rondo__sort_keys(const rondo_tensor *tensor, int64_t first, int64_t step, int64_t count,
                      uint64_t *keys);

typedef struct rondo__sort_item {
    uint64_t key;
    int64_t index;
} rondo__sort_item;

// Ties go to the lower index.
static inline int rondo__sort_compare(const void *a_, const void *b_) {
    const rondo__sort_item *a = a_;
    const rondo__sort_item *b = b_;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

// Moves item `at` of a heap down to its place; item 0 is the one that comes first.
void rondo__sort_sift_down(rondo__sort_item *heap, int64_t count, int64_t at);
