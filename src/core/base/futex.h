// base/futex.h — sleeping until a word changes, and spinning politely before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(atomic_uint) == sizeof(uint32_t), "a futex is 32 bits");

// Sleeps while *word is `value`. May return for no reason: the caller looks again.
static inline void rondo__futex_wait(atomic_uint *word, unsigned value) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static inline void rondo__futex_wake_one(atomic_uint *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void rondo__futex_wake(atomic_uint *word, int count) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void rondo__futex_wake_all(atomic_uint *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// Tells the processor that this is a spin loop.
static inline void rondo__cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}
