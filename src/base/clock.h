// base/clock.h — a monotonic clock, and a cheaper one for what takes less than a microsecond.
#ifndef RONDO_BASE_CLOCK_H
#define RONDO_BASE_CLOCK_H

#include <stdint.h>

// Nanoseconds since an arbitrary start; never goes back.
uint64_t rondo__clock_now_ns(void);

// Ticks of the processor's counter, where it has one that runs at the same pace always (a third of
// what the clock costs); nanoseconds elsewhere. Threads: safe; on a machine whose processors do not
// agree a later reading on another one may be less.
uint64_t rondo__clock_ticks(void);
// The length of a span in nanoseconds; 0 for one that ran backwards.
uint64_t rondo__clock_ticks_to_ns(uint64_t ticks);

#endif  // RONDO_BASE_CLOCK_H
