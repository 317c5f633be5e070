// base/use_count.h — counts of references to an object. Whoever gives up the last one sees all that
// the others did with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

static inline void rondo__reference_take(atomic_int *count) {
    (void)atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

// True: that was the last one.
static inline bool rondo__reference_drop(atomic_int *count) {
    return atomic_fetch_sub_explicit(count, 1, memory_order_acq_rel) == 1;
}
