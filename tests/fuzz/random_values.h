// fuzz/random_values.h — what the targets feed: small numbers, strings, sequences and optionals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "rondo/tensor.h"

// Makes a value of a declared type; `shape` is that of a tensor, `item_dtype` what a sequence or
// optional holds. False when memory ran out or nothing says what it holds.
bool fuzz_make_value(rondo_dtype dtype, const rondo_dtype *item_dtype, const rondo_shape *shape,
                     rondo_tensor *out_tensor);
