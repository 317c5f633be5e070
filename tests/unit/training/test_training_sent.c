// What ranks send: buckets of a share of all gradients; in f16 a number that only rounding makes
// infinite is seen before it reaches the weights.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>

#include "program/program.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/ranks_world.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { ROWS = 300, COLUMNS = 7, RUNS = 4 };  // sums of more than 256 stay in f32

// loss = mean(x v), of which v has the gradient x / COLUMNS: with x = 10 and a scale of 65536 it is
// 93623, a sum that is kept in f32 and leaves f16.
static rondo_program *make_lesson(void) {
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .learning_rate = 0.01,
                                            .scale_loss = true,
                                            .average_ranks = true};
    const char *const names[] = {"x", "v", "p"};
    float values[COLUMNS];
    const rondo_tensor v = {.dtype = RONDO_DTYPE_F32, .shape = {2, {1, COLUMNS}}, .data = values};
    for (int i = 0; i < COLUMNS; ++i) {
        values[i] = 1.0f;
    }
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ROWS, COLUMNS)));
    OK(rondo_builder_add_parameter(b, "v", &v, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_node(b, "Mul", names, 2, &names[2], 1, NULL));
    OK(rondo_builder_add_mean(b, "p", "loss"));
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_minimize(b, "loss", &options));
    return build_finish(b);
}

static void read_weights(rank_world *w, rondo_executor *executor, float *out) {
    rondo_tensor now;
    rondo_stream *stream = rondo_executor_get_stream(executor);
    RANK_OK(w, rondo_executor_get_variable(executor, "v", &now));
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = out};
    const rondo_status status = rondo_tensor_copy(stream, &now, &to);
    rondo_tensor_deinit(&now);
    RANK_OK(w, status);
    RANK_OK(w, rondo_stream_synchronize(stream));
}

static void learn(rank_world *w) {
    const char *const averages = "AllReduce";
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = RONDO_DTYPE_F16,
                                            .use_f16 = &averages,
                                            .use_f16_count = 1,
                                            .communicator = w->communicator};
    rondo_program *program = w->data;
    rondo_executor *executor;
    float x[ROWS * COLUMNS];
    float v[COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        x[i] = 10.0f;
    }
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ROWS, COLUMNS);
    RANK_OK(w, rondo_executor_create(program, w->device, &options, &executor));
    for (int run = 0; run < RUNS; ++run) {
        RANK_OK(w, rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    read_weights(w, executor, v);
    // The first step is left out, and halves the scale.
    for (int i = 0; i < COLUMNS; ++i) {
        RANK_TRUE(w, fabs((double)v[i] - (1.0 - 0.01 * (RUNS - 1) * 10.0 / COLUMNS)) <= 1e-4);
    }
    rondo_executor_destroy(executor);
}

TEST(test_training_sent__what_rounding_makes_infinite_is_left_out) {
    rondo_program *program = make_lesson();
    for (int32_t size = 1; size <= 2; ++size) {
        ranks_world_run(size, "host", learn, program);
    }
    rondo_program_destroy(program);
}

// The averages of a step on variables of 16 MiB each.
static size_t count_buckets(int variables, size_t bucket_bytes) {
    const rondo_start start = {.struct_size = sizeof start, .kind = RONDO_START_NORMAL, .b = 1.0};
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .learning_rate = 0.01,
                                            .average_ranks = true,
                                            .bucket_bytes = bucket_bytes};
    static const char *const names[] = {"v0", "v1", "v2", "v3", "v4"};
    static const char *const sums[] = {"x", "s1", "s2", "s3", "s4", "s5"};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, 4 << 20)));
    for (int i = 0; i < variables; ++i) {
        const char *const inputs[] = {sums[i], names[i]};
        OK(rondo_builder_add_variable(b, &PORT(names[i], RONDO_DTYPE_F32, 4 << 20), &start));
        OK(rondo_builder_add_node(b, "Add", inputs, 2, &sums[i + 1], 1, NULL));
    }
    OK(rondo_builder_add_mean(b, sums[variables], "loss"));
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_minimize(b, "loss", &options));
    rondo_program *program = build_finish(b);
    size_t count = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        count += program->nodes[n].op.def->id == RONDO__FUSED_AllReduce ? 1 : 0;
    }
    rondo_program_destroy(program);
    return count;
}

TEST(test_training_sent__buckets_are_shares) {
    assert_int_equal(count_buckets(1, 0), 1);
    assert_int_equal(count_buckets(3, 0), 3);  // two are above 25 MiB, the least
    assert_int_equal(count_buckets(5, 0), 3);  // two fifths are two
    assert_int_equal(count_buckets(5, 100 << 20), 1);
    assert_int_equal(count_buckets(5, 1), 5);
}

TEST_MAIN()
