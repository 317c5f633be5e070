// kernel/host/host_threads.h — threads inside one op. Builds without OpenMP run on one thread.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_HOST_HOST_THREADS_H
#define RONDO_KERNEL_HOST_HOST_THREADS_H

#include <stdint.h>

#include "backend/backend.h"

#ifdef _OPENMP
#include <omp.h>
#endif

// RONDO_PARALLEL(clauses): an OpenMP directive, or nothing where there is no OpenMP. The thread
// sanitizer does not see the barriers of libgomp, and would report races where there are none.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RONDO_SERIAL_KERNELS 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || !defined(_OPENMP)
#define RONDO_SERIAL_KERNELS 1
#endif

#ifndef RONDO_SERIAL_KERNELS
#define RONDO_PRAGMA(text) _Pragma(#text)
#define RONDO_PARALLEL(...) RONDO_PRAGMA(omp __VA_ARGS__)
#else
#define RONDO_PARALLEL(...)
#endif

enum {
    // Work below which one thread does it all: bytes moved, roughly, and multiply-adds, both some
    // 20 us. On idle processors threads meet in a microsecond or two, but beside a busy process
    // each meeting may take as long as the scheduler likes.
    RONDO__HOST_PARALLEL_BYTES = 256 * 1024,
    RONDO__HOST_PARALLEL_MULTIPLY_ADDS = 1024 * 1024,
};

// Sets how many threads OpenMP regions of this thread use, ours and oneDNN's; returns the former
// number, to be set again where the thread is not the library's own. Cheap when nothing changes.
//
// oneDNN cuts its work when a primitive is made, so both making and running must see the same
// number. Packing at preparation uses one thread: a region would leave a second OpenMP team behind
// (each thread has its own), and libgomp stops spinning between regions once there are more threads
// than processors, which would slow down every op that follows.
static inline int32_t rondo__host_threads_use(int32_t count) {
#ifdef _OPENMP
    const int former = omp_get_max_threads();
    if (former != count) {
        omp_set_num_threads((int)count);
    }
    return (int32_t)former;
#else
    return count;
#endif
}

#endif  // RONDO_KERNEL_HOST_HOST_THREADS_H
