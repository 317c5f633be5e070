// op/image/pad.h — what negative pads leave of an axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// Negative pads cut first; padding of every mode then shows only what is left.
typedef struct rondo__kept_range {
    int64_t first;
    int64_t extent;
} rondo__kept_range;

// Of an axis that has `extent` elements, gets `begin` before them (cut off, where negative) and is
// `padded_extent` long then.
static inline rondo__kept_range rondo__pad_get_kept(int64_t extent, int64_t padded_extent,
                                                    int64_t begin) {
    const int64_t end = padded_extent - extent - begin;
    int64_t first = begin < 0 ? -begin : 0;
    const int64_t last = end < 0 ? extent + end : extent;
    first = first < extent ? first : extent;
    return (rondo__kept_range){.first = first, .extent = last > first ? last - first : 0};
}
