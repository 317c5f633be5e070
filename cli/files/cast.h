// cast.h — a tensor of another element type, where every value survives.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "rondo/tensor.h"

// Converts *tensor to `dtype`. Reals may be rounded to a narrower real type, as long as finite
// values stay finite; whole numbers must fit, and reals that become whole numbers must be whole.
// Otherwise prints which element does not survive, beginning with `label`, and returns false.
bool cli_cast(const char *label, rondo_dtype dtype, rondo_tensor *tensor);
