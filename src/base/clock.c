// base/clock.c — see clock.h.
//
// The pace of the counter is nowhere to be read (x86 tells it to some, and virtual machines scale
// it), so it is taken against the clock: from the first reading in the process to the conversion.
#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#ifdef RONDO_SIMD_X86
#include <cpuid.h>
#include <x86intrin.h>
#endif

enum { PACE_NS_MIN = 20000 };  // a reading of the clock is off by tens of nanoseconds

static struct {
    pthread_once_t once;
    atomic_bool is_ready;
    bool has_counter;
    uint64_t first_ticks;
    uint64_t first_ns;
} g_counter = {.once = PTHREAD_ONCE_INIT};

uint64_t rondo__clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#if defined(RONDO_SIMD_X86)
static inline uint64_t read_counter(void) {
    return __rdtsc();
}

// "Invariant": neither the processor's pace nor its sleep changes it.
static bool has_steady_counter(void) {
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
}
#elif defined(__aarch64__)
static inline uint64_t read_counter(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

static bool has_steady_counter(void) {
    return true;
}
#else
static inline uint64_t read_counter(void) {
    return rondo__clock_now_ns();
}

static bool has_steady_counter(void) {
    return false;
}
#endif

static void start_counter(void) {
    g_counter.has_counter = has_steady_counter();
    g_counter.first_ns = rondo__clock_now_ns();
    g_counter.first_ticks = g_counter.has_counter ? read_counter() : 0;
    atomic_store_explicit(&g_counter.is_ready, true, memory_order_release);
}

uint64_t rondo__clock_ticks(void) {
    if (__builtin_expect(!atomic_load_explicit(&g_counter.is_ready, memory_order_acquire), 0)) {
        (void)pthread_once(&g_counter.once, start_counter);
    }
    return g_counter.has_counter ? read_counter() : rondo__clock_now_ns();
}

uint64_t rondo__clock_ticks_to_ns(uint64_t ticks) {
    if ((int64_t)ticks <= 0 || !g_counter.has_counter) {
        return (int64_t)ticks > 0 ? ticks : 0;
    }
    uint64_t passed_ns;
    uint64_t passed_ticks;
    do {
        passed_ns = rondo__clock_now_ns() - g_counter.first_ns;
        passed_ticks = read_counter() - g_counter.first_ticks;
    } while (passed_ns < PACE_NS_MIN);
    return (uint64_t)((double)ticks * ((double)passed_ns / (double)passed_ticks));
}
