// What a decoder costs whose cache grows by one with each step: every step has shapes of its own.
//
//   build/bench/decode_steps MODEL.onnx [DEVICE] [STEPS]
//
// The model has inputs "ids", "position" and "past" and outputs "logits" and "present": the cache
// with one more in its last but one axis, which is the next step's "past". Passes of STEPS steps
// run, then the same step over and over at three fixed lengths. Times are wall time of a run, feeds
// and fetches included: median, and the mean beside it.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rondo/rondo.h"

enum { STEP_COUNT = 64, STEP_COUNT_MAX = 100000, FIXED_RUNS = 400, PASSES = 3 };

static void must(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        fprintf(stderr, "%s: %s\n", error->call, error->message);
        exit(1);
    }
}

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double get_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

static double get_mean(const double *values, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
        sum += values[i];
    }
    return sum / (double)count;
}

typedef struct bench {
    rondo_executor *executor;
    rondo_port past;  // as the model declares it
    rondo_tensor ids, position;
    double *times;
} bench;

// The cache of `length` tokens. Symbols of the model count as 1 here.
static rondo_tensor make_past(const bench *b, int64_t length) {
    rondo_shape shape = {.rank = b->past.rank};
    for (int32_t d = 0; d < shape.rank; ++d) {
        shape.extent[d] = b->past.extent[d] >= 0 ? b->past.extent[d] : 1;
    }
    shape.extent[shape.rank - 2] = length;
    rondo_tensor past;
    must(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &past));
    return past;
}

// One step; returns its time in us. *out_present is made anew.
static double run_step(bench *b, const rondo_tensor *past, int64_t number,
                       rondo_tensor *out_present) {
    *(int64_t *)b->position.data = number;
    *(int64_t *)b->ids.data = 1 + number % 7;
    const rondo_binding feeds[] = {{"ids", b->ids}, {"position", b->position}, {"past", *past}};
    rondo_binding fetches[] = {{.name = "logits"}, {.name = "present"}};
    const uint64_t start = rondo__clock_now_ns();
    must(rondo_executor_run(b->executor, feeds, 3, fetches, 2));
    const uint64_t end = rondo__clock_now_ns();
    rondo_tensor_deinit(&fetches[0].tensor);
    *out_present = fetches[1].tensor;
    return (double)(end - start) / 1e3;
}

static rondo_executor_stats get_stats(const bench *b) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    must(rondo_executor_get_stats(b->executor, &stats));
    return stats;
}

static double get_heap_mib(void) {
    const struct mallinfo2 heap = mallinfo2();
    return (double)(heap.uordblks + heap.hblkhd) / 1048576.0;
}

// From one token on, each step taking the cache that the one before has made.
static void run_pass(bench *b, int pass, size_t step_count) {
    const rondo_executor_stats none = {0};
    const rondo_executor_stats before = pass > 0 ? get_stats(b) : none;
    rondo_tensor past = make_past(b, 1);
    uint64_t prepare_ns = 0;
    for (size_t i = 0; i < step_count; ++i) {
        rondo_tensor present;
        b->times[i] = run_step(b, &past, 1 + (int64_t)i, &present);
        rondo_tensor_deinit(&past);
        past = present;
        prepare_ns += pass == 0 ? get_stats(b).prepare_ns : 0;
    }
    rondo_tensor_deinit(&past);
    const rondo_executor_stats stats = get_stats(b);
    const double mean = get_mean(b->times, step_count);
    printf("pass %d: %3llu eager, %3llu replayed, %3llu plans kept %10.1f %10.1f us a step\n",
           pass + 1, (unsigned long long)(stats.eager_run_count - before.eager_run_count),
           (unsigned long long)(stats.replay_run_count - before.replay_run_count),
           (unsigned long long)stats.plan_count, get_median(b->times, step_count), mean);
    if (pass == 0) {
        printf("        of it compiling plans %39.1f us a step\n",
               (double)prepare_ns / 1e3 / (double)step_count);
    }
    printf("        heap %.1f MiB\n", get_heap_mib());
}

static double run_fixed(bench *b, int64_t length) {
    const rondo_tensor past = make_past(b, length);
    for (size_t i = 0; i < FIXED_RUNS + 20; ++i) {
        rondo_tensor present;
        b->times[i < 20 ? 0 : i - 20] = run_step(b, &past, length, &present);
        rondo_tensor_deinit(&present);
    }
    rondo_tensor owned = past;
    rondo_tensor_deinit(&owned);
    const double mean = get_mean(b->times, FIXED_RUNS);
    printf("fixed length %-5lld %46.1f %10.1f us a step\n", (long long)length,
           get_median(b->times, FIXED_RUNS), mean);
    return b->times[FIXED_RUNS / 2];
}

int main(int argc, char **argv) {
    const long steps = argc > 3 ? strtol(argv[3], NULL, 10) : STEP_COUNT;
    if (argc < 2 || steps < 1 || steps > STEP_COUNT_MAX) {
        fprintf(stderr, "usage: decode_steps MODEL.onnx [DEVICE] [STEPS]   (1 to %d)\n",
                (int)STEP_COUNT_MAX);
        return 2;
    }
    const size_t step_count = (size_t)steps;
    rondo_program *program;
    rondo_device *device;
    bench b = {.past = {.struct_size = sizeof b.past}};
    b.times = calloc(step_count + FIXED_RUNS, sizeof *b.times);
    if (b.times == NULL) {
        return 1;
    }
    must(rondo_program_load_onnx(argv[1], &program));
    must(rondo_device_open(argc > 2 ? argv[2] : "host", &device));
    must(rondo_executor_create(program, device, NULL, &b.executor));
    for (size_t i = 0; i < rondo_program_get_input_count(program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        must(rondo_program_get_input(program, i, &port));
        b.past = strcmp(port.name, "past") == 0 ? port : b.past;
    }
    const rondo_shape one = {.rank = 2, .extent = {1, 1}};
    must(rondo_tensor_init(RONDO_DTYPE_I64, &one, &b.ids));
    must(rondo_tensor_init(RONDO_DTYPE_I64, &one, &b.position));
    printf("%s, %s: %zu steps\n%-55s %10s %10s\n", argv[1], rondo_device_get_name(device),
           step_count, "", "median", "mean");
    for (int pass = 0; pass < PASSES; ++pass) {
        run_pass(&b, pass, step_count);
    }
    (void)run_fixed(&b, 1);
    (void)run_fixed(&b, 1 + (int64_t)step_count / 2);
    (void)run_fixed(&b, (int64_t)step_count);
    rondo_tensor_deinit(&b.ids);
    rondo_tensor_deinit(&b.position);
    rondo_executor_destroy(b.executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    free(b.times);
    return 0;
}
