// op/math/scan.h — looking through rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// The position of the first greatest of `count` (at least 1) elements; NaN is greatest.
int64_t rondo__find_greatest(const float *x, int64_t count);
