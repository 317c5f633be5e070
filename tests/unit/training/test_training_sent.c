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
static rondo_program *make_lesson(bool scales) {
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .learning_rate = 0.01,
                                            .scale_loss = scales,
                                            .average_ranks = true};
    const char *const names[] = {"x", "v", "p"}, *loss = "loss";
    float values[COLUMNS];
    const rondo_tensor v = {.dtype = RONDO_DTYPE_F32, .shape = {2, {1, COLUMNS}}, .data = values};
    for (int i = 0; i < COLUMNS; ++i) {
        values[i] = 1.0f;
    }
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ROWS, COLUMNS)));
    OK(rondo_builder_add_parameter(b, "v", &v, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_node(b, "Mul", names, 2, &names[2], 1, NULL));
    if (scales) {
        OK(rondo_builder_add_mean(b, "p", "loss"));
    } else {
        OK(rondo_builder_add_node(b, "ReduceSum", &names[2], 1, &loss, 1, NULL));
    }
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

// Runs of averages in f16 with x in all elements; out_v [COLUMNS] as they leave it.
static void run_lesson(rank_world *w, float element, int runs, float *out_v) {
    const char *const averages = "AllReduce";
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .dtype = RONDO_DTYPE_F16,
                                            .use_f16 = &averages,
                                            .use_f16_count = 1,
                                            .communicator = w->communicator};
    rondo_program *program = w->data;
    rondo_executor *executor;
    float x[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; ++i) {
        x[i] = element;
    }
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ROWS, COLUMNS);
    RANK_OK(w, rondo_executor_create(program, w->device, &options, &executor));
    for (int run = 0; run < runs; ++run) {
        RANK_OK(w, rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    read_weights(w, executor, out_v);
    rondo_executor_destroy(executor);
}

static void learn(rank_world *w) {
    float v[COLUMNS];
    run_lesson(w, 10.0f, RUNS, v);
    // The first step is left out, and halves the scale.
    for (int i = 0; i < COLUMNS; ++i) {
        RANK_TRUE(w, fabs((double)v[i] - (1.0 - 0.01 * (RUNS - 1) * 10.0 / COLUMNS)) <= 1e-4);
    }
}

// Without a scale nothing is left out: what f16 cannot hold is an infinity, as of PyTorch and NCCL,
// and no smaller gradient.
static void learn_unscaled(rank_world *w) {
    static const struct {
        float x, v;
    } rows[] = {{10.0f, 1.0f - 0.01f * 10.0f * ROWS},
                {1e3f, -INFINITY},  // 300000 for each weight
                {-1e3f, INFINITY},
                {INFINITY, -INFINITY}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; ++k) {
        float v[COLUMNS];
        run_lesson(w, rows[k].x, 1, v);
        for (int i = 0; i < COLUMNS; ++i) {
            RANK_TRUE(w, v[i] == rows[k].v || fabsf(v[i] - rows[k].v) <= 1e-4f);
        }
    }
}

TEST(test_training_sent__what_rounding_makes_infinite_is_left_out) {
    rondo_program *program = make_lesson(true);
    for (int32_t size = 1; size <= 2; ++size) {
        ranks_world_run(size, "host", learn, program);
    }
    rondo_program_destroy(program);
}

TEST(test_training_sent__without_a_scale_infinities_arrive) {
    rondo_program *program = make_lesson(false);
    for (int32_t size = 1; size <= 2; ++size) {
        ranks_world_run(size, "host", learn_unscaled, program);
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
