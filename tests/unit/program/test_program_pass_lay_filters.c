// Filters of a training step come to the layout of its convolutions in one node for each number of
// taps, for both ways, and convolutions of the image go by blocks there and back; results stay.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/backward/backward.h"
#include "program/half/half_pass.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/models.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { PORTS = 6, WEIGHTS = PORTS - 1, OUTPUTS = 1 + WEIGHTS };

static const struct {
    const char *name, *from, *to;  // of a convolution
    rondo_shape shape;
    int64_t stride, pad;
} ports[PORTS] = {
    {"x", NULL, NULL, {4, {2, 3, 11, 10}}, 0, 0}, {"w0", "x", "c0", {4, {8, 3, 3, 3}}, 2, 1},
    {"w1", "c0", "c1", {4, {16, 8, 3, 3}}, 1, 1}, {"w2", "c1", "c2", {4, {24, 16, 1, 1}}, 1, 0},
    {"w3", "c2", "c3", {4, {6, 24, 3, 3}}, 1, 1},  // six filters: left alone
    {"w4", "x", "c4", {4, {16, 3, 3, 3}}, 2, 1},   // the image has two readers
};

static void add_node(rondo_builder *b, const char *op, const char *x, const char *y,
                     const char *result) {
    OK(rondo_builder_add_node(b, op, (const char *[]){x, y}, 2, &result, 1, NULL));
}

// loss = mean(c3^2) + mean(c4^2), and with `goes_back` the gradients of all weights.
static rondo_program *make_source(bool goes_back) {
    static const char *const of[WEIGHTS] = {"w0", "w1", "w2", "w3", "w4"};
    static const char *const names[WEIGHTS] = {"d0", "d1", "d2", "d3", "d4"};
    const rondo_builder_options opset = {.struct_size = sizeof opset, .opset = 23};
    rondo_builder *b;
    rondo_program *source;
    OK(rondo_builder_create(&opset, &b));
    for (size_t i = 0; i < PORTS; ++i) {
        rondo_port in = {
            .struct_size = sizeof in, .name = ports[i].name, .dtype = RONDO_DTYPE_F32, .rank = 4};
        memcpy(in.extent, ports[i].shape.extent, sizeof in.extent);
        OK(rondo_builder_add_input(b, &in));
    }
    for (size_t i = 1; i < PORTS; ++i) {
        const int64_t strides[] = {ports[i].stride, ports[i].stride}, p = ports[i].pad;
        const int64_t pads[] = {p, p, p, p};
        const rondo_attribute list[] = {
            {.name = "strides", .kind = RONDO_ATTRIBUTE_INTS, .ints = strides, .count = 2},
            {.name = "pads", .kind = RONDO_ATTRIBUTE_INTS, .ints = pads, .count = 4}};
        const rondo_builder_node_options options = {
            .struct_size = sizeof options, .attributes = list, .attribute_count = 2};
        OK(rondo_builder_add_node(b, "Conv", (const char *[]){ports[i].from, ports[i].name}, 2,
                                  &ports[i].to, 1, &options));
    }
    add_node(b, "Mul", "c3", "c3", "square3");
    add_node(b, "Mul", "c4", "c4", "square4");
    OK(rondo_builder_add_mean(b, "square3", "mean3"));
    OK(rondo_builder_add_mean(b, "square4", "mean4"));
    add_node(b, "Add", "mean3", "mean4", "loss");
    OK(rondo_builder_add_output(b, "loss", NULL));
    if (goes_back) {
        OK(rondo_builder_add_gradients(b, "loss", of, names, WEIGHTS, NULL));
        for (size_t i = 0; i < WEIGHTS; ++i) {
            OK(rondo_builder_add_output(b, names[i], NULL));
        }
    }
    OK(rondo_builder_finish(b, &source));
    rondo_builder_destroy(b);
    return source;
}

// In half precision, with the passes or without.
static rondo_program *make_program(const rondo_program *source, bool lays) {
    const rondo__backward_options backward = {true, true, true};
    const rondo__pass_options options = {.channels_last = true,
                                         .widen_images = lays,
                                         .fuse_convolution = true,
                                         .fuse_elementwise = true,
                                         .lay_filters = lays};
    rondo_tensor shapes[PORTS];
    rondo_program *program;
    rondo__half_report report;
    for (size_t i = 0; i < PORTS; ++i) {
        shapes[i] = (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = ports[i].shape};
    }
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    OK(rondo__program_simplify(program));
    OK(rondo__program_name_gradients(program, &backward));
    OK(rondo__pass_half(program, NULL, &report));
    rondo__half_report_deinit(&report);
    OK(rondo__program_optimise(program, &options));
    return program;
}

static size_t count_laid(const rondo_program *program) {
    size_t count = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        count += rondo__op_get_int(&program->nodes[n].op, "filters_last", 0) != 0 ? 1 : 0;
    }
    return count;
}

static void fill(rondo_tensor *feeds) {
    uint32_t seed = 3;
    for (size_t i = 0; i < PORTS; ++i) {
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &ports[i].shape, &feeds[i]));
        for (int64_t e = 0; e < rondo_shape_get_count(&ports[i].shape); ++e) {
            seed = seed * 1664525u + 1013904223u;
            ((float *)feeds[i].data)[e] = (float)(seed >> 8) / 16777216.0f - 0.4f;
        }
    }
}

static void compare(const rondo_program *plain, const rondo_program *laid) {
    rondo_tensor feeds[PORTS], wanted[OUTPUTS] = {0}, found[OUTPUTS] = {0};
    fill(feeds);
    OK(interpret_program(plain, feeds, wanted));
    OK(interpret_program(laid, feeds, found));
    for (size_t i = 0; i < plain->output_count; ++i) {
        assert_true(compare_tensors(&found[i], &wanted[i]) <= 1e-3);
        rondo_tensor_deinit(&found[i]);
        rondo_tensor_deinit(&wanted[i]);
    }
    for (size_t i = 0; i < PORTS; ++i) {
        rondo_tensor_deinit(&feeds[i]);
    }
}

TEST(test_program_pass_lay_filters__there_and_back) {
    rondo_program *source = make_source(true);
    rondo_program *plain = make_program(source, false), *laid = make_program(source, true);
    assert_int_equal(interpret_count(plain, RONDO__FUSED_LayFilters), 0);
    assert_int_equal(interpret_count(laid, RONDO__FUSED_LayFilters), 2);
    assert_int_equal(count_laid(laid), 4);                                 // w1 and w2, both ways
    assert_int_equal(interpret_count(laid, RONDO__FUSED_TurnFilters), 1);  // of w3
    assert_int_equal(interpret_count(laid, RONDO__FUSED_SpaceToDepth), 2);
    assert_int_equal(interpret_count(laid, RONDO__FUSED_ConvWeights), WEIGHTS);
    compare(plain, laid);
    rondo_program_destroy(plain);
    rondo_program_destroy(laid);
    rondo_program_destroy(source);
}

// Without a way back one form of each is left out.
TEST(test_program_pass_lay_filters__there_alone) {
    rondo_program *source = make_source(false);
    rondo_program *plain = make_program(source, false), *laid = make_program(source, true);
    assert_int_equal(interpret_count(laid, RONDO__FUSED_LayFilters), 2);
    assert_int_equal(count_laid(laid), 2);
    compare(plain, laid);
    rondo_program_destroy(plain);
    rondo_program_destroy(laid);
    rondo_program_destroy(source);
}

TEST_MAIN()
