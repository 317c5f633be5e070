// The fused ops against compositions of the plain ones, over random shapes and attributes.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/fused/fused.h"
#include "op/op.h"
#include "op/support.h"
#include "support/cases/op_probe.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

enum { ROUND_COUNT = 60 };

// A small generator of its own: the same cases on every machine.
static uint32_t random_state = 1;

static int draw(int low, int high) {
    random_state = random_state * 1664525u + 1013904223u;
    return low + (int)(random_state >> 16) % (high - low + 1);
}

static void make_random(const rondo_shape *shape, rondo_tensor *out_tensor) {
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, shape, out_tensor), RONDO_STATUS_OK);
    float *values = out_tensor->data;
    for (int64_t i = 0; i < rondo_shape_get_count(shape); i++) {
        values[i] = (float)draw(-1000, 1000) / 500.0f;
    }
}

// Runs an op of one input and leaves its output in *in_out.
static void replace(op_probe *test, rondo_tensor *in_out) {
    op_probe_run(test);
    rondo_tensor_deinit(in_out);
    rondo_tensor_share(&test->output, in_out);
    op_probe_deinit(test);
}

static void add(rondo_tensor *in_out, const rondo_tensor *addend) {
    op_probe test;
    op_probe_init(&test, "", "Add", 14);
    op_probe_add_tensor(&test, in_out);
    op_probe_add_tensor(&test, addend);
    replace(&test, in_out);
}

static void transpose(rondo_tensor *in_out, bool to_last) {
    char order[64];
    const int rank = in_out->shape.rank;
    int length = snprintf(order, sizeof order, "0");
    for (int i = 1; i < rank; i++) {
        const int from = to_last ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
        length += snprintf(order + length, sizeof order - (size_t)length, ",%d", from);
    }
    op_probe test;
    op_probe_init(&test, "", "Transpose", 13);
    op_probe_set_ints(&test, "perm", order);
    op_probe_add_tensor(&test, in_out);
    replace(&test, in_out);
}

static void activate(rondo_tensor *in_out, rondo__activation activation, float alpha, float beta) {
    float *values = in_out->data;
    for (int64_t i = 0; i < rondo_shape_get_count(&in_out->shape); i++) {
        values[i] = rondo__activation_apply(activation, alpha, beta, values[i]);
    }
}

static const char *get_activation_name(int activation) {
#define ACTIVATION_NAME(name, text) text,
    static const char *const names[] = {RONDO_ACTIVATION_MAP(ACTIVATION_NAME)};
#undef ACTIVATION_NAME
    return names[activation];
}

static void set_activation(op_probe *test, int activation, float alpha, float beta) {
    op_probe_set_string(test, "activation", get_activation_name(activation));
    op_probe_set_float(test, "alpha", (double)alpha);
    op_probe_set_float(test, "beta", (double)beta);
}

// The window attributes of one random convolution or pool.
static void set_window(op_probe *test, int rank, const int64_t *kernel, uint32_t seed) {
    char text[4][96] = {{0}};
    random_state = seed;
    for (int i = 0; i < 2 * rank; i++) {
        const char *comma = i % rank == 0 ? "" : ",";
        const int values[3] = {(int)kernel[i % rank], draw(1, 3), draw(1, 2)};
        for (int k = 0; k < 3 && i < rank; k++) {
            const size_t used = strlen(text[k]);
            snprintf(text[k] + used, sizeof text[k] - used, "%s%d", comma, values[k]);
        }
        const size_t used = strlen(text[3]);
        snprintf(text[3] + used, sizeof text[3] - used, "%s%d", i == 0 ? "" : ",",
                 draw(0, (int)kernel[i % rank] / 2));
    }
    op_probe_set_ints(test, "kernel_shape", text[0]);
    op_probe_set_ints(test, "strides", text[1]);
    op_probe_set_ints(test, "dilations", text[2]);
    op_probe_set_ints(test, "pads", text[3]);
}

static void check_conv(uint32_t seed) {
    random_state = seed;
    const int rank = draw(1, 3);
    const int group = draw(1, 3);
    const int activation = draw(0, RONDO__ACTIVATION_COUNT - 1);
    const bool channels_last = draw(0, 1) != 0;
    const bool has_bias = draw(0, 1) != 0;
    const bool has_residual = draw(0, 1) != 0;
    rondo_shape x_shape = {.rank = rank + 2, .extent = {draw(1, 2), group * draw(1, 3)}};
    rondo_shape w_shape = {.rank = rank + 2,
                           .extent = {group * draw(1, 3), x_shape.extent[1] / group}};
    for (int i = 0; i < rank; i++) {
        w_shape.extent[2 + i] = draw(1, 3);
        x_shape.extent[2 + i] = draw(5, 8);
    }
    const rondo_shape b_shape = {.rank = 1, .extent = {w_shape.extent[0]}};
    rondo_tensor x = {0}, w = {0}, b = {0}, z = {0}, expected = {0};
    make_random(&x_shape, &x);
    make_random(&w_shape, &w);
    make_random(&b_shape, &b);

    op_probe plain;
    op_probe_init(&plain, "", "Conv", 13);
    set_window(&plain, rank, w_shape.extent + 2, seed + 7);
    op_probe_set_int(&plain, "group", group);
    op_probe_add_tensor(&plain, &x);
    op_probe_add_tensor(&plain, &w);
    if (has_bias) {
        op_probe_add_tensor(&plain, &b);
    }
    replace(&plain, &expected);
    make_random(&expected.shape, &z);
    if (has_residual) {
        add(&expected, &z);
    }
    activate(&expected, (rondo__activation)activation, 0.1f, 0.8f);

    if (channels_last) {
        transpose(&x, true);
        transpose(&z, true);
        transpose(&expected, true);
    }
    op_probe fused;
    op_probe_init(&fused, "rondo", "Conv", 1);
    set_window(&fused, rank, w_shape.extent + 2, seed + 7);
    op_probe_set_int(&fused, "group", group);
    op_probe_set_int(&fused, "channels_last", channels_last);
    set_activation(&fused, activation, 0.1f, 0.8f);
    op_probe_add_tensor(&fused, &x);
    op_probe_add_tensor(&fused, &w);
    if (has_bias) {
        op_probe_add_tensor(&fused, &b);
    } else {
        op_probe_add_absent(&fused);
    }
    if (has_residual) {
        op_probe_add_tensor(&fused, &z);
    }
    rondo_tensor actual = {0};
    replace(&fused, &actual);
    op_probe_compare(&actual, &expected, 2e-6);

    rondo_tensor *const all[] = {&x, &w, &b, &z, &expected, &actual};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rondo_tensor_deinit(all[i]);
    }
}

TEST(test_op_fused__conv_equals_the_plain_ops) {
    for (uint32_t i = 0; i < ROUND_COUNT; i++) {
        check_conv(1000 + i * 17);
    }
}

static void check_matmul(uint32_t seed) {
    random_state = seed;
    const bool trans_a = draw(0, 1) != 0;
    const bool trans_b = draw(0, 1) != 0;
    const int activation = draw(0, RONDO__ACTIVATION_COUNT - 1);
    const int m = draw(1, 5), n = draw(1, 5), k = draw(0, 5);
    const int batch = draw(1, 3);
    rondo_shape a_shape = {.rank = 3, .extent = {batch, m, k}};
    rondo_shape b_shape = {.rank = 4, .extent = {2, draw(0, 1) != 0 ? batch : 1, k, n}};
    const rondo_shape bias_shape = {.rank = 1, .extent = {n}};
    rondo_tensor a = {0}, b = {0}, bias = {0}, z = {0}, expected = {0}, actual = {0};
    make_random(&a_shape, &a);
    make_random(&b_shape, &b);
    make_random(&bias_shape, &bias);

    op_probe plain;
    op_probe_init(&plain, "", "MatMul", 13);
    op_probe_add_tensor(&plain, &a);
    op_probe_add_tensor(&plain, &b);
    replace(&plain, &expected);
    float *values = expected.data;
    for (int64_t i = 0; i < rondo_shape_get_count(&expected.shape); i++) {
        values[i] *= 0.5f;
    }
    make_random(&expected.shape, &z);
    add(&expected, &bias);
    add(&expected, &z);
    activate(&expected, (rondo__activation)activation, -0.2f, 0.9f);

    op_probe swap;
    if (trans_a) {
        op_probe_init(&swap, "", "Transpose", 13);
        op_probe_set_ints(&swap, "perm", "0,2,1");
        op_probe_add_tensor(&swap, &a);
        replace(&swap, &a);
    }
    if (trans_b) {
        op_probe_init(&swap, "", "Transpose", 13);
        op_probe_set_ints(&swap, "perm", "0,1,3,2");
        op_probe_add_tensor(&swap, &b);
        replace(&swap, &b);
    }
    op_probe fused;
    op_probe_init(&fused, "rondo", "MatMul", 1);
    op_probe_set_int(&fused, "trans_a", trans_a);
    op_probe_set_int(&fused, "trans_b", trans_b);
    op_probe_set_float(&fused, "alpha_scale", 0.5);
    set_activation(&fused, activation, -0.2f, 0.9f);
    op_probe_add_tensor(&fused, &a);
    op_probe_add_tensor(&fused, &b);
    op_probe_add_tensor(&fused, &bias);
    op_probe_add_tensor(&fused, &z);
    replace(&fused, &actual);
    op_probe_compare(&actual, &expected, 2e-6);

    rondo_tensor *const all[] = {&a, &b, &bias, &z, &expected, &actual};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rondo_tensor_deinit(all[i]);
    }
}

TEST(test_op_fused__matmul_equals_the_plain_ops) {
    for (uint32_t i = 0; i < ROUND_COUNT; i++) {
        check_matmul(5000 + i * 13);
    }
}

static const op_row second_convolution_rows[] = {
    // Of the three pixels of x2 the first and the last, (1, 2) and (5, 6), by (10, 100).
    {"rondo.Conv", 1,
     "f32[1,1,2,1]:1,-300 f32[1,1,1,1]:2 f32[1]:0.5 f32[1,1,2,1]:1,1 f32[1,1,3,2]:1,2,3,4,5,6 "
     "f32[1,2,1,1]:10,100",
     "channels_last=1 second_strides=I:1,2 activation=s:relu", "f32[1,1,2,1]:213.5,51.5"},
    {"rondo.Conv", 1, "f32[1,1,2,1]:1 f32[2,1,1,1]:2,3 - - f32[1,1,2,1]:1,10 f32[2,1,1,1]:1,2",
     "channels_last=1", "f32[1,1,2,2]:3,5,12,23"},
    {"rondo.Conv", 1, "f32[1,1,2,1]:1 f32[1,1,1,1]:2 - - f32[1,1,5,1]:1 f32[1,1,1,1]:1",
     "channels_last=1 second_strides=I:1,2", "!BAD_DATA inputs x2 and w2"},
    {"rondo.Conv", 1, "f32[1,1,2,1]:1 f32[1,1,1,1]:2 - - f32[1,1,2,1]:1 f32[2,1,1,1]:1",
     "channels_last=1", "!BAD_DATA inputs x2 and w2"},
    {"rondo.Conv", 1, "f32[1,1,2,1]:1 f32[1,1,1,1]:2 - - f32[1,1,2,1]:1 f32[1,1,1,1]:1", "",
     "!BAD_DATA inputs x2 and w2"},
    {"rondo.Conv", 1, "f32[1,1,2,1]:1 f32[1,1,1,1]:2 - - f32[1,1,2,1]:1", "channels_last=1",
     "!BAD_DATA inputs x2 and w2"},
};
OP_ROWS_TEST(test_op_fused__second_convolution, second_convolution_rows)

// Of 32 columns, 16 times (1, 3): mean 2, and 32 for the squares; and of 32 twos.
static const op_row moments_rows[] = {
    {"rondo.MatMul", 1,
     "f32[1,1]:1 f32[1,64]:1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,"
     "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2",
     "",
     "f32[1,64]:1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,1,3,"
     "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2 "
     "f32[1,2,2]:2,32,2,0"},
    {"rondo.MatMul", 1, "f32[1,1]:1 f32[1,2]:1,3", "",
     "!2 BAD_DATA rows of shape [1, 2] have no moments"},
    {"rondo.NormMatMul", 1, "f32[1,32]:1 f32[32,1]:1 - - f32[32]:1 - f32[1,2,2]:1", "",
     "!BAD_DATA input 6 has not the shape"},
};
OP_ROWS_TEST(test_op_fused__moments, moments_rows)

// Rows (-1, 1) and (1, -1), times (2, 0.5), plus (1, -1): (-1, -0.5) and (3, -1.5).
static const op_row norm_matmul_rows[] = {
    {"rondo.NormMatMul", 1,
     "f32[2,2]:1,3,0,-4 f32[2,2]:1,2,3,4 f32[2]:1 f32[2,2]:0,0,0,-5 f32[2]:2,0.5 f32[2]:1,-1",
     "alpha_scale=f:0.5 activation=s:relu epsilon=f:0",
     "f32[2,2]:0,0,0.25,0 f32[2,2]:-1,-0.5,3,-1.5"},
    // A row of one number is the shift, whatever epsilon is; without rows as an output, too.
    {"rondo.NormMatMul", 1, "f16[1,2]:7 f16[2,1]:1,2 - - f16[2]:2,0.5 f16[2]:1,-1", "",
     "f16[1,1]:-1"},
    {"rondo.NormMatMul", 1, "f32[1,1,2]:1,3 f32[2,2]:1,2,3,4 - - f32[2]:1", "trans_b=1 epsilon=f:3",
     "f32[1,1,2]:0.5 f32[1,1,2]:-0.5,0.5"},
    {"rondo.NormMatMul", 1, "f32[1,2]:1,3 f32[2,2]:1 - - - f32[2]:1", "",
     "!BAD_DATA input 4 is missing"},
    {"rondo.NormMatMul", 1, "f32[1,2]:1,3 f32[2,2]:1 - - f32[2]:1 f32[3]:1", "",
     "!BAD_DATA input 5 has shape [3]"},
    {"rondo.NormMatMul", 1, "f32[1,2]:1,3 f32[3,2]:1 - - f32[2]:1", "", "!BAD_DATA inner extents"},
};
OP_ROWS_TEST(test_op_fused__norm_matmul, norm_matmul_rows)

static void check_group_norm(uint32_t seed) {
    random_state = seed;
    const int groups = draw(1, 3);
    const int activation = draw(0, RONDO__ACTIVATION_COUNT - 1);
    const bool channels_last = draw(0, 1) != 0;
    rondo_shape shape = {.rank = draw(3, 5), .extent = {draw(1, 2), groups * draw(1, 3)}};
    for (int i = 2; i < shape.rank; i++) {
        shape.extent[i] = draw(2, 5);
    }
    const rondo_shape by_channel = {.rank = 1, .extent = {shape.extent[1]}};
    rondo_tensor x = {0}, gain = {0}, shift = {0}, expected = {0}, actual = {0};
    make_random(&shape, &x);
    make_random(&by_channel, &gain);
    make_random(&by_channel, &shift);
    op_probe tests[2];
    op_probe_init(&tests[0], "", "GroupNormalization", 21);
    op_probe_init(&tests[1], "rondo", "GroupNormalization", 1);
    op_probe_set_int(&tests[0], "num_groups", groups);
    op_probe_set_int(&tests[1], "groups", groups);
    op_probe_set_int(&tests[1], "channels_last", channels_last);
    set_activation(&tests[1], activation, 0.1f, 0.8f);
    for (int i = 0; i < 2; i++) {
        op_probe_set_float(&tests[i], "epsilon", 0.01);
        op_probe_add_tensor(&tests[i], &x);
        op_probe_add_tensor(&tests[i], &gain);
        op_probe_add_tensor(&tests[i], &shift);
        replace(&tests[i], i == 0 ? &expected : &actual);
        if (i == 0 && channels_last) {
            transpose(&x, true);
        }
    }
    activate(&expected, (rondo__activation)activation, 0.1f, 0.8f);
    if (channels_last) {
        transpose(&expected, true);
    }
    op_probe_compare(&actual, &expected, 2e-6);
    rondo_tensor *const all[] = {&x, &gain, &shift, &expected, &actual};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rondo_tensor_deinit(all[i]);
    }
}

TEST(test_op_fused__group_norm_equals_the_plain_op) {
    for (uint32_t i = 0; i < ROUND_COUNT; i++) {
        check_group_norm(3000 + i * 19);
    }
}

static const op_row group_norm_refuses_rows[] = {
    {"rondo.GroupNormalization", 17, "f32[1,2,2,6] f32[6] f32[6]", "groups=4 channels_last=1",
     "!BAD_DATA groups is 4"},
    {"rondo.GroupNormalization", 17, "f32[1,6,2,2] f32[6] f32[6]", "groups=0", "!BAD_DATA groups"},
    {"rondo.GroupNormalization", 17, "f32[6] f32[6] f32[6]", "groups=1", "!BAD_DATA groups"},
    {"rondo.GroupNormalization", 17, "f32[1,2,2,6] f32[2] f32[6]", "groups=2 channels_last=1",
     "!BAD_DATA input 1 has shape [2], [6] is expected"},
    {"rondo.GroupNormalization", 17, "f32[1,6,2,2] f32[6] f64[6]", "groups=2",
     "!UNSUPPORTED input 2"},
    {"rondo.GroupNormalization", 17, "f32[1,6,2,2] f32[6] f32[6]", "groups=2 activation=s:softly",
     "!BAD_DATA attribute activation is \"softly\""},
    {"rondo.GroupNormalization", 17, "f16[1,6,0,2] f32[6] f32[6]", "groups=2", "f16[1,6,0,2]"},
};
OP_ROWS_TEST(test_op_fused__group_norm_refuses, group_norm_refuses_rows)

// Sums beyond the range of f16, and digits that it does not have.
static const op_row matmul_of_half_to_single_rows[] = {
    {"rondo.MatMul", 1, "f16[1,2]:256,1 f16[2,2]:256,1,0.5,0.000976562", "to=1",
     "f32[1,2]:65536.5,256.000976562"},
    {"rondo.MatMul", 1, "f16[1,2]:256,1 f16[2,2]:256,1,0.5,0.000976562", "to=10",
     "f16[1,2]:inf,256"},
    {"rondo.NormMatMul", 1, "f16[1,2]:1,3 f16[2,1]:1024,1025 - - f16[2]:32,-32", "to=1 epsilon=f:0",
     "f32[1,1]:-65568"},
    {"rondo.MatMul", 1, "f16[1,2]:1 f16[2,2]:1", "to=7", "!BAD_DATA attribute to"},
};
OP_ROWS_TEST(test_op_fused__matmul_of_half_to_single, matmul_of_half_to_single_rows)

static const op_row concat_takes_blocks_rows[] = {
    // One block of 2 x 2 pixels beside four pixels of one channel.
    {"rondo.Concat", 17, "f32[1,1,1,8]:1,2,3,4,5,6,7,8 f32[1,2,2,1]:-1,-2,-3,-4", "blocks=I:2,1",
     "f32[1,2,2,3]:1,2,-1,3,4,-2,5,6,-3,7,8,-4"},
    {"rondo.Concat", 17, "f16[1,1,2,4]:1,2,3,4,5,6,7,8", "blocks=I:2",
     "f16[1,2,4,1]:1,2,5,6,3,4,7,8"},
    {"rondo.Concat", 17, "f32[1,1,1,8] f32[1,2,3,1]", "blocks=I:2,1", "!BAD_DATA input 1"},
    {"rondo.Concat", 17, "f32[1,1,1,6] f32[1,2,2,1]", "blocks=I:2,1", "!BAD_DATA input 0"},
    {"rondo.Concat", 17, "f32[1,1,8] f32[1,2,1]", "blocks=I:2,1", "!BAD_DATA input 0"},
    {"rondo.Concat", 17, "f32[1,2,2,1] f16[1,2,2,1]", "blocks=I:1,1", "!BAD_DATA input 1"},
    {"rondo.Concat", 17, "f32[1,2,2,1] f32[1,2,2,1]", "blocks=I:1", "!BAD_DATA blocks"},
    {"rondo.Concat", 17, "f32[1,2,2,1] f32[1,2,2,1]", "blocks=I:1,0", "!BAD_DATA blocks"},
};
OP_ROWS_TEST(test_op_fused__concat_takes_blocks, concat_takes_blocks_rows)

static void check_pool(const char *name, uint32_t seed) {
    random_state = seed;
    const int rank = draw(1, 3);
    rondo_shape shape = {.rank = rank + 2, .extent = {draw(1, 2), draw(1, 4)}};
    int64_t kernel[3];
    for (int i = 0; i < rank; i++) {
        kernel[i] = draw(1, 3);
        shape.extent[2 + i] = draw(5, 9);
    }
    const int ceil_mode = draw(0, 1);
    const bool is_global = strncmp(name, "Global", 6) == 0;
    rondo_tensor x = {0}, expected = {0}, actual = {0};
    make_random(&shape, &x);
    op_probe tests[2];
    op_probe_init(&tests[0], "", name, 19);
    op_probe_init(&tests[1], "rondo", name, 1);
    for (int i = 0; i < 2; i++) {
        if (!is_global) {
            set_window(&tests[i], rank, kernel, seed + 3);
            op_probe_set_int(&tests[i], "ceil_mode", ceil_mode);
        }
        if (strcmp(name, "AveragePool") == 0) {
            op_probe_set_int(&tests[i], "count_include_pad", (int64_t)(seed & 1));
        }
    }
    op_probe_add_tensor(&tests[0], &x);
    replace(&tests[0], &expected);
    transpose(&expected, true);
    transpose(&x, true);
    op_probe_set_int(&tests[1], "channels_last", 1);
    op_probe_add_tensor(&tests[1], &x);
    replace(&tests[1], &actual);
    op_probe_compare(&actual, &expected, 2e-6);
    rondo_tensor_deinit(&x);
    rondo_tensor_deinit(&expected);
    rondo_tensor_deinit(&actual);
}

TEST(test_op_fused__pools_equal_the_plain_ops) {
    for (uint32_t i = 0; i < ROUND_COUNT; i++) {
        check_pool("MaxPool", 100 + i * 7);
        check_pool("AveragePool", 200 + i * 7);
        check_pool("GlobalAveragePool", 300 + i * 7);
    }
}

static const op_row elementwise_rows[] = {
    // (x + row) * sigmoid(x), then a clip: one input is broadcast, results are used again.
    {"rondo.Elementwise", 1, "f32[2,2]:0,1,-1,4 f32[2]:1,-2",
     "ops=S:Add,Sigmoid,Mul,Clip operands=I:0,1,-1,0,-1,-1,2,3,-1,4,-1,-1 "
     "alphas=F:0,0,0,-0.5 betas=F:0,0,0,1.5",
     "f32[2,2]:0.5,-0.5,0,1.5"},
    // Finite numbers stay finite as f16, everything else stays; inputs may be of two types.
    {"rondo.Elementwise", 1, "f32[6]:100000,-3.4e38,65519,inf,nan,2.5",
     "ops=S:Saturate operands=I:0,-1,-1 to=10", "f16[6]:65504,-65504,65504,inf,nan,2.5"},
    {"rondo.Elementwise", 1, "f32[6]:100000,-3.4e38,65519,inf,nan,2.5",
     "ops=S:Saturate operands=I:0,-1,-1 to=7", "!BAD_DATA attribute to"},
    {"rondo.Elementwise", 1, "f16[2]:0.5,2 f32[2]:1000000,0.25", "ops=S:Add operands=I:0,1,-1 to=1",
     "f32[2]:1000000,2.25"},
    {"rondo.Elementwise", 1, "f32[3]:~1*0.5", "", "!BAD_DATA attribute ops"},
    {"rondo.Elementwise", 1, "f32[3]:~1*0.5", "ops=S:Add operands=I:0,1,-1",
     "!BAD_DATA attribute operands"},
    {"rondo.Elementwise", 1, "f32[3]:~1*0.5", "ops=S:Explode operands=I:0,1,-1",
     "!BAD_DATA Explode"},
};
OP_ROWS_TEST(test_op_fused__elementwise, elementwise_rows)

TEST(test_op_fused__elementwise_knows_every_scalar_op) {
#define CHECK_SCALAR(name, operands, op)                                                  \
    assert_int_equal(rondo__scalar_op_parse(#name), RONDO__SCALAR_##name);                \
    assert_int_equal(rondo__scalar_op_get_operand_count(RONDO__SCALAR_##name), operands); \
    assert_int_equal(rondo__scalar_op_of(op), op == RONDO__OP_NONE ? -1 : RONDO__SCALAR_##name);
    RONDO_SCALAR_OP_MAP(CHECK_SCALAR)
#undef CHECK_SCALAR
    // Each against numbers from numpy at a = 0.75, b = -1.5, alpha = 0.25, beta = 0.5.
    static const double expected[] = {
        -0.75,      2.25,       -1.125,     -0.5,       0.75,       -1.5,       1.53960072,
        -1.5,       0.75,       0.67917870, 0.63514895, 0.71115563, 2.11700002, -0.28768207,
        0.86602540, -0.75,      0.75,       1.33333333, 0.0,        1.0,        1.13687113,
        0.58002969, 0.57996056, 0.50938402, 0.46875,    0.5,        0.75,       0.75,
        0.6875,     0.6875,     0.75,
    };
    for (int i = 0; i < RONDO__SCALAR_COUNT; i++) {
        const double actual =
            (double)rondo__scalar_op_apply((rondo__scalar_op)i, 0.25f, 0.5f, 0.75f, -1.5f);
        const double difference = actual - expected[i];
        if (!(difference <= 2e-6 && difference >= -2e-6)) {
            fail_msg("scalar op %d gives %.9g, expected %.9g", i, actual, expected[i]);
        }
    }
    assert_int_equal(rondo__scalar_op_parse("Nothing"), -1);
    assert_int_equal(rondo__activation_parse("nothing"), -1);
}

// Numbers from numpy: pad, reshape, transpose, pad.
static const op_row space_to_depth_rows[] = {
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]:1,2,3,4,5,6,7,8,9,10,11,12",
     "block=I:2,2 before=I:1,1 extent=I:2,2 channels=8 to=1",
     "f32[1,2,2,8]:0,0,0,1,0,0,0,7,0,0,2,3,0,0,8,9,0,4,0,0,0,10,0,0,5,6,0,0,11,12,0,0"},
    // A row of blocks alone, so that half of the image is not seen.
    {"rondo.SpaceToDepth", 1, "f16[2,1,2,2]:1,2,3,4,5,6,7,8",
     "block=I:1,2 before=I:0,0 extent=I:1,1 channels=3 to=1", "f32[2,1,1,3]:1,2,0,5,6,0"},
    {"rondo.SpaceToDepth", 1, "f32[1,1,3,2]:1,2,3,4,5,6",
     "block=I:1,1 before=I:0,1 extent=I:1,3 channels=3 channels_last=1 to=10",
     "f16[1,1,3,3]:0,0,0,1,2,0,3,4,0"},
    {"rondo.SpaceToDepth", 1, "f32[1,1,1,6]:100000,-3.4e38,65519,inf,nan,2.5",
     "block=I:1,6 before=I:0,0 extent=I:1,1 channels=6 to=10 saturate=1",
     "f16[1,1,1,6]:65504,-65504,65504,inf,nan,2.5"},
    {"rondo.SpaceToDepth", 1, "f32[1,1,1,3]:100000,-3.4e38,nan",
     "block=I:1,3 before=I:0,0 extent=I:1,1 channels=3 to=10", "f16[1,1,1,3]:inf,-inf,nan"},
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]",
     "block=I:2,2 before=I:1,1 extent=I:2,2 channels=7 to=1", "!BAD_DATA attribute channels is 7"},
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]",
     "block=I:2,0 before=I:1,1 extent=I:2,2 channels=8 to=1", "!BAD_DATA attribute block[1] is 0"},
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]",
     "block=I:2147483647,2147483647 before=I:1,1 extent=I:2,2 channels=8 to=1",
     "!BAD_DATA attribute channels"},
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]",
     "block=I:2,2 before=I:-1,1 extent=I:2,2 channels=8 to=1",
     "!BAD_DATA attribute before[0] is -1"},
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]", "block=I:2,2 before=I:1,1 extent=I:2 channels=8 to=1",
     "!BAD_DATA attribute extent has 1"},
    {"rondo.SpaceToDepth", 1, "f32[1,2,2,3]",
     "block=I:2,2 before=I:1,1 extent=I:2,2 channels=8 to=7", "!BAD_DATA attribute to"},
    {"rondo.SpaceToDepth", 1, "f32[2,2,3]", "block=I:2,2 before=I:1,1 extent=I:2,2 channels=8 to=1",
     "!BAD_DATA rank 3"},
    {"rondo.SpaceToDepth", 1, "i32[1,2,2,3]",
     "block=I:2,2 before=I:1,1 extent=I:2,2 channels=8 to=1", "!UNSUPPORTED type i32"},
};
OP_ROWS_TEST(test_op_fused__space_to_depth, space_to_depth_rows)

TEST_MAIN()
