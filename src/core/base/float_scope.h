// base/float_scope.h — the default floating-point environment for work on the program's threads.
//
// A program may have set another rounding mode, flushing of denormals, or traps. Rondo's results
// must not depend on that, and a trap would end the process in code that overflows on purpose. The
// library's own threads start in the default environment (base/thread.h). On a thread of the
// program Rondo sets the default and restores the program's environment afterwards. The check costs
// 2 ns, and that is all if nothing differs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined(__SSE__)

#include <xmmintrin.h>

// Of SSE, which calculates, and of x87, by which the C library rounds where it reads and writes
// numbers as text.
typedef struct rondo__float_scope {
    bool is_changed;
    uint16_t former_x87;
    uint32_t former;
} rondo__float_scope;

enum { RONDO__FLOAT_FLAGS = 0x3f, RONDO__FLOAT_DEFAULT = 0x1f80 };  // of MXCSR
enum { RONDO__X87_DEFAULT = 0x37f };

static inline void rondo__float_set_x87(uint16_t word) {
    // A flag that is up would trap as soon as its mask is off.
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(word));
}

static inline rondo__float_scope rondo__float_enter(void) {
    rondo__float_scope scope = {.former = _mm_getcsr()};
    __asm__ volatile("fnstcw %0" : "=m"(scope.former_x87));
    scope.is_changed = (scope.former & ~(uint32_t)RONDO__FLOAT_FLAGS) != RONDO__FLOAT_DEFAULT ||
                       scope.former_x87 != RONDO__X87_DEFAULT;
    if (__builtin_expect(scope.is_changed, 0)) {
        _mm_setcsr(RONDO__FLOAT_DEFAULT);
        rondo__float_set_x87(RONDO__X87_DEFAULT);
    }
    return scope;
}

static inline void rondo__float_leave(const rondo__float_scope *scope) {
    if (__builtin_expect(scope->is_changed, 0)) {
        rondo__float_set_x87(scope->former_x87);
        _mm_setcsr(scope->former);
    }
}

#else

#include <fenv.h>

typedef struct rondo__float_scope {
    bool is_changed;
    fenv_t former;
} rondo__float_scope;

static inline rondo__float_scope rondo__float_enter(void) {
    rondo__float_scope scope = {.is_changed = true};
    scope.is_changed = fegetenv(&scope.former) == 0 && fesetenv(FE_DFL_ENV) == 0;
    return scope;
}

static inline void rondo__float_leave(const rondo__float_scope *scope) {
    if (scope->is_changed) {
        (void)fesetenv(&scope->former);
    }
}

#endif
