// Tensors that are bound once, for a service that runs one model again and again: names are looked
// up and shapes checked when something is bound, not in each run. Requests come in two lengths;
// results lie in memory of the service's own.
//
//   bind_once [DEVICE]
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <rondo/models.h>

enum { LENGTH_MAX = 32, REQUESTS = 6 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

// y = x * 2 + 1, of any length.
static rondo_program *make_program(void) {
    rondo_builder *builder;
    rondo_program *program;
    const float two = 2, one = 1;
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    x.extent[0] = -1;
    x.symbol[0] = "length";
    check(rondo_builder_create(NULL, &builder));
    check(rondo_builder_add_input(builder, &x));
    check(rondo_builder_add_constant(builder, "two", RONDO_DTYPE_F32, &(rondo_shape){0}, &two));
    check(rondo_builder_add_constant(builder, "one", RONDO_DTYPE_F32, &(rondo_shape){0}, &one));
    check(rondo_builder_add_node(builder, "Mul", (const char *[]){"x", "two"}, 2,
                                 (const char *[]){"twice"}, 1, NULL));
    check(rondo_builder_add_node(builder, "Add", (const char *[]){"twice", "one"}, 2,
                                 (const char *[]){"y"}, 1, NULL));
    check(rondo_builder_add_output(builder, "y", NULL));
    check(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

// Where results go: memory of the service's own.
typedef struct room {
    float *values;
    size_t bytes;
    size_t asked_count;
} room;

// Takes as much as the longest request needs: shapes are told without a run.
static void make_room(rondo_executor *executor, room *out_room) {
    const rondo_binding longest = {
        "x", {.dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {LENGTH_MAX}}}};
    rondo_binding y;
    size_t count;
    check(rondo_executor_infer_outputs(executor, &longest, 1, &y, 1, &count));
    out_room->bytes = rondo_tensor_get_bytes(&y.tensor);
    out_room->values = malloc(out_room->bytes);
}

static void *give_room(void *user_data, const char *name, const rondo_tensor *wanted,
                       size_t bytes) {
    room *r = user_data;
    (void)name;
    (void)wanted;
    r->asked_count += 1;
    return bytes <= r->bytes ? r->values : NULL;  // NULL: the run fails, and says so
}

int main(int argc, char **argv) {
    rondo_device *device;
    rondo_executor *executor;
    rondo_bound_run *run;
    rondo_event *done;
    room results = {0};
    float request[LENGTH_MAX];
    rondo_program *program = make_program();
    check(rondo_device_open(argc > 1 ? argv[1] : "auto", &device));
    check(rondo_executor_create(program, device, NULL, &executor));
    check(rondo_event_create(device, 0, &done));
    make_room(executor, &results);

    check(rondo_bound_run_create(executor, &run));
    check(rondo_bound_run_set_allocator(run, give_room, &results));
    check(rondo_bound_run_set_fetch(run, "y", &(rondo_tensor){0}));
    int wrong = 0;
    for (int i = 0; i < REQUESTS; ++i) {
        const int64_t length = i < 4 ? 16 : LENGTH_MAX;
        if (i == 0 || i == 4) {  // another length, or another address: bind again, this input alone
            const rondo_tensor x = {.dtype = RONDO_DTYPE_F32,
                                    .shape = {.rank = 1, .extent = {length}},
                                    .data = request};
            check(rondo_bound_run_set_feed(run, "x", &x));
        }
        for (int64_t k = 0; k < length; ++k) {
            request[k] = (float)(i + k);
        }
        if (i % 2 == 0) {
            check(rondo_bound_run_run(run));
        } else {  // other work may go on until the event has come
            check(rondo_bound_run_run_async(run, done));
            check(rondo_event_synchronize(done));
        }
        rondo_tensor y;
        check(rondo_bound_run_get_fetch(run, "y", &y));
        wrong +=
            y.data != results.values || results.values[length - 1] != 2 * request[length - 1] + 1;
        rondo_tensor_deinit(&y);
    }
    printf("%d requests on %s, memory asked for %zu times, %d wrong results\n", REQUESTS,
           rondo_device_get_name(device), results.asked_count, wrong);

    rondo_bound_run_destroy(run);
    free(results.values);
    rondo_event_destroy(done);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
