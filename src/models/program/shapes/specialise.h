// program/shapes/specialise.h — a program for fixed input shapes: every extent that can be known
// is, and everything that can be computed ahead is a constant.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/program.h"

// What is wanted of an input's value, the more the larger.
enum { RONDO__WANT_NOTHING = 0, RONDO__WANT_BOUND = 1, RONDO__WANT_VALUE = 2 };

// Of an input that limits another: extent `axis` of it is the largest value of input `of` for which
// that value need not be known; -1: it limits none.
typedef struct rondo__value_bound {
    int32_t of, axis;
} rondo__value_bound;

// What is known and wanted of the inputs' values; each list has one entry for each input. Without
// `bounds` and `most`, what could be bounded is wanted.
typedef struct rondo__value_wants {
    const int64_t *most;         // known: no element is larger; 0: nothing is known
    uint8_t *wanted;             // found, RONDO__WANT_...; may be NULL
    rondo__value_bound *bounds;  // found, beside what is there already
} rondo__value_wants;

// Clones `source`, infers shapes from those of the inputs, folds constants, removes unused nodes.
//
// feeds       one for each program input: dtype and shape; `data` non-NULL fixes the value too (the
//             tensor is retained). A rank below 0: the shape is not known. NULL: nothing is known
//             of the inputs, only what does not depend on them is folded.
// fold_bytes  results larger than this are left to run time
// wants       may be NULL. An input is wanted where knowing its value, or that it is within its
//             bounds, would make a shape known that is not. Only inputs of at most
//             RONDO__VALUE_KEY_COUNT_MAX elements are named.
//
// In the result a value's extents are numbers, or -1 where they depend on data; has_shape is false
// where the rank does, too. Bodies of control nodes are looked into, but not changed.
//
// Errors:    BAD_DATA (shapes do not fit; record names the node), UNSUPPORTED, NO_MEMORY.
// Ownership: caller destroys *out_program; it keeps `source`'s constants alive by itself, except
//            mapped files: `source` must outlive it.
// Threads:   safe while no call changes `source`.
RONDO_MUST_USE rondo_status rondo__program_specialise(const rondo_program *source,
                                                      const rondo_tensor *feeds, size_t fold_bytes,
                                                      rondo_program **out_program,
                                                      const rondo__value_wants *wants);

enum { RONDO__VALUE_KEY_COUNT_MAX = 64 };

// What inference and kernels see of value `value`; dtype NONE for RONDO__VALUE_NONE.
void rondo__program_get_info(const rondo_program *program, int32_t value,
                             rondo__tensor_info *out_info);
// Whether type and shape of a value are known; of NONE they are.
bool rondo__program_is_known(const rondo_program *program, int32_t value);
