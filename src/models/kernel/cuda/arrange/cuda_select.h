// kernel/cuda/arrange/cuda_select.h — the steps that pick elements which are not 0; see select.cu.
//
// Kernels of ops whose result's shape depends on data: op/bounds.h says where they write what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

// The elements to pick from, and where their count is written.
typedef struct rondo__cuda_selection {
    rondo__address x;
    int64_t count;
    rondo__address found;  // i64
    rondo__address sums;   // u32 by tile: picked ones before it; of one tile none
} rondo__cuda_selection;

// Where the count goes: where the request wants it, or into workspace, because no shape needs it.
rondo__address rondo__cuda_find_count(rondo__cuda_kernel *kernel);

// Counts what is not 0: selection->sums is filled in. `defines` are those of the text, the same for
// all its kernels in an op, so that it is compiled once: T, of the elements of x; RANK; W, as
// below. False, and refused, where there are 2^32 elements.
bool rondo__cuda_add_selection(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                               rondo__cuda_selection *in_out_selection);

// The sums of `sums`, u32 [tiles], before each of them, in place; their sum to `found`.
void rondo__cuda_add_scan(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                          rondo__address sums, int64_t tiles, rondo__address found);

// `places`, u32: where each picked element stands. `ranks`, u32 by element, may be NULL: the latest
// picked one up to it.
void rondo__cuda_add_places(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                            const rondo__cuda_selection *selection, rondo__address places,
                            const rondo__address *ranks);

// Defines W, the word in which rows of so many bytes are copied. Returns its bytes.
size_t rondo__cuda_define_row_word(rondo__defines *defines, size_t row_bytes);

// Copies the slices of input 0, [outer, extent, row_bytes], that stand at `places` to output 0.
void rondo__cuda_add_rows(rondo__cuda_kernel *kernel, const rondo__defines *defines, int64_t outer,
                          int64_t extent, size_t row_bytes, size_t word, rondo__address places,
                          rondo__address found);

// Workspace of so many elements.
rondo__address rondo__cuda_reserve(rondo__cuda_kernel *kernel, int64_t count, size_t bytes);
