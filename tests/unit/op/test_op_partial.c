// Shape inference with unknown extents: what is known does not depend on them, whatever they are.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "op/op.h"
#include "support/cases/op_cases.h"
#include "support/test.h"

enum { RANKLESS = 99 };

typedef struct partial_case {
    const char *op;
    int32_t opset;
    const char *attribute;  // an int, or an int list of one
    bool is_list;
    int64_t value;
    rondo_dtype dtype;
    rondo_shape inputs[2];
    int64_t constant[2];  // input 1, when constant_count is not 0: i64 [constant_count]
    int64_t constant_count;
    rondo_shape wanted;  // rank RANKLESS: nothing is known
} partial_case;

#define SHAPE(n, ...)                          \
    {                                          \
        .rank = (n), .extent = { __VA_ARGS__ } \
    }
#define NO_RANK \
    { .rank = RANKLESS }

static const partial_case cases[] = {
    // op, opset, attribute, dtype, inputs, constant, wanted
    {"Relu", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 5)}, {0}, 0, SHAPE(2, -1, 5)},
    {"Add",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, 5), SHAPE(1, 5)},
     {0},
     0,
     SHAPE(2, -1, 5)},
    {"Add", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(1, -1), SHAPE(1, 5)}, {0}, 0, SHAPE(1, 5)},
    {"Add", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(1, -1), SHAPE(1, 1)}, {0}, 0, SHAPE(1, -1)},
    {"Add", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(1, -1), SHAPE(1, -1)}, {0}, 0, SHAPE(1, -1)},
    {"Add", 17, NULL, 0, 0, RONDO_DTYPE_F32, {NO_RANK, SHAPE(2, 3, 4)}, {0}, 0, NO_RANK},
    {"Add", 17, NULL, 0, 0, RONDO_DTYPE_F32, {NO_RANK, SHAPE(2, 1, -1)}, {0}, 0, NO_RANK},
    {"Add", 17, NULL, 0, 0, RONDO_DTYPE_F32, {NO_RANK, SHAPE(2, -1, -1)}, {0}, 0, NO_RANK},
    {"Add",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(3, -1, -1, -1), SHAPE(3, -1, 10, 24)},
     {0},
     0,
     SHAPE(3, -1, 10, 24)},
    {"MatMul",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, 4), SHAPE(2, 4, 3)},
     {0},
     0,
     SHAPE(2, -1, 3)},
    {"MatMul",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, 4), SHAPE(2, 4, -1)},
     {0},
     0,
     SHAPE(2, -1, -1)},
    // The columns of A are the rows of B, and nothing else fits.
    {"MatMul",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, -1), SHAPE(2, 24, 5)},
     {0},
     0,
     SHAPE(2, -1, -1)},
    {"Gemm",
     17,
     "transB",
     0,
     1,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, -1), SHAPE(2, 5, 24)},
     {0},
     0,
     SHAPE(2, -1, -1)},
    {"Conv",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(4, 2, -1, 9, 9), SHAPE(4, 6, 3, 2, 2)},
     {0},
     0,
     SHAPE(4, -1, -1, -1, -1)},
    {"Conv",
     17,
     NULL,
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(3, 2, 3, -1), SHAPE(3, 6, 3, -1)},
     {0},
     0,
     SHAPE(3, 2, 6, -1)},
    {"Concat",
     17,
     "axis",
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, 3), SHAPE(2, -1, 3)},
     {0},
     0,
     SHAPE(2, -1, 3)},
    {"Concat",
     17,
     "axis",
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, 2, -1), SHAPE(2, 5, -1)},
     {0},
     0,
     SHAPE(2, -1, -1)},  // an empty input that does not fit is left out
    {"ReduceSum", 17, "keepdims", 0, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 3)}, {0}, 0, {0}},
    {"ReduceSum", 17, "keepdims", 0, 0, RONDO_DTYPE_F32, {NO_RANK}, {0}, 0, {0}},
    {"ReduceSum", 17, "keepdims", 0, 1, RONDO_DTYPE_F32, {NO_RANK}, {0}, 0, NO_RANK},
    {"ReduceMax", 17, "axes", 1, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 3)}, {0}, 0, SHAPE(2, 1, 3)},
    {"Size", 17, NULL, 0, 0, RONDO_DTYPE_F32, {NO_RANK}, {0}, 0, {0}},
    {"Shape", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(3, -1, -1, 2)}, {0}, 0, SHAPE(1, 3)},
    {"Gather",
     17,
     "axis",
     0,
     0,
     RONDO_DTYPE_I64,
     {SHAPE(2, 9, 4), SHAPE(1, -1)},
     {0},
     0,
     SHAPE(2, -1, 4)},
    {"NonZero", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 3)}, {0}, 0, SHAPE(2, 2, -1)},
    {"Squeeze", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 3)}, {0}, 0, NO_RANK},
    {"SpaceToDepth",
     17,
     "blocksize",
     0,
     5,
     RONDO_DTYPE_F32,
     {SHAPE(4, 1, 1, -1, 5)},
     {0},
     0,
     SHAPE(4, 1, 25, -1, 1)},
    {"Reshape", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 6)}, {-1, 3}, 2, SHAPE(2, -1, 3)},
    {"Expand", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(2, -1, 1)}, {1, 3}, 2, SHAPE(2, -1, 3)},
    {"TopK", 17, NULL, 0, 0, RONDO_DTYPE_F32, {SHAPE(2, 4, -1)}, {300}, 1, SHAPE(2, 4, 300)},
    // Only inputs without elements would fit.
    {"Concat",
     17,
     "axis",
     0,
     2,
     RONDO_DTYPE_F32,
     {SHAPE(4, -1, -1, -1, -1), SHAPE(4, 1, 4, 7, 8)},
     {0},
     0,
     NO_RANK},
    {"Concat",
     17,
     "axis",
     0,
     0,
     RONDO_DTYPE_F32,
     {SHAPE(2, -1, 5), SHAPE(2, 3, 5)},
     {0},
     0,
     SHAPE(2, -1, 5)},
    {"Flatten", 17, "axis", 0, 1, RONDO_DTYPE_F32, {SHAPE(3, 2, -1, 3)}, {0}, 0, SHAPE(2, 2, -1)},
};

static void fill_info(const rondo_shape *shape, rondo_dtype dtype, rondo__tensor_info *out_info) {
    *out_info = (rondo__tensor_info){.dtype = dtype};
    if (shape->rank == RANKLESS) {
        return;
    }
    out_info->shape = *shape;
    out_info->is_rank_known = true;
    out_info->is_shape_known = rondo_shape_get_count(shape) >= 0;
}

static bool is_as_wanted(const rondo__tensor_info *made, const rondo_shape *wanted) {
    return wanted->rank == RANKLESS
               ? !rondo__info_has_rank(made)
               : rondo__info_has_rank(made) && rondo_shape_is_equal(&made->shape, wanted) &&
                     made->is_shape_known == (rondo_shape_get_count(wanted) >= 0);
}

static void run_case(const partial_case *c) {
    rondo__op op = {.def = rondo__op_lookup("", c->op, c->opset), .opset = c->opset};
    assert_non_null(op.def);
    op.name = rondo__strdup("the_node");
    if (c->attribute != NULL) {
        assert_int_equal(c->is_list ? rondo__op_set_ints(&op, c->attribute, &c->value, 1)
                                    : rondo__op_set_int(&op, c->attribute, c->value),
                         RONDO_STATUS_OK);
    }
    rondo__tensor_info inputs[2];
    rondo__tensor_info outputs[2];
    int64_t values[2] = {c->constant[0], c->constant[1]};
    const rondo_tensor constant = {.dtype = RONDO_DTYPE_I64,
                                   .shape = {.rank = 1, .extent = {c->constant_count}},
                                   .data = values};
    fill_info(&c->inputs[0], c->dtype, &inputs[0]);
    fill_info(&c->inputs[1], c->dtype, &inputs[1]);
    if (c->constant_count > 0) {
        fill_info(&constant.shape, RONDO_DTYPE_I64, &inputs[1]);
        inputs[1].constant = &constant;
    }
    const bool has_second = c->constant_count > 0 || c->inputs[1].rank > 0;
    rondo__infer infer = {.op = &op,
                          .input_count = has_second ? 2 : 1,
                          .output_count = op.def->output_min,
                          .inputs = inputs,
                          .outputs = outputs};
    assert_int_equal(rondo__op_infer_partial(&infer), RONDO_STATUS_OK);
    if (!is_as_wanted(&outputs[0], &c->wanted)) {
        char text[160];
        print_error("%s (case %zu) gives rank %s, %s\n", c->op, (size_t)(c - cases),
                    rondo__info_has_rank(&outputs[0]) ? "known" : "unknown",
                    rondo_shape_format(&outputs[0].shape, text, sizeof text));
    }
    assert_true(is_as_wanted(&outputs[0], &c->wanted));
    rondo__op_deinit(&op);
}

TEST(test_op_partial__what_does_not_depend_is_known) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        run_case(&cases[i]);
    }
}

// The first two of a list, of which there may be fewer: not 2.
TEST(test_op_partial__slices_are_not_trusted) {
    rondo__op op = {.def = rondo__op_lookup("", "Slice", 17), .opset = 17};
    op.name = rondo__strdup("the_node");
    static int64_t values[2] = {0, 2};
    const rondo_tensor bounds[2] = {
        {.dtype = RONDO_DTYPE_I64, .shape = {.rank = 1, .extent = {1}}, .data = &values[0]},
        {.dtype = RONDO_DTYPE_I64, .shape = {.rank = 1, .extent = {1}}, .data = &values[1]}};
    rondo__tensor_info inputs[3];
    rondo__tensor_info output;
    fill_info(&(rondo_shape){.rank = 2, .extent = {-1, 7}}, RONDO_DTYPE_F32, &inputs[0]);
    for (size_t i = 0; i < 2; ++i) {
        fill_info(&bounds[i].shape, RONDO_DTYPE_I64, &inputs[1 + i]);
        inputs[1 + i].constant = &bounds[i];
    }
    rondo__infer infer = {
        .op = &op, .input_count = 3, .output_count = 1, .inputs = inputs, .outputs = &output};
    assert_int_equal(rondo__op_infer_partial(&infer), RONDO_STATUS_OK);
    assert_true(is_as_wanted(&output, &(const rondo_shape){.rank = 2, .extent = {-1, 7}}));
    rondo__op_deinit(&op);
}

// A GRU whose first state has no known extent: ranks are told, and no extents.
TEST(test_op_partial__states_are_left_out) {
    static const rondo_shape shapes[6] = {{.rank = 3, .extent = {5, -1, 6}},
                                          {.rank = 3, .extent = {1, 24, 6}},
                                          {.rank = 3, .extent = {1, 24, 8}},
                                          {.rank = RANKLESS},
                                          {.rank = RANKLESS},
                                          {.rank = 3, .extent = {-1, -1, -1}}};
    rondo__op op = {.def = rondo__op_lookup("", "GRU", 17), .opset = 17};
    op.name = rondo__strdup("the_node");
    assert_int_equal(rondo__op_set_int(&op, "hidden_size", 8), RONDO_STATUS_OK);
    rondo__tensor_info inputs[6];
    rondo__tensor_info outputs[2];
    for (size_t i = 0; i < 6; ++i) {
        const bool is_there = shapes[i].rank != RANKLESS;
        fill_info(&shapes[i], is_there ? RONDO_DTYPE_F32 : RONDO_DTYPE_NONE, &inputs[i]);
    }
    rondo__infer infer = {
        .op = &op, .input_count = 6, .output_count = 2, .inputs = inputs, .outputs = outputs};
    assert_int_equal(rondo__op_infer_partial(&infer), RONDO_STATUS_OK);
    assert_true(is_as_wanted(&outputs[0], &(const rondo_shape){4, {-1, -1, -1, -1}}));
    assert_true(is_as_wanted(&outputs[1], &(const rondo_shape){3, {-1, -1, -1}}));
    rondo__op_deinit(&op);
}

// ---- drawn ------------------------------------------------------------------------------------

enum { DRAWS = 40, PORTS_MAX = 50 };

typedef struct drawing {
    uint64_t random;
    size_t asked, told;  // questions; extents that were told of
    size_t wrong;
} drawing;

static uint64_t draw(drawing *d, uint64_t below) {
    d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->random >> 33) % below;
}

// Extents of one input, or of all, each with the same chance, are not known any more.
static void blank(drawing *d, rondo__tensor_info *inputs, size_t count) {
    const uint64_t one_of = 1 + draw(d, 6);
    const size_t only = draw(d, 2) == 0 ? draw(d, count) : SIZE_MAX;
    for (size_t i = 0; i < count; ++i) {
        if (only != SIZE_MAX && i != only) {
            continue;
        }
        for (int32_t k = 0; inputs[i].constant == NULL && k < inputs[i].shape.rank; ++k) {
            if (draw(d, one_of) == 0) {
                inputs[i].shape.extent[k] = -1;
                inputs[i].is_shape_known = false;
                inputs[i].is_rank_known = true;
            }
        }
    }
}

// What is told without the extents is so with them.
static void compare_told(drawing *d, const rondo__op *op, const rondo__tensor_info *told,
                         const rondo__tensor_info *all) {
    char have[160];
    char want[160];
    if (!rondo__info_has_rank(told) || !rondo__info_has_rank(all)) {
        return;
    }
    bool is_so = told->shape.rank == all->shape.rank && told->dtype == all->dtype;
    for (int32_t k = 0; is_so && k < told->shape.rank; ++k) {
        d->told += told->shape.extent[k] >= 0 ? 1 : 0;
        is_so = told->shape.extent[k] < 0 || told->shape.extent[k] == all->shape.extent[k];
    }
    if (!is_so && ++d->wrong <= 20) {
        print_error("%s: told %s, is %s\n", op->def->name,
                    rondo_shape_format(&told->shape, have, sizeof have),
                    rondo_shape_format(&all->shape, want, sizeof want));
    }
}

static void draw_case(void *user_data, const rondo__op *op, const rondo_tensor *tensors,
                      const bool *is_known, size_t input_count, size_t output_count) {
    drawing *d = user_data;
    rondo__tensor_info inputs[PORTS_MAX];
    rondo__tensor_info blanked[PORTS_MAX];
    rondo__tensor_info all[PORTS_MAX] = {0};
    rondo__tensor_info told[PORTS_MAX];
    for (size_t i = 0; i < input_count; ++i) {
        fill_info(&tensors[i].shape, tensors[i].dtype, &inputs[i]);
        inputs[i].constant = is_known[i] ? &tensors[i] : NULL;
    }
    rondo__infer infer = {.op = op,
                          .input_count = input_count,
                          .output_count = output_count,
                          .inputs = inputs,
                          .outputs = all};
    if (op->def->infer == NULL || rondo__op_infer(&infer) != RONDO_STATUS_OK) {
        return;
    }
    infer.inputs = blanked;
    infer.outputs = told;
    for (int n = 0; n < DRAWS; ++n) {
        memcpy(blanked, inputs, sizeof inputs);
        blank(d, blanked, input_count);
        d->asked += 1;
        assert_int_equal(rondo__op_infer_partial(&infer), RONDO_STATUS_OK);
        for (size_t o = 0; o < output_count; ++o) {
            compare_told(d, op, &told[o], &all[o]);
        }
    }
}

TEST(test_op_partial__what_is_told_is_so) {
    drawing d = {.random = 1};
    op_cases_visit(draw_case, &d);
    print_message("%zu questions, %zu extents told\n", d.asked, d.told);
    assert_true(d.asked > 1000 && d.told > 1000);
    assert_int_equal(d.wrong, 0);
}

TEST_MAIN()
