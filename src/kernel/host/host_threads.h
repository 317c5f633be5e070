// kernel/host/host_threads.h — threads inside one op. Builds without OpenMP run on one thread.
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
    // Work (in bytes moved, roughly) below which a second thread costs more than it brings.
    RONDO__HOST_PARALLEL_BYTES = 64 * 1024,
};

// Makes OpenMP regions of this thread, ours and oneDNN's, use the configured number of threads.
// oneDNN cuts its work when a primitive is made, so both making and running call this.
static inline void rondo__host_threads_use(void) {
#ifdef _OPENMP
    int count = (int)rondo__host_get_thread_count();
    if (omp_get_max_threads() != count) {
        omp_set_num_threads(count);
    }
#endif
}

#endif  // RONDO_KERNEL_HOST_HOST_THREADS_H
