// op/rank_part.h — which elements of a tensor are a rank's.
//
// Each rank has as many, one rank's behind the other's, so that NCCL scatters and gathers them in
// one call, and each part begins at a multiple of 16 bytes. A tensor whose elements cannot be dealt
// out so is not split: all of it is every rank's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RONDO__PART_ELEMENTS = 8 };  // a part is a multiple of

static inline bool rondo__part_is_split(size_t count, int32_t size) {
    return size > 1 && count > 0 && count % ((size_t)RONDO__PART_ELEMENTS * (size_t)size) == 0;
}
