// random/random_host.c — the ops as host functions: which loops, and on how many threads.
// SPDX-License-Identifier: Apache-2.0
#include "random/random_host.h"

#include "base/workers.h"
#include "random/cu/philox.cuh"
#include "rondo/random.h"

enum {
    CHUNK_GROUPS = 4096,   // a multiple of every tile
    CHUNKS_PER_PIECE = 2,  // 128 KiB of single precision; some 10 us of work
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

typedef struct random_run {
    rondo__random_loop loop;
    const rondo__random_arguments *arguments;
    uint64_t groups;
} random_run;

static void run_chunks(void *data, int64_t first, int64_t end) {
    const random_run *job = data;
    const uint64_t last = (uint64_t)end * CHUNK_GROUPS;
    job->loop(job->arguments, (uint64_t)first * CHUNK_GROUPS,
              last < job->groups ? last : job->groups);
}

static void run(rondo__random_kernel kernel, const rondo__random_arguments *arguments,
                uint64_t group_size) {
    const uint64_t groups = (arguments->count + group_size - 1) / group_size;
    random_run job = {get_loops()->run[kernel], arguments, groups};
    rondo__workers_loop((int64_t)((groups + CHUNK_GROUPS - 1) / CHUNK_GROUPS), CHUNKS_PER_PIECE,
                        run_chunks, &job);
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
    if (out_words == NULL) {
        return;
    }
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream_id,
                                 (uint32_t)(stream_id >> 32)};
    rondo_philox_words((uint32_t)seed, (uint32_t)(seed >> 32), counter, out_words);
}
