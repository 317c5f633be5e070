// What a decoder costs whose cache grows by one with each step: every step has shapes of its own.
//
//   build/bench/decode_steps MODEL.onnx [DEVICE] [STEPS] [ROUNDS]
//
// The model has inputs "ids", "position" and "past" and outputs "logits" and "present": the cache
// with one more in its last but one axis, which is the next step's "past"; it is fetched into
// memory that is there. A round makes an executor, runs three passes of STEPS steps, and then each
// of these steps over and over, as if the length were fixed. Times are wall time of a run, feeds
// and fetches included: of each line first the median over all its runs in all rounds, then the
// mean of the quietest round, since other programs on the machine only ever add.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "rondo/models.h"

enum { STEP_COUNT = 64, ROUND_COUNT = 10, COUNT_MAX = 10000, FIXED_RUNS = 20 };

typedef enum line { PASS_1, PASS_2, PASS_3, FIXED, COMPILE, LINE_COUNT } line;

// The runs of one kind.
typedef struct samples {
    double *values;
    size_t count;
    double least_mean;  // of the rounds
} samples;

typedef struct bench {
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    rondo_port past;  // as the model declares it
    rondo_tensor ids, position;
    void *caches[2];
    size_t step_count;
    samples lines[LINE_COUNT];
    rondo_executor_stats stats;  // of the last round
    uint64_t replays[3], eager[3];
    double heap_mib;
} bench;

// The cache of `length` tokens, in one of two places. Symbols of the model count as 1 here.
static rondo_tensor get_cache(const bench *b, int64_t length, size_t place) {
    rondo_tensor cache = {.dtype = RONDO_DTYPE_F32, .shape.rank = b->past.rank};
    for (int32_t d = 0; d < cache.shape.rank; ++d) {
        cache.shape.extent[d] = b->past.extent[d] >= 0 ? b->past.extent[d] : 1;
    }
    cache.shape.extent[cache.shape.rank - 2] = length;
    cache.data = b->caches[place];
    return cache;
}

// One step from a cache of `length` tokens, which lies in `place`, to the other place; returns its
// time in us.
static double run_step(bench *b, int64_t length, size_t place) {
    *(int64_t *)b->position.data = length;
    *(int64_t *)b->ids.data = 1 + length % 7;
    const rondo_binding feeds[] = {
        {"ids", b->ids}, {"position", b->position}, {"past", get_cache(b, length, place)}};
    rondo_binding fetches[] = {{.name = "logits"},
                               {"present", get_cache(b, length + 1, 1 - place)}};
    const uint64_t start = rondo__clock_now_ns();
    must(rondo_executor_run(b->executor, feeds, 3, fetches, 2));
    const uint64_t end = rondo__clock_now_ns();
    rondo_tensor_deinit(&fetches[0].tensor);
    return (double)(end - start) / 1e3;
}

static void get_stats(bench *b) {
    b->stats = (rondo_executor_stats){.struct_size = sizeof b->stats};
    must(rondo_executor_get_stats(b->executor, &b->stats));
}

static void add(samples *s, double value) {
    s->values[s->count++] = value;
}

static void end_round(samples *s, size_t first) {
    double sum = 0.0;
    for (size_t i = first; i < s->count; ++i) {
        sum += s->values[i];
    }
    const double mean = sum / (double)(s->count - first);
    s->least_mean = first == 0 || mean < s->least_mean ? mean : s->least_mean;
}

// From one token on, each step taking the cache that the one before has made.
static void run_pass(bench *b, line which) {
    const uint64_t replays = which != PASS_1 ? b->stats.replay_run_count : 0;
    const uint64_t eager = which != PASS_1 ? b->stats.eager_run_count : 0;
    const size_t first = b->lines[which].count;
    const size_t first_compiled = b->lines[COMPILE].count;
    for (size_t i = 0; i < b->step_count; ++i) {
        add(&b->lines[which], run_step(b, 1 + (int64_t)i, i % 2));
        if (which == PASS_1) {
            get_stats(b);
            add(&b->lines[COMPILE], (double)b->stats.prepare_ns / 1e3);
        }
    }
    end_round(&b->lines[which], first);
    if (which == PASS_1) {
        end_round(&b->lines[COMPILE], first_compiled);
    }
    get_stats(b);
    b->replays[which] = b->stats.replay_run_count - replays;
    b->eager[which] = b->stats.eager_run_count - eager;
}

// The steps of a pass, each many times in a row; the first two runs of a length do not count.
static void run_fixed(bench *b) {
    const size_t first = b->lines[FIXED].count;
    for (size_t i = 0; i < b->step_count; ++i) {
        for (int run = 0; run < FIXED_RUNS + 2; ++run) {
            const double us = run_step(b, 1 + (int64_t)i, i % 2);
            if (run >= 2) {
                add(&b->lines[FIXED], us);
            }
        }
    }
    end_round(&b->lines[FIXED], first);
}

static void run_round(bench *b) {
    must(rondo_executor_create(b->program, b->device, NULL, &b->executor));
    for (line which = PASS_1; which <= PASS_3; ++which) {
        run_pass(b, which);
    }
    const struct mallinfo2 heap = mallinfo2();
    b->heap_mib = (double)(heap.uordblks + heap.hblkhd) / 1048576.0;
    run_fixed(b);
    rondo_executor_destroy(b->executor);
}

static void print_lines(bench *b) {
    static const char *const names[] = {"pass 1", "pass 2", "pass 3", "fixed length",
                                        "pass 1: compiling the plan"};
    printf("%-28s %8s %9s %12s %12s\n", "us a step", "eager", "replayed", "median", "best round");
    for (int i = 0; i < LINE_COUNT; ++i) {
        samples *s = &b->lines[i];
        const double median = get_median(s->values, s->count);
        char counts[32] = "";
        if (i <= PASS_3) {
            snprintf(counts, sizeof counts, "%8llu %9llu", (unsigned long long)b->eager[i],
                     (unsigned long long)b->replays[i]);
        }
        printf("%-28s %18s %12.1f %12.1f\n", names[i], counts, median, s->least_mean);
    }
    const samples *fixed = &b->lines[FIXED];
    for (int i = PASS_2; i <= PASS_3; ++i) {
        const samples *s = &b->lines[i];
        printf("%s over fixed length %33.2f %12.2f times\n", names[i],
               s->values[s->count / 2] / fixed->values[fixed->count / 2],
               s->least_mean / fixed->least_mean);
    }
    const rondo_executor_stats *stats = &b->stats;
    printf("%llu plans kept; plans %.2f MiB, weights %.2f MiB, heap %.1f MiB\n",
           (unsigned long long)stats->plan_count, (double)stats->plan_bytes / 1048576.0,
           (double)stats->constant_bytes / 1048576.0, b->heap_mib);
}

static size_t read_count(int argc, char **argv, int index, size_t absent) {
    const long count = argc > index ? strtol(argv[index], NULL, 10) : (long)absent;
    return count >= 1 && count <= COUNT_MAX ? (size_t)count : 0;
}

int main(int argc, char **argv) {
    bench b = {.past = {.struct_size = sizeof b.past}};
    b.step_count = read_count(argc, argv, 3, STEP_COUNT);
    const size_t rounds = read_count(argc, argv, 4, ROUND_COUNT);
    if (argc < 2 || b.step_count == 0 || rounds == 0) {
        fprintf(stderr, "usage: decode_steps MODEL.onnx [DEVICE] [STEPS] [ROUNDS]   (1 to %d)\n",
                (int)COUNT_MAX);
        return 2;
    }
    for (int i = 0; i < LINE_COUNT; ++i) {
        const size_t runs = rounds * b.step_count * (i == FIXED ? FIXED_RUNS : 1);
        b.lines[i].values = make_values(runs);
    }
    must(rondo_program_load_onnx(argv[1], &b.program));
    must(rondo_device_open(argc > 2 ? argv[2] : "host", &b.device));
    for (size_t i = 0; i < rondo_program_get_input_count(b.program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        must(rondo_program_get_input(b.program, i, &port));
        b.past = strcmp(port.name, "past") == 0 ? port : b.past;
    }
    const rondo_shape one = {.rank = 2, .extent = {1, 1}};
    must(rondo_tensor_init(RONDO_DTYPE_I64, &one, &b.ids));
    must(rondo_tensor_init(RONDO_DTYPE_I64, &one, &b.position));
    const rondo_tensor largest = get_cache(&b, 1 + (int64_t)b.step_count, 0);
    for (size_t i = 0; i < 2; ++i) {
        b.caches[i] = calloc(1, rondo_tensor_get_bytes(&largest));
        if (b.caches[i] == NULL) {
            return 2;
        }
    }
    for (size_t round = 0; round < rounds; ++round) {
        run_round(&b);
    }
    printf("%s: %zu steps, %zu rounds\n", rondo_device_get_name(b.device), b.step_count, rounds);
    print_lines(&b);
    rondo_tensor_deinit(&b.ids);
    rondo_tensor_deinit(&b.position);
    free(b.caches[0]);
    free(b.caches[1]);
    rondo_program_destroy(b.program);
    rondo_device_release(b.device);
    for (int i = 0; i < LINE_COUNT; ++i) {
        free(b.lines[i].values);
    }
    return 0;
}
