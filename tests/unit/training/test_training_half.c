// Training in half precision: weights, states and scales of a program that an executor computes in
// f16 are those of f32. And what becomes of many variables in one op.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/variables_world.h"
#include "training/training_golden.h"

enum { COUNT = 32, STEPS = 24 };

static const rondo_shape shape = {1, {COUNT}};

// loss = sum(w x): the gradient of w is x. The parameter is of type `stored`.
static rondo_builder *begin_sum(rondo_dtype stored, const float *start) {
    uint16_t halves[COUNT];
    uint32_t bits;
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, COUNT)));
    for (int i = 0; i < COUNT; ++i) {
        memcpy(&bits, &start[i], sizeof bits);  // short enough for either half
        halves[i] =
            stored == RONDO_DTYPE_F16 ? rondo_f16_from_float(start[i]) : (uint16_t)(bits >> 16);
    }
    OK(rondo_builder_add_constant(b, "w", stored, &shape,
                                  stored == RONDO_DTYPE_F32 ? (const void *)start : halves));
    build_node(b, "Cast", "w", "w32", &WITH(ATTRIBUTE_INT("to", 1)));
    build_node(b, "Mul", "w32 x", "p", NULL);
    build_node(b, "ReduceSum", "p", "loss", &WITH(ATTRIBUTE_INT("keepdims", 0)));
    OK(rondo_builder_add_output(b, "loss", NULL));
    return b;
}

static void read_variable(rondo_executor *executor, const char *name, float *values) {
    rondo_tensor now;
    OK(rondo_executor_get_variable(executor, name, &now));
    assert_int_equal(now.dtype, RONDO_DTYPE_F32);
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = values};
    OK(rondo_tensor_copy(rondo_executor_get_stream(executor), &now, &to));
    OK(rondo_stream_synchronize(rondo_executor_get_stream(executor)));
    rondo_tensor_deinit(&now);
}

// The weight and the scale after STEPS. Returns how many ops a step has.
static uint64_t train_with(const rondo_minimize_options *how, const rondo_executor_options *options,
                           rondo_dtype stored, float *weight, float *scale) {
    float values[COUNT];
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    for (int i = 0; i < COUNT; ++i) {
        values[i] = 1.0f + (float)i;
    }
    rondo_builder *b = begin_sum(stored, values);
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    OK(rondo_builder_minimize(b, "loss", how));
    program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, options, &executor));
    for (int i = 0; i < COUNT; ++i) {
        values[i] = i % 2 == 0 ? 1.0f : -1.0f;
    }
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, values, shape);
    for (int step = 0; step < STEPS; ++step) {
        OK(rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    read_variable(executor, stored == RONDO_DTYPE_F32 ? "w" : "w.master", weight);
    read_variable(executor, "train.scale", scale);
    OK(rondo_executor_get_stats(executor, &stats));
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
    return stats.op_count;
}

static void train(const rondo_minimize_options *how, rondo_dtype dtype, rondo_dtype stored,
                  float *weight, float *scale) {
    const rondo_executor_options options = {.struct_size = sizeof options, .dtype = dtype};
    (void)train_with(how, &options, stored, weight, scale);
}

// Patterns that match ops of the optimiser, which is f32 anyway, leave it one op with its bits.
TEST(patterns_leave_the_optimiser) {
    const char *const types[] = {"Add", "Where", "Mul", "*"};  // the model has the last two
    const rondo_minimize_options how = {.struct_size = sizeof how,
                                        .optimizer = RONDO_OPTIMIZER_ADAMW,
                                        .learning_rate = 1e-3,
                                        .scale_loss = true};
    const rondo_executor_options plain = {.struct_size = sizeof plain, .dtype = RONDO_DTYPE_F16};
    float first[COUNT], weight[COUNT], scale;
    const uint64_t count = train_with(&how, &plain, RONDO_DTYPE_F32, first, &scale);
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        for (int is_half = 0; is_half < 2; ++is_half) {
            rondo_executor_options options = plain;
            options.keep_f32 = options.use_f16 = &types[i];
            options.keep_f32_count = is_half ? 0 : 1;
            options.use_f16_count = is_half ? 1 : 0;
            // The sum's own ops move to the other type, and so may casts.
            const uint64_t own = train_with(&how, &options, RONDO_DTYPE_F32, weight, &scale);
            assert_true(own <= count + 2);
            for (int k = 0; k < COUNT; ++k) {
                // A scaled gradient that is asked to be f16 may leave its range.
                assert_true((i >= 2 && is_half) || fabsf(first[k] - weight[k]) <= 1e-6f);
                assert_true(i >= 2 || first[k] == weight[k]);
            }
        }
    }
}

// Each step is far below what f16 resolves beside the weight, and the scale is beyond its range:
// of a program that is computed in half precision, and of parameters that are of it.
TEST(small_steps_add_up) {
    static const struct {
        rondo_dtype computed, stored;
    } kinds[] = {{RONDO_DTYPE_F16, RONDO_DTYPE_F32},
                 {RONDO_DTYPE_BF16, RONDO_DTYPE_F32},
                 {RONDO_DTYPE_F32, RONDO_DTYPE_F16},
                 {RONDO_DTYPE_F32, RONDO_DTYPE_BF16}};
    const rondo_minimize_options cases[] = {
        {.struct_size = sizeof *cases, .learning_rate = 1e-5},
        {.struct_size = sizeof *cases, .learning_rate = 1e-6, .momentum = 0.9},
        {.struct_size = sizeof *cases, .optimizer = RONDO_OPTIMIZER_ADAMW, .learning_rate = 1e-5},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        rondo_minimize_options how = cases[c];
        float half[COUNT], single[COUNT], scale[2];
        how.scale_loss = true;
        how.scale_interval = STEPS;
        train(&how, RONDO_DTYPE_F32, RONDO_DTYPE_F32, single, &scale[1]);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
            // A gradient of a parameter of f16 is of f16, as the scaled one must be then.
            how.scale_start = kinds[k].stored == RONDO_DTYPE_F16 ? 1024.0 : 65536.0;
            train(&how, kinds[k].computed, kinds[k].stored, half, &scale[0]);
            assert_true((double)scale[0] == 2.0 * how.scale_start && scale[1] == 131072.0f);
            for (int i = 0; i < COUNT; ++i) {
                assert_true(fabsf(single[i] - (1.0f + (float)i)) > 5e-5f);
                assert_true(fabsf(half[i] - single[i]) <= 1e-6f * single[i]);
            }
        }
    }
}

// ---- large scales -------------------------------------------------------------------------------

enum { ROWS = 32, INPUTS = 4, KINDS = 3 };

// What a step of SGD makes of w in softmax(x w), or x w beside t. `scale` 0: of f32.
static void step_once(bool is_square, double scale, float *weight) {
    const rondo_minimize_options how = {.struct_size = sizeof how,
                                        .learning_rate = 1.0,
                                        .scale_loss = scale > 0.0,
                                        .scale_start = scale};
    const rondo_executor_options options = {
        .struct_size = sizeof options, .dtype = scale > 0.0 ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32};
    const rondo_shape of_t = {2, {ROWS, KINDS}};
    const rondo_shape of_w = {2, {INPUTS, KINDS}};
    const rondo_shape of_y = {1, {ROWS}};
    float x[ROWS * INPUTS], t[ROWS * KINDS];
    int64_t y[ROWS];
    rondo_builder *b;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    variables_fill(1, ROWS * INPUTS, 0.1, x);
    variables_fill(2, ROWS * KINDS, 0.5, t);
    variables_fill(3, INPUTS * KINDS, 0.5, weight);
    for (int i = 0; i < ROWS; ++i) {
        y[i] = i % KINDS;
    }
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ROWS, INPUTS)));
    OK(rondo_builder_add_constant(b, "w", RONDO_DTYPE_F32, &of_w, weight));
    OK(rondo_builder_add_constant(b, "t", RONDO_DTYPE_F32, &of_t, t));
    OK(rondo_builder_add_constant(b, "y", RONDO_DTYPE_I64, &of_y, y));
    build_node(b, "MatMul", "x w", "s", NULL);
    if (is_square) {
        OK(rondo_builder_add_square_error_cost(b, "s", "t", "cost"));
        OK(rondo_builder_add_mean(b, "cost", "loss"));
    } else {
        build_node(b, "SoftmaxCrossEntropyLoss", "s y", "loss", NULL);
    }
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_minimize(b, "loss", &how));
    program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, &options, &executor));
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ROWS, INPUTS);
    OK(rondo_executor_run(executor, &feed, 1, NULL, 0));
    read_variable(executor, "w", weight);
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

// A scale beyond what f16 holds is not rounded to it: gradients are those of f32.
TEST(scales_leave_the_range) {
    const double scales[] = {1024.0, 65536.0, 1048576.0};
    float start[INPUTS * KINDS], single[INPUTS * KINDS], half[INPUTS * KINDS];
    variables_fill(3, INPUTS * KINDS, 0.5, start);
    for (int square = 0; square < 2; ++square) {
        step_once(square != 0, 0.0, single);
        for (size_t k = 0; k < sizeof scales / sizeof *scales; ++k) {
            double error = 0.0;
            double change = 0.0;
            double along = 0.0;
            step_once(square != 0, scales[k], half);
            for (int i = 0; i < INPUTS * KINDS; ++i) {
                const double want = (double)single[i] - (double)start[i];
                const double have = (double)half[i] - (double)start[i];
                error += (have - want) * (have - want);
                along += (have - want) * want;
                change += want * want;
            }
            assert_true(change > 1e-8 && sqrt(error / change) <= 2e-3);
            assert_true(fabs(along / change) <= 3e-4);  // 65504 for 65536 would be 4.9e-4
        }
    }
}

// ---- one op for many variables ---------------------------------------------------------------

enum { WEIGHTS = 9, LONGEST = 2050 };
static const int64_t lengths[WEIGHTS] = {2, 3, 4, 5, 64, 1023, 1024, 1025, LONGEST};

static const char *name_weight(int i) {
    static const char *const names[WEIGHTS] = {"w0", "w1", "w2", "w3", "w4",
                                               "w5", "w6", "w7", "w8"};
    return names[i];
}

// loss = factor * the sum of the means of exp(w)
static rondo_builder *begin_many(void) {
    static float values[LONGEST];
    static char names[WEIGHTS][3][8];
    const char *sum = "factor";
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("factor", RONDO_DTYPE_F32)));
    for (int i = 0; i < WEIGHTS; ++i) {
        for (int64_t k = 0; k < lengths[i]; ++k) {
            values[k] = 0.5f - (float)((k * 37 + i) % 101) / 101.0f;
        }
        const rondo_shape own = {1, {lengths[i]}};
        OK(rondo_builder_add_constant(b, name_weight(i), RONDO_DTYPE_F32, &own, values));
        for (int k = 0; k < 3; ++k) {
            (void)snprintf(names[i][k], sizeof names[i][k], "%c%d", "ems"[k], i);
        }
        build_op(b, "Exp", name_weight(i), NULL, names[i][0]);
        OK(rondo_builder_add_mean(b, names[i][0], names[i][1]));
        build_op(b, i == 0 ? "Mul" : "Add", sum, names[i][1], names[i][2]);
        sum = names[i][2];
    }
    build_op(b, "Mul", sum, "factor", "loss");
    OK(rondo_builder_add_output(b, "loss", NULL));
    return b;
}

typedef struct found {
    bool update, finite;
} found;

static bool look(void *data, const char *text, size_t bytes) {
    found *f = data;
    f->update = f->update || memmem(text, bytes, "rondo.Update", 12) != NULL;
    f->finite = f->finite || memmem(text, bytes, "rondo.Finite", 12) != NULL;
    return true;
}

static void train_many(const rondo_minimize_options *how, bool op_by_op, float *values,
                       found *out_found) {
    const rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = op_by_op};
    const float factors[] = {1.0f, 0.5f, INFINITY, 2.0f, 0.25f, 1.0f};
    rondo_builder *b = begin_many();
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    OK(rondo_builder_minimize(b, "loss", how));
    program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, &options, &executor));
    for (size_t step = 0; step < sizeof factors / sizeof *factors; ++step) {
        float factor = factors[step];
        const rondo_binding feed = BIND("factor", RONDO_DTYPE_F32, &factor);
        if (isfinite(factor) || how->scale_loss) {
            OK(rondo_executor_run(executor, &feed, 1, NULL, 0));
        }
    }
    for (int i = 0; i < WEIGHTS; ++i) {
        read_variable(executor, name_weight(i), values + (size_t)i * LONGEST);
    }
    OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, look, out_found));
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

// Many variables change in one op as by its ops one by one; a spoilt step changes none.
TEST(updates_do_as_their_ops) {
    static float values[2][WEIGHTS][LONGEST];
    const rondo_minimize_options cases[] = {
        {.struct_size = sizeof *cases, .learning_rate = 0.1, .scale_loss = true},
        {.struct_size = sizeof *cases, .learning_rate = 0.1, .momentum = 0.9, .nesterov = true},
        {.struct_size = sizeof *cases,
         .optimizer = RONDO_OPTIMIZER_ADAM,
         .learning_rate = 0.01,
         .weight_decay = 0.1,
         .clip_value = 0.5},
        {.struct_size = sizeof *cases,
         .optimizer = RONDO_OPTIMIZER_ADAMW,
         .learning_rate = 0.01,
         .weight_decay = 0.1,
         .scale_loss = true,
         .clip_norm = 0.5},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        found fused = {false, false};
        found plain = {false, false};
        memset(values, 0, sizeof values);
        train_many(&cases[c], false, values[0][0], &fused);
        train_many(&cases[c], true, values[1][0], &plain);
        assert_true(fused.update && !plain.update);
        assert_true(fused.finite == cases[c].scale_loss && !plain.finite);
        for (int i = 0; i < WEIGHTS; ++i) {
            for (int64_t k = 0; k < lengths[i]; ++k) {
                const float have = values[0][i][k];
                const float want = values[1][i][k];
                assert_true(fabsf(have - want) <= 1e-6f * fabsf(want));
            }
        }
    }
}

// ---- bf16 ---------------------------------------------------------------------------------------

enum { LAYERS = 4, BATCH = 8, WIDE = 12, HIDDEN = 16, CLASSES = 5 };
static const struct {
    const char *name, *change;
    rondo_shape shape;
    const unsigned *gradient;
} layers[LAYERS] = {
    {"w0", "d0", {2, {HIDDEN, WIDE}}, golden_bf16_gradient_0},
    {"b0", "d1", {1, {HIDDEN}}, golden_bf16_gradient_1},
    {"w1", "d2", {2, {CLASSES, HIDDEN}}, golden_bf16_gradient_2},
    {"b1", "d3", {1, {CLASSES}}, golden_bf16_gradient_3},
};

static void add_layer(rondo_builder *b, const char *x, int i, const char *out) {
    OK(rondo_builder_add_node(b, "Gemm",
                              (const char *[]){x, layers[2 * i].name, layers[2 * i + 1].name}, 3,
                              (const char *[]){out}, 1, &WITH(ATTRIBUTE_INT("transB", 1))));
}

// make_golden.py's two layers, with gradients as outputs.
static rondo_builder *begin_layers(void) {
    float values[HIDDEN * WIDE];
    const char *names[LAYERS], *changes[LAYERS];
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, BATCH, WIDE)));
    OK(rondo_builder_add_input(b, &PORT("y", RONDO_DTYPE_I64, 8)));
    for (uint32_t i = 0; i < LAYERS; ++i) {
        variables_fill(2000 + i, (size_t)rondo_shape_get_count(&layers[i].shape), 0.4, values);
        OK(rondo_builder_add_constant(b, layers[i].name, RONDO_DTYPE_F32, &layers[i].shape,
                                      values));
        names[i] = layers[i].name;
        changes[i] = layers[i].change;
    }
    add_layer(b, "x", 0, "h");
    build_op(b, "Relu", "h", NULL, "r");
    add_layer(b, "r", 1, "s");
    build_op(b, "SoftmaxCrossEntropyLoss", "s", "y", "loss");
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_add_gradients(b, "loss", names, changes, LAYERS, NULL));
    for (int i = 0; i < LAYERS; ++i) {
        OK(rondo_builder_add_output(b, changes[i], NULL));
    }
    return b;
}

static bool look_for_bf16(void *data, const char *text, size_t bytes) {
    bool *has = data;
    *has = *has || memmem(text, bytes, "compute in bf16", 15) != NULL;
    return true;
}

// The farthest that any element lies from PyTorch's, as a share of the largest of them.
static double find_error(const float *have, const unsigned *bits, size_t count) {
    double most = 0.0;
    double largest = 0.0;
    for (size_t i = 0; i < count; ++i) {
        float want;
        memcpy(&want, &bits[i], sizeof want);
        const double error = fabs((double)have[i] - (double)want);
        most = !(error <= most) ? error : most;
        largest = fabs((double)want) > largest ? fabs((double)want) : largest;
    }
    return most / largest;
}

// Products in bf16, with weights and states of f32, are what PyTorch's autocast comes to; f32 is
// farther off.
TEST(bf16_is_autocasts) {
    const rondo_minimize_options how = {.struct_size = sizeof how,
                                        .optimizer = RONDO_OPTIMIZER_ADAMW,
                                        .learning_rate = 0.02,
                                        .weight_decay = 0.1};
    static const rondo_dtype types[] = {RONDO_DTYPE_BF16, RONDO_DTYPE_F32};
    double errors[2] = {0.0, 0.0};
    for (int t = 0; t < 2; ++t) {
        const rondo_executor_options options = {.struct_size = sizeof options, .dtype = types[t]};
        rondo_builder *b = begin_layers();
        rondo_program *program;
        rondo_device *device;
        rondo_executor *executor;
        float losses[20], gradients[LAYERS][HIDDEN * WIDE], x[BATCH * WIDE];
        int64_t y[] = {0, 3, 1, 4, 2, 2, 0, 1};
        bool has = false;
        OK(rondo_builder_minimize(b, "loss", &how));
        OK(rondo_builder_finish(b, &program));
        rondo_builder_destroy(b);
        OK(rondo_device_open(on_devices_get_name(), &device));
        OK(rondo_executor_create(program, device, &options, &executor));
        for (uint32_t step = 0; step < 20; ++step) {
            const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, BATCH, WIDE),
                                           BIND("y", RONDO_DTYPE_I64, y, BATCH)};
            rondo_binding fetches[1 + LAYERS] = {BIND("loss", RONDO_DTYPE_F32, &losses[step])};
            for (int i = 0; i < LAYERS; ++i) {
                fetches[1 + i] =
                    BIND_SHAPE(layers[i].change, RONDO_DTYPE_F32, gradients[i], layers[i].shape);
            }
            variables_fill(300 + step % 4, BATCH * WIDE, 1.0, x);
            OK(rondo_executor_run(executor, feeds, 2, fetches, step == 0 ? 1 + LAYERS : 1));
        }
        OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, look_for_bf16, &has));
        assert_true(has == (types[t] == RONDO_DTYPE_BF16));
        for (int i = 0; i < LAYERS; ++i) {
            const double error = find_error(gradients[i], layers[i].gradient,
                                            (size_t)rondo_shape_get_count(&layers[i].shape));
            errors[t] = !(error <= errors[t]) ? error : errors[t];
        }
        const double error = find_error(losses, golden_bf16_losses, 20);
        assert_true(types[t] == RONDO_DTYPE_F32 || error <= 0.01);
        rondo_executor_destroy(executor);
        rondo_device_release(device);
        rondo_program_destroy(program);
    }
    print_message("gradients beside autocast's: bf16 %.4f, f32 %.4f of the largest\n", errors[0],
                  errors[1]);
    assert_true(errors[0] <= 0.004);  // a unit of bf16
    assert_true(errors[1] > 2.0 * errors[0]);
}

int main(void) {
    return ON_DEVICES();
}
