// doctor/analysis/doctor_period.h — the period of a sequence of tokens that repeats, more or less.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rondo__doctor_period {
    size_t length;  // 0: none was found
    double match;   // the share of tokens that are those of a period before
} rondo__doctor_period;

// Looks at `count` tokens, the latest last. A period must have been seen three times over its
// matching stretch; layers that repeat inside a step are no step. Odd tokens are those by which
// steps are parted: a period that mostly matches none of them, where there are some, is none.
//
// Returns false when there was no memory to look.
bool rondo__doctor_find_period(const uint64_t *tokens, size_t count,
                               rondo__doctor_period *out_period);
