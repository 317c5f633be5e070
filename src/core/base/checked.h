// base/checked.h — arithmetic on sizes: checked where they come from outside (true means it fits),
// and what rounds up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool rondo__add_size(size_t a, size_t b, size_t *out_sum) {
    return !__builtin_add_overflow(a, b, out_sum);
}

static inline bool rondo__mul_size(size_t a, size_t b, size_t *out_product) {
    return !__builtin_mul_overflow(a, b, out_product);
}

static inline bool rondo__add_i64(int64_t a, int64_t b, int64_t *out_sum) {
    return !__builtin_add_overflow(a, b, out_sum);
}

static inline bool rondo__mul_i64(int64_t a, int64_t b, int64_t *out_product) {
    return !__builtin_mul_overflow(a, b, out_product);
}

// Rounds up to a multiple of a power of two; the caller knows it fits.
static inline size_t rondo__align_up(size_t value, size_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

// Of values from 0 on and units from 1 on, whose sum fits.
static inline int64_t rondo__divide_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit;
}

static inline int64_t rondo__round_up(int64_t value, int64_t unit) {
    return rondo__divide_up(value, unit) * unit;
}

// The greatest that divides both; of 0 and b it is b.
static inline int64_t rondo__find_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
