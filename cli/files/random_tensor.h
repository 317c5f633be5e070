// random_tensor.h — test data: the same for a seed everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "rondo/tensor.h"

// Makes a tensor: reals in [-1, 1), whole numbers 0 or 1, since those are most often ids, lengths
// and masks, where both are in range. Strings are numbers from 0 to 99, which are words, too.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
rondo_status cli_random_init(rondo_dtype dtype, const rondo_shape *shape, uint64_t seed,
                             rondo_tensor *out_tensor);
