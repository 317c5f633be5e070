// base/clock.h — a monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// Nanoseconds since an arbitrary start; never goes back.
uint64_t rondo__clock_now_ns(void);
