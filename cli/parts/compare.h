// compare.h — a computed tensor against the expected one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/tensor.h"

// A real number passes when |difference| <= absolute + scale * (largest expected magnitude)
// + relative * |expected|; for bf16, a `relative` that is not 0 counts as at least two units in
// the last place (2^-6). With `norm`, the whole tensor's |difference| (as a Euclidean norm) must
// also be at most `norm` of |expected|, beside what `absolute` allows each element.
// Whole numbers, booleans and strings must be equal. NaN and infinities must be where they are
// expected. Sequences and optionals are compared item by item.
typedef struct cli_tolerance {
    double relative;
    double absolute;
    double scale;
    double norm;  // 0: not looked at
} cli_tolerance;

typedef struct cli_comparison {
    bool is_equal;            // dtype, shape, and all elements within the tolerance
    double largest_error;     // largest |difference| of finite elements; infinite where NaN or
                              // infinity stands in the wrong place
    double largest_relative;  // largest |difference| / |expected|, likewise; infinite where only
                              // the expected one is 0
    size_t mismatch_count;    // elements outside the tolerance
    size_t first_mismatch;    // the first of them
    char reason[400];         // empty when is_equal
} cli_comparison;

cli_comparison cli_compare(const rondo_tensor *actual, const rondo_tensor *expected,
                           const cli_tolerance *tolerance);
