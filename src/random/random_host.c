// random/random_host.c — the ops as host functions: which loops, and on how many threads.
// SPDX-License-Identifier: Apache-2.0
#include "random/random_host.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/thread_count.h"
#include "random/cu/philox.cuh"
#include "rondo/random.h"

enum {
    GROUP_COUNT_PER_THREAD_MIN = 16 * 1024,  // 256 KiB of single precision; a few 10 us of work
    CHUNK_GROUPS = 4096,                     // a multiple of every tile
};

const char *const rondo__random_kernel_names[RONDO__RANDOM_KERNEL_COUNT] = {
    [RONDO__RANDOM_WORDS] = "rondo_random_words",
    [RONDO__RANDOM_UNIFORM] = "rondo_random_uniform",
    [RONDO__RANDOM_UNIFORM_F64] = "rondo_random_uniform_f64",
    [RONDO__RANDOM_NORMAL] = "rondo_random_normal",
    [RONDO__RANDOM_NORMAL_F64] = "rondo_random_normal_f64",
    [RONDO__RANDOM_BERNOULLI] = "rondo_random_bernoulli",
    [RONDO__RANDOM_DROPOUT] = "rondo_random_dropout",
    [RONDO__RANDOM_SET] = "rondo_random_set",
    [RONDO__RANDOM_ADVANCE] = "rondo_random_advance",
};

static const rondo__random_loops *get_loops(void) {
#ifdef RONDO_SIMD_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return &rondo__random_loops_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &rondo__random_loops_avx2;
    }
#endif
    return &rondo__random_loops_baseline;
}

// The thread sanitizer does not see the barriers of libgomp.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SERIAL 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || !defined(_OPENMP)
#define SERIAL 1
#endif

static void run(rondo__random_kernel kernel, const rondo__random_arguments *arguments,
                uint64_t group_size) {
    const rondo__random_loop loop = get_loops()->run[kernel];
    const uint64_t groups = (arguments->count + group_size - 1) / group_size;
#ifndef SERIAL
    const uint64_t most = groups / GROUP_COUNT_PER_THREAD_MIN;
    const int32_t available = most > 1 ? rondo__host_get_thread_count() : 1;
    const int threads = most < (uint64_t)available ? (int)most : (int)available;
    if (threads > 1) {
        const int64_t chunks = (int64_t)((groups + CHUNK_GROUPS - 1) / CHUNK_GROUPS);
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            const uint64_t begin = (uint64_t)chunk * CHUNK_GROUPS;
            loop(arguments, begin, groups - begin < CHUNK_GROUPS ? groups : begin + CHUNK_GROUPS);
        }
        return;
    }
#endif
    loop(arguments, 0, groups);
}

static void run_words(void *arguments) {
    run(RONDO__RANDOM_WORDS, arguments, 4);
}
static void run_uniform(void *arguments) {
    run(RONDO__RANDOM_UNIFORM, arguments, 4);
}
static void run_uniform_f64(void *arguments) {
    run(RONDO__RANDOM_UNIFORM_F64, arguments, 2);
}
static void run_normal(void *arguments) {
    run(RONDO__RANDOM_NORMAL, arguments, 4);
}
static void run_normal_f64(void *arguments) {
    run(RONDO__RANDOM_NORMAL_F64, arguments, 2);
}
static void run_bernoulli(void *arguments) {
    run(RONDO__RANDOM_BERNOULLI, arguments, 4);
}
static void run_dropout(void *arguments) {
    run(RONDO__RANDOM_DROPOUT, arguments, 4);
}

static void run_set(void *data) {
    const rondo__random_set_arguments *arguments = data;
    arguments->state[0] = arguments->seed;
    arguments->state[1] = arguments->offset;
}
static void run_advance(void *data) {
    const rondo__random_advance_arguments *arguments = data;
    __atomic_fetch_add(&arguments->state[1], arguments->count, __ATOMIC_RELAXED);
}

rondo_host_function rondo__random_get_host_function(rondo__random_kernel kernel) {
    static const rondo_host_function functions[RONDO__RANDOM_KERNEL_COUNT] = {
        [RONDO__RANDOM_WORDS] = run_words,
        [RONDO__RANDOM_UNIFORM] = run_uniform,
        [RONDO__RANDOM_UNIFORM_F64] = run_uniform_f64,
        [RONDO__RANDOM_NORMAL] = run_normal,
        [RONDO__RANDOM_NORMAL_F64] = run_normal_f64,
        [RONDO__RANDOM_BERNOULLI] = run_bernoulli,
        [RONDO__RANDOM_DROPOUT] = run_dropout,
        [RONDO__RANDOM_SET] = run_set,
        [RONDO__RANDOM_ADVANCE] = run_advance,
    };
    return functions[kernel];
}

void rondo_random_philox(uint64_t seed, uint64_t stream_id, uint64_t index, uint32_t out_words[4]) {
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream_id,
                                 (uint32_t)(stream_id >> 32)};
    rondo_philox_words((uint32_t)seed, (uint32_t)(seed >> 32), counter, out_words);
}
