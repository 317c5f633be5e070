// Several executors of one program at once, as in a server: each on a thread of its own.
//
//   build/bench/executors_at_once MODEL.onnx [--executors 2] [--seconds 1] [--rounds 7]
//
// Printed are, for several numbers of threads for one op, and for executors that share workers (a
// place for each processor), the runs of all executors in a second,
// and the median and 99th percentile of a run; the ways take turns, round after round. The first
// way is one executor alone with all processors. Inputs are zeros of the declared shapes, with
// symbols as 1.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread_count.h"
#include "bench.h"
#include "rondo/models.h"

enum { EXECUTORS_MAX = 64, INPUTS_MAX = 64, RUNS_MAX = 1 << 20, WAYS_MAX = 8, ROUNDS_MAX = 64 };

typedef struct way {
    uint32_t executor_count, thread_count;
    bool shares_workers;
    rondo_executor *executors[EXECUTORS_MAX];
    double runs_a_second[ROUNDS_MAX];
    double *run_us;
    size_t run_count;
} way;

typedef struct crew_member {
    rondo_executor *executor;
    rondo_program *program;
    double *run_us;
    size_t run_count;
} crew_member;

static atomic_bool g_is_over;
static pthread_barrier_t g_start;

static size_t make_feeds(rondo_program *program, rondo_binding *feeds) {
    const size_t count = rondo_program_get_input_count(program);
    for (size_t i = 0; i < count && i < INPUTS_MAX; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        must(rondo_program_get_input(program, i, &port));
        rondo_shape shape = {.rank = port.rank};
        for (int32_t d = 0; d < port.rank; ++d) {
            shape.extent[d] = port.extent[d] >= 0 ? port.extent[d] : 1;
        }
        feeds[i] = (rondo_binding){.name = port.name};
        must(rondo_tensor_init(port.dtype, &shape, &feeds[i].tensor));
    }
    return count < INPUTS_MAX ? count : INPUTS_MAX;
}

static void *work(void *data) {
    crew_member *member = data;
    rondo_binding feeds[INPUTS_MAX];
    rondo_port port = {.struct_size = sizeof port};
    const size_t feed_count = make_feeds(member->program, feeds);
    must(rondo_program_get_output(member->program, 0, &port));
    rondo_binding fetch = {.name = port.name};
    for (int i = 0; i < 3; ++i) {
        must(rondo_executor_run(member->executor, feeds, feed_count, &fetch, 1));
    }
    (void)pthread_barrier_wait(&g_start);
    while (!atomic_load(&g_is_over) && member->run_count < RUNS_MAX) {
        const uint64_t start = rondo__clock_now_ns();
        must(rondo_executor_run(member->executor, feeds, feed_count, &fetch, 1));
        member->run_us[member->run_count++] = (double)(rondo__clock_now_ns() - start) * 1e-3;
    }
    rondo_tensor_deinit(&fetch.tensor);
    for (size_t i = 0; i < feed_count; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
    return NULL;
}

static void run_round(way *w, rondo_program *program, double seconds, size_t round) {
    static crew_member crew[EXECUTORS_MAX];
    pthread_t threads[EXECUTORS_MAX];
    atomic_store(&g_is_over, false);
    (void)pthread_barrier_init(&g_start, NULL, w->executor_count + 1);
    for (uint32_t i = 0; i < w->executor_count; ++i) {
        crew[i] = (crew_member){w->executors[i], program, make_values(RUNS_MAX), 0};
        if (pthread_create(&threads[i], NULL, work, &crew[i]) != 0) {
            exit(2);
        }
    }
    (void)pthread_barrier_wait(&g_start);
    const uint64_t start = rondo__clock_now_ns();
    while ((double)(rondo__clock_now_ns() - start) < seconds * 1e9) {
        (void)usleep(1000);
    }
    atomic_store(&g_is_over, true);
    size_t runs = 0;
    for (uint32_t i = 0; i < w->executor_count; ++i) {
        (void)pthread_join(threads[i], NULL);
        runs += crew[i].run_count;
    }
    w->runs_a_second[round] = (double)runs / ((double)(rondo__clock_now_ns() - start) * 1e-9);
    for (uint32_t i = 0; i < w->executor_count; ++i) {
        const size_t room = RUNS_MAX - w->run_count;
        const size_t count = crew[i].run_count < room ? crew[i].run_count : room;
        memcpy(w->run_us + w->run_count, crew[i].run_us, count * sizeof(double));
        w->run_count += count;
        free(crew[i].run_us);
    }
    (void)pthread_barrier_destroy(&g_start);
}

static uint64_t read_number(int argc, char **argv, const char *name, uint64_t value,
                            uint64_t most) {
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], name) == 0) {
            value = strtoull(argv[i + 1], NULL, 10);
        }
    }
    return value < 1 ? 1 : value > most ? most : value;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr,
                "usage: executors_at_once MODEL.onnx [--executors 2] [--seconds 1] "
                "[--rounds 7]\n");
        return 2;
    }
    const uint32_t executors = (uint32_t)read_number(argc, argv, "--executors", 2, EXECUTORS_MAX);
    const double seconds = (double)read_number(argc, argv, "--seconds", 1, 60);
    const size_t rounds = read_number(argc, argv, "--rounds", 7, ROUNDS_MAX);
    const uint32_t processors = (uint32_t)rondo__host_get_processor_count();
    const uint32_t share = processors > executors ? processors / executors : 1;
    way ways[] = {{.executor_count = 1, .thread_count = processors},
                  {.executor_count = executors, .thread_count = processors},
                  {.executor_count = executors, .thread_count = share},
                  {.executor_count = executors, .thread_count = 0},
                  {.executor_count = executors, .shares_workers = true}};
    const size_t way_count = sizeof ways / sizeof ways[0];
    rondo_device *device = NULL;
    rondo_program *program = NULL;
    rondo_workers *workers = NULL;
    must(rondo_workers_create(processors < 256 ? processors : 256, &workers));
    must(rondo_device_open("host", &device));
    must(rondo_program_load_onnx(argv[1], &program));
    for (size_t i = 0; i < way_count; ++i) {
        ways[i].run_us = make_values(RUNS_MAX);
        for (uint32_t k = 0; k < ways[i].executor_count; ++k) {
            const rondo_executor_options options = {
                .struct_size = sizeof options,
                .thread_count = ways[i].thread_count,
                .workers = ways[i].shares_workers ? workers : NULL};
            must(rondo_executor_create(program, device, &options, &ways[i].executors[k]));
        }
    }
    rondo_workers_release(workers);  // the executors keep them
    for (size_t round = 0; round < rounds; ++round) {
        for (size_t i = 0; i < way_count; ++i) {
            run_round(&ways[i], program, seconds, round);
        }
    }
    printf("%s, %u processors, %zu rounds of %.0f s\n\n", argv[1], processors, rounds, seconds);
    printf("| executors | threads for one op | runs a second, median | a run, us | 99 %% |\n");
    printf("|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < way_count; ++i) {
        char threads[16] = "default";
        if (ways[i].shares_workers) {
            (void)snprintf(threads, sizeof threads, "shared");
        } else if (ways[i].thread_count > 0) {
            (void)snprintf(threads, sizeof threads, "%u", ways[i].thread_count);
        }
        const double median = get_median(ways[i].run_us, ways[i].run_count);
        printf("| %u | %s | %.1f | %.0f | %.0f |\n", ways[i].executor_count, threads,
               get_median(ways[i].runs_a_second, rounds), median,
               ways[i].run_us[ways[i].run_count * 99 / 100]);
        for (uint32_t k = 0; k < ways[i].executor_count; ++k) {
            rondo_executor_destroy(ways[i].executors[k]);
        }
        free(ways[i].run_us);
    }
    rondo_program_destroy(program);
    rondo_device_release(device);
    return 0;
}
