// support/drawn_seed.h — the seed of random tests that are given none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// The environment variable RONDO_TEST_SEED, otherwise a number by the clock; never 0. Who takes it
// prints it.
uint64_t draw_seed(void);
