// The most that an op can find: what inference leaves open is the count, and all else agrees.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "op/bounds.h"
#include "support/expect_ok.h"
#include "support/test.h"

#define SHAPE(rank_, ...)                          \
    {                                              \
        .rank = (rank_), .extent = { __VA_ARGS__ } \
    }
#define NO_AXIS INT64_MIN
#define NO_MOST INT64_MIN

enum { INPUTS_MAX = 3, OUTPUTS_MAX = 4 };

typedef struct row {
    const char *op;
    int64_t axis;
    rondo_shape inputs[INPUTS_MAX];
    size_t input_count;
    int64_t most;  // the value of input 2
    size_t output;
    rondo_shape want;
    int32_t counted;
} row;

static const row rows[] = {
    {"NonZero", NO_AXIS, {SHAPE(2, 3, 4)}, 1, NO_MOST, 0, SHAPE(2, 2, 12), 1},
    {"NonZero", NO_AXIS, {SHAPE(0, 0)}, 1, NO_MOST, 0, SHAPE(2, 1, 1), 1},
    {"NonZero", NO_AXIS, {SHAPE(1, 0)}, 1, NO_MOST, 0, SHAPE(2, 1, 0), 1},
    {"Compress", NO_AXIS, {SHAPE(2, 3, 4), SHAPE(1, 5)}, 2, NO_MOST, 0, SHAPE(1, 5), 0},
    {"Compress", NO_AXIS, {SHAPE(2, 3, 4), SHAPE(1, 50)}, 2, NO_MOST, 0, SHAPE(1, 12), 0},
    {"Compress", -2, {SHAPE(2, 3, 4), SHAPE(1, 2)}, 2, NO_MOST, 0, SHAPE(2, 2, 4), 0},
    {"Compress", 1, {SHAPE(2, 3, 4), SHAPE(1, 9)}, 2, NO_MOST, 0, SHAPE(2, 3, 4), 1},
    {"Unique", NO_AXIS, {SHAPE(2, 3, 4)}, 1, NO_MOST, 0, SHAPE(1, 12), 0},
    {"Unique", NO_AXIS, {SHAPE(2, 3, 4)}, 1, NO_MOST, 2, SHAPE(1, 12), -1},
    {"Unique", 1, {SHAPE(2, 3, 4)}, 1, NO_MOST, 0, SHAPE(2, 3, 4), 1},
    {"Unique", 1, {SHAPE(2, 3, 4)}, 1, NO_MOST, 1, SHAPE(1, 4), 0},
    {"Unique", 0, {SHAPE(2, 3, 4)}, 1, NO_MOST, 2, SHAPE(1, 3), -1},
    {"Unique", 0, {SHAPE(2, 3, 4)}, 1, NO_MOST, 3, SHAPE(1, 3), 0},
    {"NonMaxSuppression",
     NO_AXIS,
     {SHAPE(3, 2, 9, 4), SHAPE(3, 2, 5, 9)},
     2,
     NO_MOST,
     0,
     SHAPE(2, 0, 3),
     0},
    {"NonMaxSuppression",
     NO_AXIS,
     {SHAPE(3, 2, 9, 4), SHAPE(3, 2, 5, 9), SHAPE(1, 1)},
     3,
     NO_MOST,
     0,
     SHAPE(2, 90, 3),
     0},
    {"NonMaxSuppression",
     NO_AXIS,
     {SHAPE(3, 2, 9, 4), SHAPE(3, 2, 5, 9), SHAPE(1, 1)},
     3,
     4,
     0,
     SHAPE(2, 40, 3),
     0},
    {"NonMaxSuppression",
     NO_AXIS,
     {SHAPE(3, 2, 9, 4), SHAPE(3, 2, 5, 9), SHAPE(1, 1)},
     3,
     -7,
     0,
     SHAPE(2, 0, 3),
     0},
};

typedef struct world {
    rondo__op op;
    int64_t most;
    rondo_tensor constant;
    rondo__tensor_info inputs[INPUTS_MAX];
} world;

static void open_world(world *w, const row *r) {
    const bool is_suppression = strcmp(r->op, "NonMaxSuppression") == 0;
    *w = (world){.most = r->most};
    w->op.def = rondo__op_lookup("", r->op, 13);
    assert_non_null(w->op.def);
    if (r->axis != NO_AXIS) {
        OK(rondo__op_set_int(&w->op, "axis", r->axis));
    }
    for (size_t i = 0; i < r->input_count; ++i) {
        const bool is_condition = i == 1 && !is_suppression;
        w->inputs[i] = (rondo__tensor_info){.dtype = is_condition ? RONDO_DTYPE_BOOL
                                                     : i == 2     ? RONDO_DTYPE_I64
                                                                  : RONDO_DTYPE_F32,
                                            .is_shape_known = true,
                                            .shape = r->inputs[i]};
    }
    w->constant = (rondo_tensor){.dtype = RONDO_DTYPE_I64, .shape = SHAPE(1, 1), .data = &w->most};
    if (r->most != NO_MOST) {
        w->inputs[2].constant = &w->constant;
    }
}

TEST(test_op_bounds__rows) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const row *r = &rows[i];
        rondo__tensor_info outputs[OUTPUTS_MAX];
        rondo__op_bound bound;
        world w;
        open_world(&w, r);
        if (!rondo__op_get_bound(&w.op, w.inputs, r->input_count, r->output, &bound) ||
            !rondo_shape_is_equal(&bound.shape, &r->want) || bound.axis != r->counted) {
            char text[96];
            fail_msg("row %zu, %s: %s, axis %d", i, r->op,
                     rondo_shape_format(&bound.shape, text, sizeof text), (int)bound.axis);
        }
        // Inference gives the same but for the count.
        rondo__infer infer = {.op = &w.op,
                              .input_count = r->input_count,
                              .output_count = w.op.def->output_max,
                              .inputs = w.inputs,
                              .outputs = outputs};
        OK(rondo__op_infer(&infer));
        const rondo_shape *shape = &outputs[r->output].shape;
        assert_int_equal(shape->rank, bound.shape.rank);
        for (int32_t d = 0; d < shape->rank; ++d) {
            assert_true(shape->extent[d] < 0 ? d == bound.axis || bound.axis < 0
                                             : shape->extent[d] == bound.shape.extent[d]);
        }
        rondo__op_deinit(&w.op);
    }
}

// What is not known, no such op, and more than can be counted.
TEST(test_op_bounds__none) {
    rondo__op_bound bound;
    world w;
    open_world(&w, &rows[0]);
    w.inputs[0].is_shape_known = false;
    assert_false(rondo__op_get_bound(&w.op, w.inputs, 1, 0, &bound));
    w.inputs[0].is_shape_known = true;
    w.op.def = rondo__op_lookup("", "Neg", 13);
    assert_false(rondo__op_get_bound(&w.op, w.inputs, 1, 0, &bound));
    open_world(&w, &rows[14]);
    w.inputs[1].shape = (rondo_shape)SHAPE(3, INT64_C(1) << 30, INT64_C(1) << 30, 9);
    assert_false(rondo__op_get_bound(&w.op, w.inputs, 3, 0, &bound));
}

TEST_MAIN()
