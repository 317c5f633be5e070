// op/draws.h — ops that draw random numbers: which they are, and what their attributes say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"

// Whether the op draws from a generator: the random ops, and Dropout whose input says training.
bool rondo__op_draws(const rondo__op *op, const rondo__tensor_info *inputs, size_t input_count);

// The attribute `seed`, if there is one.
bool rondo__op_get_seed(const rondo__op *op, uint64_t *out_seed);

// RandomNormal: mean and scale; RandomUniform: low and high.
void rondo__op_get_distribution(const rondo__op *op, double *out_first, double *out_second);

// The ratio of Dropout from its input (NULL: the default).
//
// Errors:    BAD_DATA (not from 0 to 1).
RONDO_MUST_USE rondo_status rondo__op_get_ratio(const rondo__op *op, const rondo_tensor *input,
                                                double *out_ratio);

// The reference of Dropout in training.
RONDO_MUST_USE rondo_status rondo__op_compute_dropout(rondo__compute *compute);
