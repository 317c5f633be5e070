// Two models in one process, each served by two threads of the program, on four processors that all
// of them share. Weights and what does not depend on shapes are there once for each model.
//
//   serve_models MODEL MODEL
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/models.h>

enum { MODELS = 2, THREADS = 2, REQUESTS = 20, MOST_INPUTS = 8 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

// ---- a thread that serves
typedef struct server {
    rondo_program *program;  // shared by the servers of a model
    rondo_device *device;
    rondo_workers *workers;  // shared by all
    int replayed;
} server;

static void *serve(void *user_data) {
    server *s = user_data;
    const rondo_executor_options options = {.struct_size = sizeof options, .workers = s->workers};
    rondo_executor *executor;  // used by one thread at a time, so each has its own
    check(rondo_executor_create(s->program, s->device, &options, &executor));

    rondo_binding feeds[MOST_INPUTS] = {0};
    const size_t count = rondo_program_get_input_count(s->program);
    for (size_t i = 0; i < count; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        check(rondo_program_get_input(s->program, i, &port));
        rondo_shape shape = {.rank = port.rank};
        for (int d = 0; d < port.rank; ++d) {
            shape.extent[d] = port.extent[d] >= 0 ? port.extent[d] : 1;
        }
        feeds[i].name = port.name;
        check(rondo_tensor_init(port.dtype, &shape, &feeds[i].tensor));
    }
    rondo_port output = {.struct_size = sizeof output};
    check(rondo_program_get_output(s->program, 0, &output));
    rondo_binding fetch = {.name = output.name};
    for (int request = 0; request < REQUESTS; ++request) {
        rondo_run_times times = {.struct_size = sizeof times};
        check(rondo_executor_run(executor, feeds, count, &fetch, 1));
        check(rondo_executor_get_times(executor, &times));
        s->replayed += times.was_replayed;
    }
    rondo_executor_destroy(executor);
    for (size_t i = 0; i < count; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
    rondo_tensor_deinit(&fetch.tensor);
    return NULL;
}

// ---- what they share
int main(int argc, char **argv) {
    rondo_device *device;
    rondo_workers *workers;
    rondo_program *programs[MODELS];
    server servers[MODELS][THREADS];
    pthread_t threads[MODELS][THREADS];
    if (argc != 1 + MODELS) {
        fprintf(stderr, "usage: serve_models MODEL MODEL\n");
        return 2;
    }
    check(rondo_device_open("host", &device));
    check(rondo_workers_create(4, &workers));
    for (int m = 0; m < MODELS; ++m) {
        check(rondo_program_load_onnx(argv[1 + m], &programs[m]));
        for (int t = 0; t < THREADS; ++t) {
            servers[m][t] = (server){programs[m], device, workers, 0};
            if (pthread_create(&threads[m][t], NULL, serve, &servers[m][t]) != 0) {
                return EXIT_FAILURE;
            }
        }
    }
    // ---- the end
    int replayed = 0;
    for (int m = 0; m < MODELS; ++m) {
        for (int t = 0; t < THREADS; ++t) {
            pthread_join(threads[m][t], NULL);
            replayed += servers[m][t].replayed;
        }
        rondo_program_destroy(programs[m]);
    }
    rondo_workers_release(workers);
    rondo_device_release(device);
    printf("%d of %d runs were replays\n", replayed, MODELS * THREADS * REQUESTS);
    return replayed == MODELS * THREADS * (REQUESTS - 1) ? EXIT_SUCCESS : EXIT_FAILURE;
}
