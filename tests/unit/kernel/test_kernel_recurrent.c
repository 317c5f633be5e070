// Which recurrent ops have a kernel on the host: those with their usual functions, stated or not.
// A step of an LSTM leaves no denormals.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/host/simd/simd.h"
#include "rondo/builder.h"
#include "rondo/executor.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { STEPS = 3, INPUTS = 4, HIDDEN = 2 };

static rondo_program *build(const char *op, int64_t gates, const char *const *functions,
                            size_t function_count) {
    static const float weights[4 * HIDDEN * INPUTS];
    const char *const inputs[] = {"x", "w", "r"};
    const char *const output = "y";
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 3};
    memcpy(x.extent, (const int64_t[]){STEPS, 1, INPUTS}, 3 * sizeof(int64_t));
    const rondo_shape w = {3, {1, gates * HIDDEN, INPUTS}}, r = {3, {1, gates * HIDDEN, HIDDEN}};
    const rondo_attribute attributes[] = {ATTRIBUTE_INT("hidden_size", HIDDEN),
                                          {.name = "activations",
                                           .kind = RONDO_ATTRIBUTE_STRINGS,
                                           .strings = functions,
                                           .count = function_count}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &x));
    OK(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, &w, weights));
    OK(rondo_builder_add_constant(builder, "r", RONDO_DTYPE_F32, &r, weights));
    OK(rondo_builder_add_node(builder, op, inputs, 3, &output, 1,
                              &WITH_LIST(attributes, functions != NULL ? 2 : 1)));
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

TEST(test_kernel_recurrent__usual_functions_may_be_stated) {
    static const struct {
        const char *op;
        int64_t gates;
        const char *functions[3];
        size_t function_count;
        const char *implementation;
    } rows[] = {
        {"LSTM", 4, {NULL}, 0, "simd"},
        {"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, 3, "simd"},
        {"LSTM", 4, {"sigmoid", "tanh", "tanh"}, 3, "simd"},
        {"LSTM", 4, {"Sigmoid", "Tanh", "Relu"}, 3, "reference"},
        {"GRU", 3, {"Sigmoid", "Tanh"}, 2, "simd"},
        {"GRU", 3, {"Tanh", "Sigmoid"}, 2, "reference"},
        {"RNN", 1, {"Tanh"}, 1, "simd"},
        {"RNN", 1, {"Relu"}, 1, "reference"},
    };
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *program =
            build(rows[i].op, rows[i].gates, rows[i].function_count > 0 ? rows[i].functions : NULL,
                  rows[i].function_count);
        rondo_executor *executor;
        text_sink plan = {.length = 0};
        char expected[64];
        OK(rondo_executor_create(program, device, NULL, &executor));
        OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, text_sink_append, &plan));
        (void)snprintf(expected, sizeof expected, "%-20s %s ", rows[i].op, rows[i].implementation);
        if (strstr(plan.text, expected) == NULL) {
            fail_msg("row %zu: no \"%s\" in\n%s", i, expected, plan.text);
        }
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
    }
    rondo_device_release(device);
}

// States below the least normal number are zeros of the same step, others and NaN stay.
TEST(test_kernel_recurrent__no_denormal_states) {
    enum { COUNT = 21 };  // whole vectors and a rest
    static const struct {
        float in, out, forget, candidate, c;
        bool is_zero_c, is_zero_h;
    } rows[] = {
        {0.0f, 0.0f, 0.0f, 1.0f, 1.0f, false, false},
        {0.0f, -85.0f, 0.0f, 1.0f, 0.25f, false, false},   // h is some 1e-37
        {0.0f, -87.2f, 0.0f, 1e-3f, 1e-3f, false, true},   // and 1e-41
        {-87.2f, 5.0f, -87.2f, 0.1f, -0.1f, true, true},   // both
        {-87.2f, 5.0f, 5.0f, 0.1f, -1e-39f, true, true},   // a c that was so
        {-80.0f, 5.0f, -80.0f, 0.5f, 1.0f, false, false},  // some 1e-35
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        float gates[4 * COUNT], h[COUNT], c[COUNT];
        for (int i = 0; i < COUNT; ++i) {
            gates[i] = rows[r].in;
            gates[COUNT + i] = rows[r].out;
            gates[2 * COUNT + i] = rows[r].forget;
            gates[3 * COUNT + i] = rows[r].candidate;
            c[i] = i == 3 ? NAN : rows[r].c;
        }
        rondo__simd_get()->lstm_step(gates, h, c, COUNT);
        for (int i = 0; i < COUNT; ++i) {
            if (i == 3
                    ? !isnan(c[i]) || !isnan(h[i])
                    : (c[i] == 0.0f) != rows[r].is_zero_c || (h[i] == 0.0f) != rows[r].is_zero_h) {
                fail_msg("row %zu, number %d: c %g, h %g", r, i, (double)c[i], (double)h[i]);
            }
        }
    }
}

TEST_MAIN()
