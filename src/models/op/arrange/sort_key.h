// op/arrange/sort_key.h — one unsigned key for an element of any dtype, ordered like the elements.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_OP_ARRANGE_SORT_KEY_H
#define RONDO_OP_ARRANGE_SORT_KEY_H

#include <stdint.h>

#include "rondo/tensor.h"

// Equal elements have equal keys (-0 is 0); NaN comes after all numbers, as in numpy.
uint64_t rondo__sort_key(const rondo_tensor *tensor, int64_t index);

#endif  // RONDO_OP_ARRANGE_SORT_KEY_H
