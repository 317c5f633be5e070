// kernel/cuda/arrange/cuda_sort.h — the steps that sort lines of keys; see sort.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

typedef struct rondo__cuda_sorted {
    rondo__address keys;   // u64 [lines, kept]
    rondo__address order;  // u32 [lines, kept]: where in its line an element stood
    int64_t kept;          // the limit, or the whole length
} rondo__cuda_sorted;

// Sorts u64 `keys` [lines, length] and keeps the first `limit` of each line. False,
// and refused, when a line is too long.
bool rondo__cuda_add_sort(rondo__cuda_kernel *kernel, rondo__address keys, int64_t lines,
                          int64_t length, int64_t limit, rondo__cuda_sorted *out_sorted);
