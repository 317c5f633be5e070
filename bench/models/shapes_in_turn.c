// Shapes that come in turn: a network with batch 1, 2, ... N, round after round, on one executor.
//
//   build/bench/shapes_in_turn MODEL.onnx|MODEL.rondo [--device host] [--dtype fp32|fp16]
//       [--shapes 20] [--rounds 3] [--limit-bytes N]
//
// The model has one input, with one extent that is open (the first of them counts). Reported are,
// for each shape, the first run (which compiles its plan and, from the second shape on, captures
// it) and the last one; then how many runs of each round were replayed, what a new shape costs
// beyond a settled run against the first one and by itself, and the memory: what the executor
// reports, and what the process (and a GPU) has really taken since before it was made.
//
// Goals: the second round is all replayed; a new shape costs at most 0.1 of the first, and from a
// plan file on a GPU 1 ms; with a limit for plans they stay within it.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "rondo/models.h"

enum { SHAPES_MAX = 256, ROUNDS_MAX = 64 };

typedef struct settings {
    const char *model;
    const char *device;
    bool is_half;
    uint64_t shape_count, round_count, limit_bytes;
} settings;

typedef struct bench {
    settings set;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_port input, output;
    rondo_tensor feed;
    int32_t open;  // the dimension of the input that takes the batch's extent
    double first_ms[SHAPES_MAX], prepare_ms[SHAPES_MAX], graph_ms[SHAPES_MAX];
    double settled_ms[SHAPES_MAX];
    uint64_t replayed[ROUNDS_MAX], evicted[ROUNDS_MAX], plan_bytes[ROUNDS_MAX];
    uint64_t plan_bytes_peak;
    rondo_executor_stats stats;
} bench;

// Memory of this process that is in real memory; pages of files (the model) do not count.
static double get_process_mib(void) {
    long pages = 0, resident = 0, shared = 0;
    (void)malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld %ld", &pages, &resident, &shared) != 3) {
        resident = shared = 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return (double)(resident - shared) * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

// On the host processor time of the caller's thread, which compiles and records, while a worker
// computes: what else the machine does changes it little. On a GPU wall time.
static double get_ms(const bench *b) {
    struct timespec now;
    clock_gettime(rondo_device_is_host(b->device) ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                  &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double run(bench *b, uint64_t batch) {
    rondo_binding feed = {b->input.name, b->feed};
    rondo_binding fetch = {.name = b->output.name};
    feed.tensor.shape.extent[b->open] = (int64_t)batch;
    feed.tensor.storage = NULL;
    const double start = get_ms(b);
    must(rondo_executor_run(b->executor, &feed, 1, &fetch, 1));
    const double end = get_ms(b);
    rondo_tensor_deinit(&fetch.tensor);
    return end - start;
}

static void read_stats(bench *b) {
    b->stats = (rondo_executor_stats){.struct_size = sizeof b->stats};
    must(rondo_executor_get_stats(b->executor, &b->stats));
    if (b->stats.plan_bytes > b->plan_bytes_peak) {
        b->plan_bytes_peak = b->stats.plan_bytes;
    }
}

static void run_round(bench *b, uint64_t round) {
    for (uint64_t i = 0; i < b->set.shape_count; ++i) {
        rondo_run_times times = {.struct_size = sizeof times};
        const double ms = run(b, i + 1);
        must(rondo_executor_get_times(b->executor, &times));
        b->replayed[round] += times.was_replayed ? 1 : 0;
        read_stats(b);
        if (round == 0) {
            b->first_ms[i] = ms;
            b->prepare_ms[i] = (double)b->stats.prepare_ns * 1e-6;
            b->graph_ms[i] = (double)(b->stats.capture_ns + b->stats.instantiate_ns) * 1e-6;
        }
        b->settled_ms[i] = round < 2 || ms < b->settled_ms[i] ? ms : b->settled_ms[i];
    }
    b->evicted[round] = b->stats.plan_eviction_count;
    b->plan_bytes[round] = b->stats.plan_bytes;
}

static void print_shapes(const bench *b) {
    printf("| batch | first run, ms | of it compiling | its graph | settled, ms |\n");
    printf("|---:|---:|---:|---:|---:|\n");
    for (uint64_t i = 0; i < b->set.shape_count; ++i) {
        printf("| %llu | %.2f | %.2f | %.2f | %.3f |\n", (unsigned long long)i + 1, b->first_ms[i],
               b->prepare_ms[i], b->graph_ms[i], b->settled_ms[i]);
    }
}

// Of the shapes behind the first one, `count` of them.
static double get_later_median(const double *values, size_t count) {
    double later[SHAPES_MAX];
    memcpy(later, values + 1, count * sizeof *later);
    return get_median(later, count);
}

static void print_costs(const bench *b) {
    double costs[SHAPES_MAX] = {0};
    const double first = b->first_ms[0] - b->settled_ms[0];
    const size_t count = (size_t)b->set.shape_count - 1;
    for (size_t i = 0; i < count; ++i) {
        costs[i] = b->first_ms[i + 1] - b->settled_ms[i + 1];
    }
    const double median = get_median(costs, count);  // which sorts them
    printf(
        "\nfirst run beyond a settled one: %.1f ms for the first shape; for a new one, median "
        "%.3f ms (%.3f of the first), at most %.1f ms (%.3f)\n",
        first, median, median / first, costs[count - 1], costs[count - 1] / first);
    printf("in first runs of new shapes, medians: %.3f ms, of it compiling %.3f, the graph %.3f\n",
           get_later_median(b->first_ms, count), get_later_median(b->prepare_ms, count),
           get_later_median(b->graph_ms, count));
    for (uint64_t r = 0; r < b->set.round_count; ++r) {
        printf("round %llu: %llu of %llu replayed, %llu plans dropped so far, plans %.1f MiB\n",
               (unsigned long long)r + 1, (unsigned long long)b->replayed[r],
               (unsigned long long)b->set.shape_count, (unsigned long long)b->evicted[r],
               (double)b->plan_bytes[r] / 1048576.0);
    }
}

static const char *find_value(int argc, char **argv, int *index) {
    if (*index + 1 >= argc) {
        fprintf(stderr, "%s needs a value\n", argv[*index]);
        exit(2);
    }
    *index += 1;
    return argv[*index];
}

static settings parse(int argc, char **argv) {
    settings s = {.device = "host", .shape_count = 20, .round_count = 3};
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--device") == 0) {
            s.device = find_value(argc, argv, &i);
        } else if (strcmp(argv[i], "--dtype") == 0) {
            s.is_half = strcmp(find_value(argc, argv, &i), "fp16") == 0;
        } else if (strcmp(argv[i], "--shapes") == 0) {
            s.shape_count = strtoull(find_value(argc, argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0) {
            s.round_count = strtoull(find_value(argc, argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--limit-bytes") == 0) {
            s.limit_bytes = strtoull(find_value(argc, argv, &i), NULL, 10);
        } else {
            s.model = argv[i];
        }
    }
    if (s.model == NULL || s.shape_count < 2 || s.shape_count > SHAPES_MAX || s.round_count < 2 ||
        s.round_count > ROUNDS_MAX) {
        fprintf(stderr,
                "usage: shapes_in_turn MODEL.onnx [--device D] [--dtype fp32|fp16] "
                "[--shapes 2 to %d] [--rounds 2 to %d] [--limit-bytes N]\n",
                (int)SHAPES_MAX, (int)ROUNDS_MAX);
        exit(2);
    }
    return s;
}

// Images (or numbers of words) of the largest batch; a smaller one is its beginning.
static void make_feed(bench *b) {
    rondo_shape shape = {.rank = b->input.rank};
    while (b->open + 1 < b->input.rank && b->input.extent[b->open] >= 0) {
        ++b->open;
    }
    for (int32_t d = 0; d < b->input.rank; ++d) {
        shape.extent[d] = d == b->open ? (int64_t)b->set.shape_count : b->input.extent[d];
    }
    const bool is_words = b->input.dtype == RONDO_DTYPE_I64;
    must(rondo_tensor_init(is_words ? RONDO_DTYPE_I64 : RONDO_DTYPE_F32, &shape, &b->feed));
    for (int64_t i = 0; i < rondo_shape_get_count(&shape); ++i) {
        const int64_t number = i * 2654435761 % 1024;
        if (is_words) {
            ((int64_t *)b->feed.data)[i] = number % 100;
        } else {
            ((float *)b->feed.data)[i] = (float)number / 512.0f - 1.0f;
        }
    }
}

int main(int argc, char **argv) {
    static bench b;
    b.set = parse(argc, argv);
    b.input.struct_size = b.output.struct_size = sizeof b.input;
    must(rondo_device_open(b.set.device, &b.device));
    const size_t length = strlen(b.set.model);
    const bool is_plan = length > 6 && strcmp(b.set.model + length - 6, ".rondo") == 0;
    must(is_plan ? rondo_program_load_plan(b.set.model, NULL, &b.program)
                 : rondo_program_load_onnx(b.set.model, &b.program));
    must(rondo_program_get_input(b.program, 0, &b.input));
    must(rondo_program_get_output(b.program, 0, &b.output));
    make_feed(&b);
    const rondo_executor_options options = {
        .struct_size = sizeof options,
        .dtype = b.set.is_half ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32,
        .plan_limit_bytes = b.set.limit_bytes,
    };
    printf("%s on %s, %s, batch 1 to %llu; times are %s\n\n", b.set.model,
           rondo_device_get_name(b.device), b.set.is_half ? "fp16" : "fp32",
           (unsigned long long)b.set.shape_count,
           rondo_device_is_host(b.device) ? "processor time of the caller" : "wall time");
    const double process_before = get_process_mib();
    must(rondo_executor_create(b.program, b.device, &options, &b.executor));
    for (uint64_t r = 0; r < b.set.round_count; ++r) {
        run_round(&b, r);
    }
    const double process_after = get_process_mib();
    print_shapes(&b);
    print_costs(&b);
    printf(
        "reported: %llu plans %.1f MiB (at most %.1f), weights of the last plan %.1f MiB; in all "
        "%.1f MiB of host memory, %.1f MiB on a GPU\n",
        (unsigned long long)b.stats.plan_count, (double)b.stats.plan_bytes / 1048576.0,
        (double)b.plan_bytes_peak / 1048576.0, (double)b.stats.constant_bytes / 1048576.0,
        (double)b.stats.memory_bytes / 1048576.0,
        (double)(b.stats.device_memory_bytes + b.stats.graph_bytes) / 1048576.0);
    rondo_executor_destroy(b.executor);
    printf("process: %.1f MiB more than before; after the executor's end %.1f\n",
           process_after - process_before, get_process_mib() - process_before);
    rondo_tensor_deinit(&b.feed);
    rondo_program_destroy(b.program);
    rondo_device_release(b.device);
    return 0;
}
