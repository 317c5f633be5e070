// Executors that share workers: no more threads are inside of ops than there are places, however
// many run networks, and results are the same.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/workers.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/models/flow_models.h"
#include "support/models/user_ops.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { COUNT = 64, RUNS = 6, CLIENTS = 6 };

// ---- an op that sleeps -------------------------------------------------------------------------

static atomic_int inside, most_inside;

static rondo_status compute(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                            rondo_tensor *outputs, size_t output_count) {
    const struct timespec pause = {.tv_nsec = 2000000};
    const int now = atomic_fetch_add(&inside, 1) + 1;
    (void)node;
    (void)input_count;
    (void)output_count;
    for (int most = atomic_load(&most_inside);
         most < now && !atomic_compare_exchange_weak(&most_inside, &most, now);) {
    }
    (void)nanosleep(&pause, NULL);
    memcpy(outputs[0].data, inputs[0].data, rondo_tensor_get_bytes(&inputs[0]));
    atomic_fetch_sub(&inside, 1);
    return RONDO_STATUS_OK;
}

static rondo_program *build(void) {
    const rondo_builder_node_options options = {.struct_size = sizeof options, .domain = "test"};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, COUNT)));
    build_node(builder, "Slow", "x", "s", &options);
    build_node(builder, "Neg", "s", "y", NULL);
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// ---- many at once ------------------------------------------------------------------------------

typedef struct client {
    rondo_executor *executor;
    pthread_t thread;
    float first;
    bool is_right;
} client;

static void *run_client(void *data) {
    client *self = data;
    float values[COUNT] = {self->first};
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {COUNT}}, values, NULL, NULL}};
    self->is_right = true;
    for (int i = 0; i < RUNS && self->is_right; ++i) {
        rondo_binding fetch = {.name = "y"};
        values[i] = self->first;
        self->is_right = rondo_executor_run(self->executor, &feed, 1, &fetch, 1) == RONDO_STATUS_OK;
        for (int k = 0; k < COUNT && self->is_right; ++k) {
            const float *y = fetch.tensor.data;
            self->is_right = y[k] == -values[k];
        }
        rondo_tensor_deinit(&fetch.tensor);
    }
    return NULL;
}

// The most threads that were inside of ops at a time.
static int run_clients(rondo_device *device, rondo_workers *workers) {
    client clients[CLIENTS];
    rondo_program *program = build();
    const rondo_executor_options options = {.struct_size = sizeof options, .workers = workers};
    for (int i = 0; i < CLIENTS; ++i) {
        clients[i] = (client){.first = (float)(i + 1)};
        OK(rondo_executor_create(program, device, &options, &clients[i].executor));
    }
    rondo_workers_release(workers);  // the executors have it
    atomic_store(&most_inside, 0);
    for (int i = 0; i < CLIENTS; ++i) {
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; ++i) {
        assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
        assert_true(clients[i].is_right);
        rondo_executor_destroy(clients[i].executor);
    }
    rondo_program_destroy(program);
    return atomic_load(&most_inside);
}

TEST(places_are_the_limit) {
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    for (uint32_t places = 1; places <= 3; ++places) {
        rondo_workers *workers;
        OK(rondo_workers_create(places, &workers));
        assert_int_equal(run_clients(device, workers), places);
    }
    assert_true(run_clients(device, NULL) > 3);  // otherwise this shows nothing
    rondo_device_release(device);
}

TEST(a_child_may_release_them) {
    rondo_device *device;
    rondo_workers *workers;
    int status = 0;
    OK(rondo_device_open("host", &device));
    OK(rondo_workers_create(2, &workers));
    rondo_workers_retain(workers);
    (void)run_clients(device, workers);
    const pid_t child = fork();
    if (child == 0) {
        rondo_workers_release(workers);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rondo_workers_release(workers);
    rondo_device_release(device);
}

// Bodies that are decided on the device have executors of their own, with the same workers.
TEST(control_flow_gives_back_what_it_took) {
    model_builder builder;
    flow_feeds feeds;
    rondo_device *device;
    rondo_workers *workers;
    rondo_program *program;
    size_t bytes = 0;
    model_builder_init(&builder);
    const size_t count = flow_model_build_moves(&builder);
    const uint8_t *model = model_builder_pack(&builder, &bytes);
    flow_feeds_make(&feeds, 1, 3, true);
    OK(rondo_device_open("host", &device));
    OK(rondo_program_parse_onnx(model, bytes, &program));
    OK(rondo_workers_create(2, &workers));
    const rondo_executor_options options = {.struct_size = sizeof options, .workers = workers};
    for (int i = 0; i < 2; ++i) {
        rondo_executor *executor;
        rondo_binding fetches[FLOW_OUTPUT_MAX] = {{.name = "out0"}};
        OK(rondo_executor_create(program, device, &options, &executor));
        OK(rondo_executor_run(executor, feeds.bindings, FLOW_FEED_COUNT, fetches, 1));
        rondo_tensor_deinit(&fetches[0].tensor);
        rondo_executor_destroy(executor);
        assert_int_equal(rondo__workers_get_limit(workers), 2);  // the test's own reference holds
    }
    assert_true(count > 0);
    rondo_workers_release(workers);
    rondo_program_destroy(program);
    rondo_device_release(device);
    model_builder_deinit(&builder);
}

TEST(what_is_refused) {
    rondo_workers *workers = (rondo_workers *)(void *)&workers;
    assert_int_equal(rondo_workers_create(0, &workers), RONDO_STATUS_INVALID);
    assert_null(workers);
    assert_int_equal(rondo_workers_create(257, &workers), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "count is 257"));
    assert_int_equal(rondo_workers_create(1, NULL), RONDO_STATUS_INVALID);
    rondo_workers_retain(NULL);
    rondo_workers_release(NULL);
}

static int register_op(void **state) {
    (void)state;
    const rondo_op_definition slow = {.struct_size = sizeof slow,
                                      .domain = "test",
                                      .name = "Slow",
                                      ONE_TO_ONE,
                                      .infer = user_ops_infer_same,
                                      .compute = compute};
    return rondo_op_register(&slow) == RONDO_STATUS_OK ? 0 : -1;
}

int main(void) {
    return RUN_TESTS(register_op, NULL);
}
