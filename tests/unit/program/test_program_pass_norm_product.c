// Which products take the LayerNormalization before them in, and that the results stay the same.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include "base/memory.h"
#include "program/edit.h"
#include "program/passes/passes.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { ROWS = 6, HALF_NAN = 0x7e00, HALF_INFINITY = 0x7c00 };

typedef struct row {
    const char *what;
    int64_t columns;  // of x; 0: 16
    int64_t axis;
    rondo_dtype dtype;                        // NONE: f16
    uint16_t odd_gain, odd_weight, odd_bias;  // bits of one number of each
    bool has_no_shift, has_no_bias;
    bool computes_weights;   // they are an input
    bool is_turned;          // the product reads the columns
    int reshapes;            // so many between the two
    bool shows_rows;         // the normalised rows are an output
    bool adds_rows_later;    // they are the residual of a second product
    bool adds_rows;          // they are the product's own residual
    bool adds_rows_squared;  // which a node before the product makes
    bool wants_mean;
    bool is_folded;
    size_t outputs;  // of the folded product
} row;

static const row rows[] = {
    {.what = "gain, shift and bias", .is_folded = true, .outputs = 1},
    {.what = "gain alone",
     .has_no_shift = true,
     .has_no_bias = true,
     .is_folded = true,
     .outputs = 1},
    {.what = "the axis by its number", .axis = 1, .is_folded = true, .outputs = 1},
    {.what = "a residual later", .adds_rows_later = true, .is_folded = true, .outputs = 2},
    {.what = "rows that are an output", .shows_rows = true, .is_folded = true, .outputs = 2},
    {.what = "a Reshape between", .reshapes = 1, .is_folded = true, .outputs = 1},
    {.what = "two of them", .reshapes = 2, .is_folded = true, .outputs = 1},
    {.what = "a Reshape of rows that are an output", .reshapes = 1, .shows_rows = true},
    {.what = "a residual of its own", .adds_rows = true},
    {.what = "another user before", .adds_rows_squared = true},
    {.what = "all axes", .axis = -2},
    {.what = "columns that do not fill vectors", .columns = 20},
    {.what = "single precision", .dtype = RONDO_DTYPE_F32},
    {.what = "an infinite gain", .odd_gain = HALF_INFINITY},
    {.what = "an infinite weight", .odd_weight = HALF_INFINITY | 0x8000},
    {.what = "a weight that is NaN", .odd_weight = HALF_NAN},
    {.what = "a bias that is NaN", .odd_bias = HALF_NAN},
    {.what = "computed weights", .computes_weights = true},
    {.what = "columns in the place of rows", .is_turned = true},
    {.what = "a mean that is wanted", .wants_mean = true},
};

static void fill(rondo_tensor *tensor, int64_t seed) {
    for (int64_t e = 0; e < rondo_shape_get_count(&tensor->shape); ++e) {
        const float value = (float)((e * 7 + seed * 5 + e / 11) % 23) / 8.0f - 1.25f;
        if (tensor->dtype == RONDO_DTYPE_F16) {
            ((uint16_t *)tensor->data)[e] = rondo_f16_from_float(value);
        } else {
            ((float *)tensor->data)[e] = value;
        }
    }
}

typedef struct build {
    rondo_program *program;
    const row *r;
    rondo_dtype dtype;
    int64_t columns;
} build;

static int32_t add_constant(const build *b, int32_t rank, int64_t first, int64_t second,
                            int64_t seed, uint16_t odd) {
    const rondo_shape shape = {rank, {first, second}};
    rondo_tensor tensor;
    OK(rondo_tensor_init(b->dtype, &shape, &tensor));
    fill(&tensor, seed);
    if (odd != 0) {
        ((uint16_t *)tensor.data)[3] = odd;
    }
    const int32_t value = pass_add_constant(b->program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

static int32_t add_node(const build *b, const char *op, int32_t first, int32_t second,
                        int32_t third) {
    const int32_t inputs[3] = {first, second, third};
    const size_t count = third >= 0 ? 3 : second >= 0 ? 2 : 1;
    return pass_add_node(b->program, "", op, inputs, count);
}

static int32_t add_input(const build *b, int64_t first, int64_t second) {
    const rondo_shape shape = {2, {first, second}};
    return pass_add_input(b->program, b->dtype, &shape);
}

static int32_t add_norm(const build *b) {
    const row *r = b->r;
    const int64_t length = r->axis == -2 ? ROWS * b->columns : b->columns;
    const int32_t x = add_input(b, ROWS, b->columns);
    const bool is_one = length == b->columns;
    const int32_t gain =
        add_constant(b, is_one ? 1 : 2, is_one ? length : ROWS, b->columns, 1, r->odd_gain);
    const int32_t shift =
        r->has_no_shift ? RONDO__VALUE_NONE : add_constant(b, 1, b->columns, 0, 2, 0);
    const int32_t y = add_node(b, "LayerNormalization", x, gain, shift);
    rondo__node *node = &b->program->nodes[b->program->node_count - 1];
    OK(rondo__op_set_int(&node->op, "axis", r->axis == 0 ? -1 : r->axis));
    OK(rondo__op_set_float(&node->op, "epsilon", 0.01f));
    if (r->wants_mean) {
        int32_t *outputs = rondo__realloc(node->outputs, 2 * sizeof *outputs);
        assert_non_null(outputs);
        node->outputs = outputs;
        OK(rondo__program_add_value(b->program, "mean", &outputs[1]));
        node->output_count = 2;
        OK(rondo__program_add_output(b->program, outputs[1]));
    }
    return y;
}

static int32_t add_reshape(const build *b, int32_t from, int64_t first, int64_t second) {
    const int64_t extents[3] = {first, second, b->columns};
    return add_node(b, "Reshape", from, pass_add_list(b->program, extents, 3), RONDO__VALUE_NONE);
}

// Where the rows go on: as they are, in other shapes, turned.
static int32_t add_between(const build *b, int32_t value) {
    for (int i = 0; i < b->r->reshapes; ++i) {
        value = add_reshape(b, value, i == 0 ? 2 : 1, i == 0 ? ROWS / 2 : ROWS);
    }
    return b->r->is_turned ? add_node(b, "Transpose", value, RONDO__VALUE_NONE, RONDO__VALUE_NONE)
                           : value;
}

static rondo_program *make_program(const row *r) {
    rondo_program *source;
    OK(rondo__program_create("norm", &source));
    const build b = {source, r, r->dtype != RONDO_DTYPE_NONE ? r->dtype : RONDO_DTYPE_F16,
                     r->columns > 0 ? r->columns : 16};
    const int64_t k = r->is_turned ? ROWS : b.columns;
    const int32_t normal = add_norm(&b);
    const int32_t square =
        r->adds_rows_squared ? add_node(&b, "Mul", normal, normal, RONDO__VALUE_NONE) : normal;
    const int32_t weights = r->computes_weights
                                ? add_input(&b, k, b.columns)
                                : add_constant(&b, 2, k, b.columns, 3, r->odd_weight);
    int32_t y = add_node(&b, "MatMul", add_between(&b, normal), weights, RONDO__VALUE_NONE);
    if (!r->has_no_bias) {
        y = add_node(&b, "Add", y, add_constant(&b, 1, b.columns, 0, 4, r->odd_bias),
                     RONDO__VALUE_NONE);
    }
    if (r->adds_rows_later) {
        y = add_node(&b, "MatMul", y, add_constant(&b, 2, b.columns, b.columns, 5, 0),
                     RONDO__VALUE_NONE);
    }
    if (r->adds_rows || r->adds_rows_later || r->adds_rows_squared) {
        y = add_node(&b, "Add", y, square, RONDO__VALUE_NONE);
    }
    OK(rondo__program_add_output(source, y));
    if (r->shows_rows) {
        OK(rondo__program_add_output(source, normal));
    }
    return pass_specialise(source);
}

static void check_row(const row *r) {
    rondo_program *program = make_program(r);
    rondo_tensor x[2] = {{0}}, expected[4] = {{0}}, results[4] = {{0}};
    for (size_t i = 0; i < program->input_count; ++i) {
        rondo_shape shape;
        const rondo__value *value = &program->values[program->inputs[i]];
        assert_true(rondo__value_get_shape(value, &shape));
        OK(rondo_tensor_init(value->dtype, &shape, &x[i]));
        fill(&x[i], (int64_t)i + 40);
    }
    OK(interpret_program(program, x, expected));
    OK(rondo__pass_matmul(program));
    OK(rondo__pass_norm_product(program));
    const rondo__node *folded = interpret_find(program, RONDO__FUSED_NormMatMul);
    const rondo__node *norm = interpret_find(program, RONDO__OP_LayerNormalization);
    if ((folded != NULL) != r->is_folded || (norm == NULL) != r->is_folded) {
        fail_msg("%s: %s", r->what, folded != NULL ? "folded" : "not folded");
    }
    if (folded != NULL) {
        assert_int_equal(folded->output_count, r->outputs);
        assert_null(interpret_find(program, RONDO__OP_Add));
    }
    OK(interpret_program(program, x, results));
    for (size_t o = 0; o < program->output_count; ++o) {
        const double difference = compare_tensors(&results[o], &expected[o]);
        const bool is_finite = r->odd_gain == 0 && r->odd_weight == 0 && r->odd_bias == 0;
        if (is_finite && !(difference <= 1e-2)) {
            fail_msg("%s: output %zu differs by %g", r->what, o, difference);
        }
        rondo_tensor_deinit(&results[o]);
        rondo_tensor_deinit(&expected[o]);
    }
    rondo_tensor_deinit(&x[0]);
    rondo_tensor_deinit(&x[1]);
    rondo_program_destroy(program);
}

TEST(test_program_pass_norm_product__what_is_folded) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        check_row(&rows[i]);
    }
}

TEST_MAIN()
