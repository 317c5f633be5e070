// Ranks that send gradients in f16: a number that only rounding makes infinite is seen before it
// reaches the weights.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>

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

TEST_MAIN()
