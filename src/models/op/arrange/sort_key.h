// op/arrange/sort_key.h — unsigned keys for elements of any dtype, ordered like the elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "rondo/tensor.h"

// Keys of the elements first, first + step, ...: equal elements have equal keys (-0 is 0); NaN
// comes after all numbers, as in numpy. Keys of one dtype compare with each other.
void rondo__sort_keys(const rondo_tensor *tensor, int64_t first, int64_t step, int64_t count,
                      uint64_t *keys);
