// base/clock.h — a monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BASE_CLOCK_H
#define RONDO_BASE_CLOCK_H

#include <stdint.h>

// Nanoseconds since an arbitrary start; never goes back.
uint64_t rondo__clock_now_ns(void);

#endif  // RONDO_BASE_CLOCK_H
