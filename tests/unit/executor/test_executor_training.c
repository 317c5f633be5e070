// Training or inference, a property of an executor: what ops do that leave it open, and that what a
// model says goes first.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/models/user_ops.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { COUNT = 256 };

typedef struct pair {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executors[2];  // for inference, for training
} pair;

static rondo_builder *begin(int32_t opset) {
    rondo_builder *builder;
    const rondo_builder_options options = {.struct_size = sizeof options, .opset = opset};
    OK(rondo_builder_create(&options, &builder));
    return builder;
}

static void finish(rondo_builder *builder, pair *out_pair) {
    OK(rondo_builder_add_output(builder, "y", NULL));
    out_pair->program = build_finish(builder);
    OK(rondo_device_open("host", &out_pair->device));
    for (int training = 0; training < 2; ++training) {
        const rondo_executor_options options = {
            .struct_size = sizeof options, .seed = 3, .training = training == 1};
        OK(rondo_executor_create(out_pair->program, out_pair->device, &options,
                                 &out_pair->executors[training]));
    }
}

static void close_pair(pair *p) {
    rondo_executor_destroy(p->executors[0]);
    rondo_executor_destroy(p->executors[1]);
    rondo_program_destroy(p->program);
    rondo_device_release(p->device);
}

// `x` may be NULL, for a model without inputs.
static void run(rondo_executor *executor, float *x, const rondo_shape *shape, float *out_y) {
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, x, *shape);
    rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, out_y, *shape);
    OK(rondo_executor_run(executor, &feed, x != NULL ? 1 : 0, &fetch, 1));
}

static void add_input(rondo_builder *builder, const rondo_shape *shape) {
    rondo_port x = {
        .struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = shape->rank};
    memcpy(x.extent, shape->extent, sizeof shape->extent);
    OK(rondo_builder_add_input(builder, &x));
}

// How many of ones came through Dropout, which doubles them or makes them zero.
static size_t count_kept(const float *y, float scale) {
    size_t kept = 0;
    for (size_t i = 0; i < COUNT; ++i) {
        assert_true(y[i] == 0.0f || y[i] == scale);
        kept += y[i] != 0.0f ? 1 : 0;
    }
    return kept;
}

static const rondo_shape row = {1, {COUNT}};

// Of every version that leaves it open; `is_folded`: of a constant.
static void test_dropout(int32_t opset, bool is_folded) {
    pair p;
    float x[COUNT];
    float y[2][COUNT];
    rondo_builder *builder = begin(opset);
    for (size_t i = 0; i < COUNT; ++i) {
        x[i] = 1.0f;
    }
    if (is_folded) {
        OK(rondo_builder_add_constant(builder, "x", RONDO_DTYPE_F32, &row, x));
    } else {
        add_input(builder, &row);
    }
    const rondo_attribute ratio = ATTRIBUTE_FLOAT("ratio", 0.75f);
    build_node(builder, "Dropout", "x", "y mask", &WITH_LIST(&ratio, opset < 12 ? 1 : 0));
    finish(builder, &p);
    for (int run_number = 0; run_number < 3; ++run_number) {
        float *const feed = is_folded ? NULL : x;
        const float scale = opset < 12 ? 4.0f : 2.0f;
        run(p.executors[0], feed, &row, y[0]);
        assert_memory_equal(y[0], x, sizeof x);
        memcpy(y[0], y[1], sizeof y[0]);
        run(p.executors[1], feed, &row, y[1]);
        const double share = (double)count_kept(y[1], scale) / COUNT;
        assert_true(share > 0.7 / (double)scale && share < 1.3 / (double)scale);
        assert_true(run_number == 0 || memcmp(y[0], y[1], sizeof y[0]) != 0);  // drawn anew
    }
    close_pair(&p);
}

TEST(test_executor_training__dropout) {
    static const int32_t opsets[] = {9, 10, 12, 13, 21};
    for (size_t i = 0; i < sizeof opsets / sizeof *opsets; ++i) {
        test_dropout(opsets[i], false);
        test_dropout(opsets[i], true);
    }
}

// One executor in turn for both, with plans of both kept, gives what one for each gives.
TEST(test_executor_training__a_choice_of_each_run) {
    pair p;
    float x[COUNT];
    float y[2][COUNT];
    rondo_builder *builder = begin(13);
    add_input(builder, &row);
    build_node(builder, "Dropout", "x", "y mask", NULL);
    finish(builder, &p);
    rondo_executor *both;
    const rondo_executor_options options = {.struct_size = sizeof options, .seed = 3};
    OK(rondo_executor_create(p.program, p.device, &options, &both));
    for (size_t i = 0; i < COUNT; ++i) {
        x[i] = 1.0f;
    }
    for (int i = 0; i < 12; ++i) {
        const int mode = i / 2 % 2;
        OK(rondo_executor_set_training(both, mode == 1));
        run(both, x, &row, y[0]);
        run(p.executors[mode], x, &row, y[1]);
        assert_memory_equal(y[0], y[1], sizeof x);
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(both, &stats));
    assert_int_equal(stats.plan_count, 2);
    assert_int_equal(stats.plan_miss_count, 2);
    assert_true(stats.replay_run_count >= 4);
    EXPECT(INVALID, "NULL", rondo_executor_set_training(NULL, true));
    rondo_executor_destroy(both);
    close_pair(&p);
}

// The model's word counts: inference is inference.
TEST(test_executor_training__said_by_an_input) {
    pair p;
    float x[COUNT] = {1, 2, 3};
    float y[COUNT];
    const float half = 0.5f;
    const uint8_t no = 0;
    rondo_builder *builder = begin(21);
    add_input(builder, &row);
    OK(rondo_builder_add_constant(builder, "half", RONDO_DTYPE_F32, &(rondo_shape){0}, &half));
    OK(rondo_builder_add_constant(builder, "no", RONDO_DTYPE_BOOL, &(rondo_shape){0}, &no));
    build_node(builder, "Dropout", "x half no", "y", NULL);
    finish(builder, &p);
    for (int training = 0; training < 2; ++training) {
        run(p.executors[training], x, &row, y);
        assert_memory_equal(x, y, sizeof x);
    }
    close_pair(&p);
}

// training_mode: -1 left out. Channel 0 holds 1 and 3: normalised by the batch that is -1 and 1.
static void test_batch_norm(int32_t opset, int training_mode, const float *wanted) {
    static const rondo_shape shape = {3, {1, 1, 2}};
    static const rondo_shape one = {1, {1}};
    const float scale = 1.0f;
    const float shift = 0.0f;
    const float mean = 0.0f;
    const float variance = 1.0f;
    pair p;
    float x[2] = {1, 3};
    rondo_builder *builder = begin(opset);
    add_input(builder, &shape);
    OK(rondo_builder_add_constant(builder, "s", RONDO_DTYPE_F32, &one, &scale));
    OK(rondo_builder_add_constant(builder, "b", RONDO_DTYPE_F32, &one, &shift));
    OK(rondo_builder_add_constant(builder, "m", RONDO_DTYPE_F32, &one, &mean));
    OK(rondo_builder_add_constant(builder, "v", RONDO_DTYPE_F32, &one, &variance));
    const rondo_attribute mode = ATTRIBUTE_INT("training_mode", training_mode);
    build_node(builder, "BatchNormalization", "x s b m v", "y",
               &WITH_LIST(&mode, training_mode >= 0 ? 1 : 0));
    finish(builder, &p);
    for (int training = 0; training < 2; ++training) {
        for (int run_number = 0; run_number < 3; ++run_number) {
            float y[2];
            run(p.executors[training], x, &shape, y);
            const float difference = y[0] - wanted[training];
            assert_true(difference < 1e-4f && difference > -1e-4f);
        }
    }
    close_pair(&p);
}

TEST(test_executor_training__batch_norm) {
    test_batch_norm(15, -1, (const float[]){1, -1});
    test_batch_norm(15, 0, (const float[]){1, 1});
    test_batch_norm(15, 1, (const float[]){-1, -1});
    test_batch_norm(9, -1, (const float[]){1, 1});  // one output: inference
}

// Ops of the program's own ask; in the body of an If, too.
TEST(test_executor_training__own_op) {
    static const rondo_shape one = {1, {1}};
    const uint8_t yes = 1;
    pair p;
    rondo_builder *bodies[2];
    const rondo_builder_node_options own = {.struct_size = sizeof own, .domain = "test"};
    OK(user_ops_register());
    rondo_builder *builder = begin(21);
    OK(rondo_builder_add_input(builder, &PORT("condition", RONDO_DTYPE_BOOL)));
    for (int b = 0; b < 2; ++b) {
        const char *const name = b == 0 ? "then" : "else";
        OK(rondo_builder_create_body(builder, NULL, &bodies[b]));
        OK(rondo_builder_add_node(bodies[b], "Mode", NULL, 0, &name, 1, &own));
        OK(rondo_builder_add_output(bodies[b], name, NULL));
    }
    const rondo_builder_node_options options =
        WITH(ATTRIBUTE_BODY("then_branch", bodies[0]), ATTRIBUTE_BODY("else_branch", bodies[1]));
    build_node(builder, "If", "condition", "y", &options);
    rondo_builder_destroy(bodies[0]);
    rondo_builder_destroy(bodies[1]);
    finish(builder, &p);
    for (int training = 0; training < 2; ++training) {
        float y = -1;
        uint8_t value = yes;
        const rondo_binding feed = BIND("condition", RONDO_DTYPE_BOOL, &value);
        rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, &y, one);
        for (int run_number = 0; run_number < 3; ++run_number) {
            OK(rondo_executor_run(p.executors[training], &feed, 1, &fetch, 1));
            assert_true(y == (float)training);
        }
    }
    close_pair(&p);
}

TEST_MAIN()
