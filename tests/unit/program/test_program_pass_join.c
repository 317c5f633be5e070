// Which products of one value become one, and that the results stay the same.
// SPDX-License-Identifier: Apache-2.0
#include "program/edit.h"
#include "program/half/half_pass.h"
#include "program/passes/passes.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { PRODUCTS_MAX = 4, ROWS = 5, K = 6 };

typedef enum bias { NONE, BEHIND, BEFORE, WIDER } bias;  // BEFORE: Add(bias, product)

typedef struct row {
    const char *what;
    int64_t columns[PRODUCTS_MAX];
    bias biases[PRODUCTS_MAX];
    bool is_gemm, is_turned;
    bool is_bits, has_zeros;  // MatMulNBits, and its zero points; WIDER: a bias of its own
    bool shows_product;       // the first product, before its bias, is an output, too
    bool is_other_input;      // the first product reads another value
    bool is_marked;           // the first product stays in f32
    size_t products;          // that are left
} row;

static const row rows[] = {
    {.what = "three", .columns = {4, 3, 5}, .products = 1},
    {.what = "four with biases",
     .columns = {4, 4, 2, 1},
     .biases = {BEHIND, BEFORE, BEHIND, BEHIND},
     .products = 1},
    {.what = "two", .columns = {4, 3}, .products = 2},
    {.what = "Gemm",
     .columns = {4, 3, 5},
     .biases = {BEHIND, BEHIND, BEHIND},
     .is_gemm = true,
     .products = 1},
    {.what = "Gemm with turned weights",
     .columns = {4, 3, 5},
     .biases = {BEHIND, BEHIND, BEHIND},
     .is_gemm = true,
     .is_turned = true,
     .products = 1},
    {.what = "one without bias", .columns = {4, 3, 5}, .biases = {BEHIND, BEHIND}, .products = 3},
    {.what = "an addend that is no bias",
     .columns = {4, 3, 5},
     .biases = {BEHIND, BEHIND, WIDER},
     .products = 3},
    {.what = "somebody looks at a product before its bias",
     .columns = {4, 3, 5},
     .biases = {BEHIND, BEHIND, BEHIND},
     .shows_product = true,
     .products = 3},
    {.what = "somebody looks at a product without one",
     .columns = {4, 3, 5},
     .shows_product = true,
     .products = 1},
    {.what = "four bits", .columns = {4, 3, 5}, .is_bits = true, .products = 1},
    {.what = "four bits with zero points",
     .columns = {4, 3, 5},
     .is_bits = true,
     .has_zeros = true,
     .products = 1},
    {.what = "four bits, one with a bias",
     .columns = {4, 3, 5},
     .biases = {NONE, WIDER, NONE},
     .is_bits = true,
     .products = 3},
    {.what = "another input", .columns = {4, 4, 4}, .is_other_input = true, .products = 3},
    {.what = "another precision", .columns = {4, 4, 4}, .is_marked = true, .products = 3},
};

static void fill(rondo_tensor *tensor, int64_t seed) {
    for (int64_t e = 0; e < rondo_shape_get_count(&tensor->shape); ++e) {
        ((float *)tensor->data)[e] = (float)((e * 7 + seed * 5) % 13) / 8.0f - 0.75f;
    }
}

static int32_t add_constant(rondo_program *program, const rondo_shape *shape, int64_t seed) {
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_F32, shape, &tensor));
    fill(&tensor, seed);
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

static int32_t add_bytes(rondo_program *program, const rondo_shape *shape, int64_t seed) {
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_U8, shape, &tensor));
    for (int64_t e = 0; e < rondo_shape_get_count(shape); ++e) {
        ((uint8_t *)tensor.data)[e] = (uint8_t)(e * 37 + seed * 11);
    }
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

// K numbers are less than a block of 16.
static void add_bits(rondo_program *program, const row *r, size_t i, int32_t x) {
    const int64_t n = r->columns[i], seed = (int64_t)i;
    const rondo_shape weight = {3, {n, 1, 8}}, list = {1, {n}};
    const int32_t inputs[6] = {
        x,
        add_bytes(program, &weight, seed),
        add_constant(program, &list, seed + 10),
        r->has_zeros ? add_bytes(program, &list, seed + 30) : RONDO__VALUE_NONE,
        RONDO__VALUE_NONE,
        r->biases[i] == WIDER ? add_constant(program, &list, seed + 20) : RONDO__VALUE_NONE};
    int32_t y;
    OK(rondo__program_add_value(program, "made", &y));
    rondo__op op = {.opset = 1, .def = rondo__op_lookup("com.microsoft", "MatMulNBits", 1)};
    OK(rondo__op_set_int(&op, "K", K));
    OK(rondo__op_set_int(&op, "N", n));
    OK(rondo__op_set_int(&op, "bits", 4));
    OK(rondo__op_set_int(&op, "block_size", 16));
    OK(rondo__program_add_node(program, &op, inputs, 6, 6, &y, 1));
    OK(rondo__program_add_output(program, y));
}

static void add_product(rondo_program *program, const row *r, size_t i, int32_t x) {
    const int64_t columns = r->columns[i], seed = (int64_t)i;
    const rondo_shape weight = {2, {r->is_turned ? columns : K, r->is_turned ? K : columns}};
    const rondo_shape list = {1, {columns}}, wide = {2, {1, columns}};
    int32_t inputs[3] = {x, add_constant(program, &weight, seed), RONDO__VALUE_NONE};
    if (r->biases[i] != NONE) {
        inputs[2] = add_constant(program, r->biases[i] == WIDER ? &wide : &list, seed + 20);
    }
    int32_t y = pass_add_node(program, "", r->is_gemm ? "Gemm" : "MatMul", inputs,
                              r->is_gemm && inputs[2] >= 0 ? 3 : 2);
    rondo__node *node = &program->nodes[program->node_count - 1];
    node->precision = r->is_marked && i == 0 ? RONDO__PRECISION_SINGLE : RONDO__PRECISION_BY_RULE;
    if (r->is_gemm) {
        OK(rondo__op_set_int(&node->op, "transB", r->is_turned));
        OK(rondo__op_set_float(&node->op, "alpha", 0.5f));
    }
    if (r->shows_product && i == 0) {
        OK(rondo__program_add_output(program, y));
    }
    if (!r->is_gemm && inputs[2] >= 0) {
        const bool is_before = r->biases[i] == BEFORE;
        const int32_t both[2] = {is_before ? inputs[2] : y, is_before ? y : inputs[2]};
        y = pass_add_node(program, "", "Add", both, 2);
    }
    if (!r->shows_product || i > 0 || inputs[2] >= 0) {
        OK(rondo__program_add_output(program, y));
    }
}

static rondo_program *make_program(const row *r) {
    const rondo_shape shape = {2, {ROWS, K}};
    rondo_program *source;
    OK(rondo__program_create("products", &source));
    const int32_t x[2] = {pass_add_input(source, RONDO_DTYPE_F32, &shape),
                          pass_add_input(source, RONDO_DTYPE_F32, &shape)};
    for (size_t i = 0; i < PRODUCTS_MAX && r->columns[i] > 0; ++i) {
        (r->is_bits ? add_bits : add_product)(source, r, i, x[r->is_other_input && i == 0]);
    }
    return pass_specialise(source);
}

TEST(test_program_pass_join__where_products_are_alike) {
    const rondo_shape shape = {2, {ROWS, K}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const row *r = &rows[i];
        rondo_program *program = make_program(r);
        rondo_tensor x[2];
        for (int t = 0; t < 2; ++t) {
            OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &x[t]));
            fill(&x[t], t + 40);
        }
        pass_rewrite(program, rondo__program_join_products, x, 1e-6, r->what);
        const size_t products = interpret_count(program, r->is_bits   ? RONDO__MS_MatMulNBits
                                                         : r->is_gemm ? RONDO__OP_Gemm
                                                                      : RONDO__OP_MatMul);
        if (products != r->products) {
            print_error("%s: %zu products, expected %zu\n", r->what, products, r->products);
        }
        assert_int_equal(products, r->products);
        assert_int_equal(interpret_count(program, RONDO__OP_Split), products == 1 ? 1 : 0);
        rondo_tensor_deinit(&x[0]);
        rondo_tensor_deinit(&x[1]);
        rondo_program_destroy(program);
    }
}

TEST_MAIN()
