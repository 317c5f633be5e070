// What executors of one program share: packed weights, folded constants; and what they do not: the
// plans, which are found by shapes and not by values that decide none.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/models/user_ops.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "support/variables_world.h"

enum { LENGTHS = 64, THREADS = 4, HEADS = 4, WIDTH = 32 };

// ---- a decoder whose cache grows --------------------------------------------------------------

typedef struct decoder {
    rondo_device *device;
    rondo_program *program;
} decoder;

static decoder open_decoder(void) {
    decoder d = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/models/gpt_mini/model.onnx", get_source_dir());
    OK(rondo_device_open("host", &d.device));
    OK(rondo_program_load_onnx(path, &d.program));
    return d;
}

static void close_decoder(decoder *d) {
    rondo_program_destroy(d->program);
    rondo_device_release(d->device);
}

static rondo_executor *make_executor(const decoder *d, size_t plan_limit, uint64_t plan_bytes) {
    rondo_executor_options options = {.struct_size = sizeof options};
    rondo_executor *executor;
    options.plan_limit = plan_limit;
    options.plan_limit_bytes = plan_bytes;
    OK(rondo_executor_create(d->program, d->device, &options, &executor));
    return executor;
}

// One step; the sum of the logits.
static rondo_status try_step(rondo_executor *executor, int64_t length, int64_t position,
                             double *out_sum) {
    int64_t id = 5;
    const rondo_shape one = {.rank = 2, .extent = {1, 1}};
    const rondo_shape cache = {.rank = 6, .extent = {2, 2, 1, HEADS, length, WIDTH}};
    rondo_binding feeds[] = {BIND_SHAPE("ids", RONDO_DTYPE_I64, &id, one),
                             BIND_SHAPE("position", RONDO_DTYPE_I64, &position, one),
                             {.name = "past"}};
    rondo_binding fetch = {.name = "logits"};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &cache, &feeds[2].tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(&cache); ++i) {
        ((float *)feeds[2].tensor.data)[i] = (float)(i % 13) * 0.125f - 0.75f;
    }
    const rondo_status status = rondo_executor_run(executor, feeds, 3, &fetch, 1);
    *out_sum = 0.0;
    for (int64_t i = 0; status == RONDO_STATUS_OK && i < rondo_shape_get_count(&fetch.tensor.shape);
         ++i) {
        *out_sum += (double)((const float *)fetch.tensor.data)[i] * (double)(1 + i % 7);
    }
    rondo_tensor_deinit(&feeds[2].tensor);
    rondo_tensor_deinit(&fetch.tensor);
    return status;
}

static double step(rondo_executor *executor, int64_t length, int64_t position) {
    double sum = 0.0;
    OK(try_step(executor, length, position, &sum));
    return sum;
}

// ---- plans ------------------------------------------------------------------------------------

TEST(test_executor_shared__a_growing_cache_is_replayed_on_the_second_pass) {
    decoder d = open_decoder();
    rondo_executor *executor = make_executor(&d, 0, 0);
    double sums[LENGTHS];
    for (int64_t i = 0; i < LENGTHS; ++i) {
        sums[i] = step(executor, 1 + i, 1 + i);
    }
    rondo_executor_stats stats = variables_get_stats(executor);
    assert_int_equal(stats.eager_run_count, LENGTHS);
    assert_int_equal(stats.plan_miss_count, LENGTHS);
    assert_true(stats.node_count > 0);  // recorded while the device worked
    // Lengths share memory for runs: a few pieces, each twice as large as the one before.
    assert_true(executor->main.run_memory_bytes <= 4 * stats.arena_bytes);
    for (int64_t i = 0; i < LENGTHS; ++i) {
        assert_true(step(executor, 1 + i, 1 + i) == sums[i]);
    }
    stats = variables_get_stats(executor);
    assert_int_equal(stats.replay_run_count, LENGTHS);
    assert_int_equal(stats.eager_run_count, LENGTHS);
    assert_int_equal(stats.plan_hit_count, LENGTHS);
    assert_int_equal(stats.plan_count, LENGTHS);
    assert_int_equal(stats.plan_eviction_count, 0);
    assert_true(stats.plan_bytes > stats.arena_bytes && stats.plan_bytes < LENGTHS * (1u << 20));
    assert_true(stats.shared_constant_bytes == stats.constant_bytes && stats.constant_bytes > 0);
    rondo_executor_destroy(executor);
    close_decoder(&d);
}

// Position and token are data: a plan serves them all.
TEST(test_executor_shared__a_position_needs_no_plan_of_its_own) {
    decoder d = open_decoder();
    rondo_executor *executor = make_executor(&d, 0, 0);
    double sums[8];
    for (int64_t position = 0; position < 8; ++position) {
        sums[position] = step(executor, 9, position);
        assert_true((variables_get_stats(executor).node_count > 0) == (position > 0));
    }
    assert_true(sums[2] != sums[3]);
    rondo_executor_stats stats = variables_get_stats(executor);
    assert_int_equal(stats.plan_count, 1);
    assert_int_equal(stats.replay_run_count, 7);
    rondo_executor_destroy(executor);
    executor = make_executor(&d, 0, 0);
    OK(rondo_executor_set_graphs(executor, RONDO_GRAPHS_OFF));
    for (int64_t position = 0; position < 8; ++position) {
        assert_true(step(executor, 9, position) == sums[position]);
    }
    rondo_executor_destroy(executor);
    close_decoder(&d);
}

// The bound in bytes, below what the lengths take together.
TEST(test_executor_shared__plans_keep_within_their_bytes) {
    decoder d = open_decoder();
    rondo_executor *free_one = make_executor(&d, 0, 0);
    for (int64_t length = 1; length <= LENGTHS; ++length) {
        (void)step(free_one, length, length);
    }
    const uint64_t limit = variables_get_stats(free_one).plan_bytes / 3;
    rondo_executor_destroy(free_one);
    rondo_executor *executor = make_executor(&d, 0, limit);
    for (int pass = 0; pass < 2; ++pass) {
        for (int64_t length = 1; length <= LENGTHS; ++length) {
            (void)step(executor, length, length);
            const rondo_executor_stats stats = variables_get_stats(executor);
            assert_true(stats.plan_bytes <= limit);
            assert_true(stats.plan_count >= 1 && stats.plan_count < LENGTHS);
        }
    }
    assert_true(variables_get_stats(executor).plan_eviction_count > LENGTHS / 2);
    rondo_executor_destroy(executor);
    executor = make_executor(&d, 0, 1);  // one is always kept
    for (int64_t run = 0; run < 6; ++run) {
        (void)step(executor, 1 + run % 2, 1);
        assert_int_equal(variables_get_stats(executor).plan_count, 1);
    }
    rondo_executor_destroy(executor);
    close_decoder(&d);
}

// ---- weights ----------------------------------------------------------------------------------

TEST(test_executor_shared__weights_are_packed_once_for_a_program) {
    decoder d = open_decoder();
    rondo_executor *first = make_executor(&d, 0, 0);
    const double sum = step(first, 3, 2);
    assert_int_equal(variables_get_stats(first).shared_constant_bytes, 0);
    const uint64_t bytes = variables_get_stats(first).constant_bytes;
    rondo_executor *second = make_executor(&d, 0, 0);
    assert_true(first->resources.weights.store == second->resources.weights.store);
    assert_true(first->main.base == second->main.base);
    const int64_t taken = rondo__memory_get_thread_bytes();
    assert_true(step(second, 3, 2) == sum);
    assert_true(rondo__memory_get_thread_bytes() - taken < (int64_t)bytes);  // none of it again
    assert_int_equal(variables_get_stats(second).constant_bytes, bytes);
    assert_int_equal(variables_get_stats(second).shared_constant_bytes, bytes);
    // Each counts it in full, whoever made it.
    assert_true(rondo__budget_get_used(second->resources.budget) >= bytes);
    assert_true(rondo__budget_get_used(first->resources.budget) >= bytes);
    rondo_executor_destroy(first);
    assert_int_equal(variables_get_stats(second).shared_constant_bytes, 0);
    assert_true(step(second, 3, 2) == sum);
    // Another program of the same file shares nothing.
    decoder other = open_decoder();
    rondo_executor *third = make_executor(&other, 0, 0);
    assert_true(step(third, 3, 2) == sum);
    assert_int_equal(variables_get_stats(third).shared_constant_bytes, 0);
    rondo_executor_destroy(third);
    close_decoder(&other);
    // Executors keep the program alive, and what hangs on it.
    rondo_program_destroy(d.program);
    d.program = NULL;
    assert_true(step(second, 4, 2) == step(second, 4, 2));
    rondo_executor_destroy(second);
    close_decoder(&d);
}

TEST(test_executor_shared__other_options_have_another_base) {
    decoder d = open_decoder();
    rondo_executor_options rows[4];
    rondo_executor *executors[4];
    static const char *const patterns[] = {"MatMul"};
    for (size_t i = 0; i < 4; ++i) {
        rows[i] = (rondo_executor_options){.struct_size = sizeof rows[i]};
    }
    rows[1].op_by_op = true;
    rows[2].dtype = RONDO_DTYPE_F16;
    rows[3].dtype = RONDO_DTYPE_F16;
    rows[3].keep_f32 = patterns;
    rows[3].keep_f32_count = 1;
    for (size_t i = 0; i < 4; ++i) {
        OK(rondo_executor_create(d.program, d.device, &rows[i], &executors[i]));
        for (size_t k = 0; k < i; ++k) {
            assert_true(executors[i]->main.base != executors[k]->main.base);
        }
        rondo_executor *same;
        OK(rondo_executor_create(d.program, d.device, &rows[i], &same));
        assert_true(same->main.base == executors[i]->main.base);
        assert_true(step(same, 2, 1) == step(executors[i], 2, 1));
        rondo_executor_destroy(same);
    }
    for (size_t i = 0; i < 4; ++i) {
        rondo_executor_destroy(executors[i]);
    }
    close_decoder(&d);
}

typedef struct worker {
    decoder *decoder;
    double sums[6];
    bool has_failed;
} worker;

static void *run_worker(void *data) {
    worker *w = data;
    for (int round = 0; round < 3 && !w->has_failed; ++round) {
        rondo_executor *executor = NULL;
        w->has_failed = rondo_executor_create(w->decoder->program, w->decoder->device, NULL,
                                              &executor) != RONDO_STATUS_OK;
        for (int64_t i = 0; i < 12 && !w->has_failed; ++i) {
            w->has_failed = try_step(executor, 1 + i % 6, 1, &w->sums[i % 6]) != RONDO_STATUS_OK;
        }
        rondo_executor_destroy(executor);
    }
    return NULL;
}

// Executors come and go in several threads, so that each form is made, found and freed by all.
TEST(test_executor_shared__threads_share_a_program) {
    decoder d = open_decoder();
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (worker){.decoder = &d};
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(workers[i].has_failed);
        for (int k = 0; k < 6; ++k) {
            assert_true(workers[i].sums[k] == workers[0].sums[k]);
        }
    }
    close_decoder(&d);
}

// ---- forks ------------------------------------------------------------------------------------

enum { OPEN, CLOSED, ENTERED };

static atomic_int gate;

static void sleep_a_little(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Folded when a base is made, under the lock of what executors of the program share.
static rondo_status pass_gate(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                              rondo_tensor *outputs, size_t output_count) {
    int expected = CLOSED;
    (void)node;
    (void)input_count;
    (void)output_count;
    (void)atomic_compare_exchange_strong(&gate, &expected, ENTERED);
    while (atomic_load(&gate) == ENTERED) {
        sleep_a_little();
    }
    memcpy(outputs[0].data, inputs[0].data, rondo_tensor_get_bytes(&inputs[0]));
    return RONDO_STATUS_OK;
}

static rondo_program *build_gate(void) {
    static const float one = 1;
    const rondo_op_definition gate_op = {.struct_size = sizeof gate_op,
                                         .domain = "test",
                                         .name = "Gate",
                                         ONE_TO_ONE,
                                         .infer = user_ops_infer_same,
                                         .compute = pass_gate};
    const rondo_builder_node_options options = {.struct_size = sizeof options, .domain = "test"};
    const rondo_tensor w = {RONDO_DTYPE_F32, {1, {1}}, (void *)(uintptr_t)&one, NULL, NULL};
    OK(rondo_op_register(&gate_op));
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, -1)));
    OK(rondo_builder_add_parameter(builder, "w", &w, RONDO_PARAMETER_COPIED));
    build_node(builder, "Gate", "w", "v", &options);
    build_node(builder, "Add", "x v", "y", NULL);
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// Makes an executor with options that nobody had, so that it makes a base.
static void *make_another(void *data) {
    const decoder *d = data;
    const rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    rondo_executor *executor;
    OK(rondo_executor_create(d->program, d->device, &options, &executor));
    rondo_executor_destroy(executor);
    return NULL;
}

static rondo_status run_rows(rondo_executor *executor, int64_t rows) {
    float x[4] = {0};
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {rows}}, x, NULL, NULL}};
    rondo_binding fetch = {.name = "y"};
    const rondo_status status = rondo_executor_run(executor, &feed, 1, &fetch, 1);
    rondo_tensor_deinit(&fetch.tensor);
    return status;
}

// What a child makes of an executor of its parent: its exit status, 0 where all is as it should be.
static int use_in_child(rondo_executor *executor) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    if (run_rows(executor, 1) != RONDO_STATUS_LOST || run_rows(executor, 3) != RONDO_STATUS_LOST) {
        return 1;
    }
    if (rondo_executor_wait(executor) != RONDO_STATUS_LOST ||
        rondo_executor_rerun(executor) != RONDO_STATUS_LOST ||
        rondo_executor_get_stats(executor, &stats) != RONDO_STATUS_LOST) {
        return 2;
    }
    rondo_executor_destroy(executor);
    return 0;
}

TEST(test_executor_shared__a_child_waits_for_nobody) {
    decoder d = {.program = build_gate()};
    rondo_executor *executor;
    pthread_t thread;
    int status = 0;
    OK(rondo_device_open("host", &d.device));
    OK(rondo_executor_create(d.program, d.device, NULL, &executor));
    OK(run_rows(executor, 1));
    atomic_store(&gate, CLOSED);
    assert_int_equal(pthread_create(&thread, NULL, make_another, &d), 0);
    while (atomic_load(&gate) != ENTERED) {
        sleep_a_little();
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(10);
        _exit(use_in_child(executor));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    atomic_store(&gate, OPEN);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    rondo_executor_destroy(executor);
    close_decoder(&d);
}

TEST_MAIN()
