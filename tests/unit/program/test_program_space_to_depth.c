// Convolutions of few channels behind rondo.SpaceToDepth: which get it, in which form, and that the
// results stay, over fixed and over random windows.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/image/window.h"
#include "program/edit.h"
#include "program/half/half_pass.h"
#include "program/passes/passes.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"
#include "rondo/builder.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

// A small generator of its own: the same cases on every machine.
static uint32_t random_state = 1;

static int64_t draw(int64_t low, int64_t high) {
    random_state = random_state * 1664525u + 1013904223u;
    return low + (int64_t)(random_state >> 16) % (high - low + 1);
}

static int64_t draw_of(const int64_t *values, size_t count) {
    return values[draw(0, (int64_t)count - 1)];
}

// ---- programs ---------------------------------------------------------------------------------

// What stands around the convolution.
enum {
    IS_HALF = 1u << 0,         // x is f16 and nothing is cast
    IS_LAST = 1u << 1,         // x is [N, H, W, C], and the model turns it itself
    HAS_BIAS = 1u << 2,        // and a Relu behind it
    HAS_NORM = 1u << 3,        // a Sub before it, and a Tanh that stays in f32
    HAS_RESIDUAL = 1u << 4,    // a second convolution of x, the sum of both
    HAS_OTHER_USER = 1u << 5,  // the image is an output, too
    IS_COMPUTED = 1u << 6,     // the filters are an input
    HAS_CAST = 1u << 7,        // a model whose author casts to f16
};

typedef struct stem {
    int64_t batch, channels, image[2], filters;
    int64_t kernel[2], strides[2], pads[4], dilations[2], group;
    const char *auto_pad;  // NULL: pads
    uint32_t around;
} stem;

static bool has(const stem *of, uint32_t flag) {
    return (of->around & flag) != 0;
}

static float make_element(int64_t i) {
    return (float)((i * 37 + 11) % 64) / 32.0f - 1.0f;
}

static void fill(rondo_tensor *tensor, rondo_dtype dtype, const rondo_shape *shape, int64_t seed) {
    OK(rondo_tensor_init(dtype, shape, tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        const float value = make_element(i * 13 / 8 + seed);
        if (dtype == RONDO_DTYPE_F16) {
            ((uint16_t *)tensor->data)[i] = rondo_f16_from_float(value);
        } else {
            ((float *)tensor->data)[i] = value;
        }
    }
}

static void add_constant(rondo_builder *builder, const char *name, rondo_dtype dtype,
                         const rondo_shape *shape, int64_t seed) {
    rondo_tensor tensor;
    fill(&tensor, dtype, shape, seed);
    OK(rondo_builder_add_parameter(builder, name, &tensor, RONDO_PARAMETER_COPIED));
    rondo_tensor_deinit(&tensor);
}

static void add_node(rondo_builder *builder, const char *op, const char *a, const char *b,
                     const char *c, const char *output, const rondo_attribute *attributes,
                     size_t attribute_count) {
    const char *inputs[3] = {a, b, c};
    OK(rondo_builder_add_node(builder, op, inputs,
                              c != NULL   ? 3
                              : b != NULL ? 2
                                          : 1,
                              &output, 1, &WITH_LIST(attributes, attribute_count)));
}

static rondo_shape get_image_shape(const stem *of) {
    const int64_t n = of->batch, c = of->channels, h = of->image[0], w = of->image[1];
    return has(of, IS_LAST) ? (rondo_shape){4, {n, h, w, c}} : (rondo_shape){4, {n, c, h, w}};
}

static rondo_shape get_filter_shape(const stem *of) {
    return (rondo_shape){4, {of->filters, of->channels / of->group, of->kernel[0], of->kernel[1]}};
}

static void add_input(rondo_builder *builder, const char *name, rondo_dtype dtype,
                      const rondo_shape *shape) {
    rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = dtype, .rank = 4};
    memcpy(port.extent, shape->extent, 4 * sizeof *port.extent);
    OK(rondo_builder_add_input(builder, &port));
}

// What leads from x to the image; returns its name.
static const char *add_front(rondo_builder *builder, const stem *of, rondo_dtype dtype) {
    static const int64_t to_planes[] = {0, 3, 1, 2};
    const rondo_attribute perm = ATTRIBUTE_INTS("perm", to_planes, 4);
    const rondo_attribute to = ATTRIBUTE_INT("to", 10);
    const rondo_shape by_channel = {3, {of->channels, 1, 1}};
    const char *image = "x";
    if (has(of, IS_LAST)) {
        add_node(builder, "Transpose", image, NULL, NULL, "turned", &perm, 1);
        image = "turned";
    }
    if (has(of, HAS_NORM)) {
        add_constant(builder, "mean", dtype, &by_channel, 3);
        add_node(builder, "Sub", image, "mean", NULL, "centred", NULL, 0);
        add_node(builder, "Tanh", "centred", NULL, NULL, "normed", NULL, 0);
        image = "normed";
    }
    if (has(of, HAS_CAST)) {
        add_node(builder, "Cast", image, NULL, NULL, "cast", &to, 1);
        image = "cast";
    }
    return image;
}

static rondo_program *build(const stem *of) {
    const rondo_attribute attributes[] = {
        ATTRIBUTE_INTS("strides", of->strides, 2), ATTRIBUTE_INTS("dilations", of->dilations, 2),
        ATTRIBUTE_INT("group", of->group),
        of->auto_pad == NULL ? ATTRIBUTE_INTS("pads", of->pads, 4)
                             : ATTRIBUTE_TEXT("auto_pad", of->auto_pad)};
    const rondo_shape filter = get_filter_shape(of), bias = {1, {of->filters}};
    const rondo_shape image_shape = get_image_shape(of);
    const bool is_f16 = has(of, IS_HALF | HAS_CAST);
    const rondo_dtype dtype = is_f16 ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32;
    rondo_builder *builder = build_begin();
    add_input(builder, "x", has(of, IS_HALF) ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32, &image_shape);
    const char *image =
        add_front(builder, of, has(of, IS_HALF) ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32);
    if (has(of, IS_COMPUTED)) {
        add_input(builder, "w", dtype, &filter);
    } else {
        add_constant(builder, "w", dtype, &filter, 5);
    }
    const char *y = "c";
    if (has(of, HAS_BIAS)) {
        add_constant(builder, "b", dtype, &bias, 7);
    }
    add_node(builder, "Conv", image, "w", has(of, HAS_BIAS) ? "b" : NULL, "c", attributes, 4);
    if (has(of, HAS_RESIDUAL)) {
        add_constant(builder, "v", dtype, &filter, 17);
        add_node(builder, "Conv", image, "v", NULL, "d", attributes, 4);
        add_node(builder, "Add", "d", "c", NULL, "e", NULL, 0);
        y = "e";
    }
    if (has(of, HAS_BIAS)) {
        add_node(builder, "Relu", y, NULL, NULL, "r", NULL, 0);
        y = "r";
    }
    OK(rondo_builder_add_output(builder, y, NULL));
    if (has(of, HAS_OTHER_USER)) {
        add_node(builder, "Neg", image, NULL, NULL, "n", NULL, 0);
        OK(rondo_builder_add_output(builder, "n", NULL));
    }
    return build_finish(builder);
}

// ---- a plan with the pass, and one without ----------------------------------------------------

typedef struct pair {
    rondo_program *plain, *widened;
    rondo_tensor inputs[2], expected[2], results[2];
} pair;

static rondo_program *make_plan(const rondo_program *source, const rondo_tensor *inputs,
                                bool widens) {
    const rondo__pass_options options = {.channels_last = true,
                                         .widen_images = widens,
                                         .fuse_convolution = true,
                                         .fuse_elementwise = true};
    rondo_tensor shapes[2] = {inputs[0], inputs[1]};
    rondo_program *program;
    rondo__half_report report;
    for (size_t i = 0; i < 2; ++i) {
        shapes[i].data = NULL;
        shapes[i].storage = NULL;
    }
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    OK(rondo__program_simplify(program));
    rondo__half_mark(program, "Tanh", RONDO__PRECISION_SINGLE);
    OK(rondo__pass_half(program, NULL, &report));
    rondo__half_report_deinit(&report);
    OK(rondo__program_optimise(program, &options));
    return program;
}

static void begin(const stem *of, pair *p) {
    const rondo_shape image = get_image_shape(of), filter = get_filter_shape(of);
    memset(p, 0, sizeof *p);
    rondo_program *source = build(of);
    fill(&p->inputs[0], has(of, IS_HALF) ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32, &image, 0);
    if (has(of, IS_COMPUTED)) {
        fill(&p->inputs[1], RONDO_DTYPE_F32, &filter, 5);
    }
    p->plain = make_plan(source, p->inputs, false);
    p->widened = make_plan(source, p->inputs, true);
    rondo_program_destroy(source);
}

static void run(pair *p) {
    OK(interpret_program(p->plain, p->inputs, p->expected));
    OK(interpret_program(p->widened, p->inputs, p->results));
}

static void end(pair *p) {
    for (size_t i = 0; i < 2; ++i) {
        rondo_tensor_deinit(&p->inputs[i]);
        rondo_tensor_deinit(&p->expected[i]);
        rondo_tensor_deinit(&p->results[i]);
    }
    rondo_program_destroy(p->plain);
    rondo_program_destroy(p->widened);
}

static void print_stem(const stem *of) {
    print_error(
        "n %d c %d image %d x %d filters %d kernel %d x %d strides %d %d pads %d %d %d %d "
        "dilations %d %d %s around %#x\n",
        (int)of->batch, (int)of->channels, (int)of->image[0], (int)of->image[1], (int)of->filters,
        (int)of->kernel[0], (int)of->kernel[1], (int)of->strides[0], (int)of->strides[1],
        (int)of->pads[0], (int)of->pads[1], (int)of->pads[2], (int)of->pads[3],
        (int)of->dilations[0], (int)of->dilations[1], of->auto_pad != NULL ? of->auto_pad : "",
        of->around);
}

// Sums of the same products in another order, rounded once: equal but for a last bit of f16.
static void expect_same_results(const stem *of, const pair *p) {
    static const double tolerance = 1e-3;
    for (size_t i = 0; i < p->plain->output_count; ++i) {
        const double error = compare_tensors(&p->results[i], &p->expected[i]);
        if (!(error <= tolerance)) {
            print_stem(of);
            print_error("output %zu: error %g above %g\n", i, error, tolerance);
        }
        assert_true(error <= tolerance);
    }
}

static void expect_ints(const rondo__op *op, const char *name, const int64_t *expected,
                        size_t count) {
    size_t found = 0;
    const int64_t *values = rondo__op_get_ints(op, name, &found);
    assert_int_equal(found, count);
    for (size_t i = 0; i < count; ++i) {
        if (values[i] != expected[i]) {
            print_error("%s[%zu] is %d, not %d\n", name, i, (int)values[i], (int)expected[i]);
        }
        assert_int_equal(values[i], expected[i]);
    }
}

// ---- the tests --------------------------------------------------------------------------------

// Windows of known networks, and what they become.
TEST(test_program_space_to_depth__forms) {
    static const struct {
        int64_t channels, image, kernel, stride, pad_begin, pad_end;
        int64_t block, before, extent, deep, taps, conv_stride;
    } rows[] = {
        {3, 224, 7, 2, 3, 3, 2, 4, 115, 16, 4, 1},   // ResNet
        {3, 64, 4, 4, 0, 0, 4, 0, 16, 48, 1, 1},     // ConvNeXt
        {3, 64, 16, 16, 0, 0, 16, 0, 4, 768, 1, 1},  // ViT
        {3, 56, 14, 14, 0, 0, 14, 0, 4, 592, 1, 1},  // DINO
        {3, 64, 3, 2, 1, 1, 2, 2, 33, 16, 2, 1},     // MobileNet
        {3, 64, 3, 2, 0, 1, 2, 0, 33, 16, 2, 1},     // the same, of TensorFlow
        {3, 63, 11, 4, 2, 2, 4, 2, 17, 48, 3, 1},    // AlexNet: no tap for the alignment
        {3, 64, 6, 2, 2, 2, 2, 2, 34, 16, 3, 1},     // YOLO
        {3, 65, 16, 16, 0, 0, 16, 0, 4, 768, 1, 1},  // a column that nobody sees
        {3, 40, 3, 1, 1, 1, 1, 0, 40, 8, 3, 1},      // U-Net
        {1, 28, 5, 1, 0, 0, 1, 0, 28, 8, 5, 1},      // LeNet
        {12, 20, 3, 2, 1, 1, 1, 0, 20, 16, 3, 2},    // blocks would be more work
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const stem of = {
            .batch = 1,
            .channels = rows[i].channels,
            .image = {rows[i].image, rows[i].image},
            .filters = 2,
            .kernel = {rows[i].kernel, rows[i].kernel},
            .strides = {rows[i].stride, rows[i].stride},
            .pads = {rows[i].pad_begin, rows[i].pad_begin, rows[i].pad_end, rows[i].pad_end},
            .dilations = {1, 1},
            .group = 1};
        pair p;
        begin(&of, &p);
        assert_int_equal(interpret_count(p.widened, RONDO__FUSED_SpaceToDepth), 1);
        const rondo__op *op = &interpret_find(p.widened, RONDO__FUSED_SpaceToDepth)->op;
        const rondo__op *conv = &interpret_find(p.widened, RONDO__FUSED_Conv)->op;
        expect_ints(op, "block", (const int64_t[]){rows[i].block, rows[i].block}, 2);
        expect_ints(op, "before", (const int64_t[]){rows[i].before, rows[i].before}, 2);
        expect_ints(op, "extent", (const int64_t[]){rows[i].extent, rows[i].extent}, 2);
        assert_int_equal(rondo__op_get_int(op, "channels", 0), rows[i].deep);
        assert_int_equal(rondo__op_get_int(op, "saturate", 0), 1);
        expect_ints(conv, "kernel_shape", (const int64_t[]){rows[i].taps, rows[i].taps}, 2);
        expect_ints(conv, "strides", (const int64_t[]){rows[i].conv_stride, rows[i].conv_stride},
                    2);
        assert_string_equal(op->name, conv->name);
        // Cast, layout and padding are gone; what is left turns the result back.
        assert_int_equal(interpret_count(p.widened, RONDO__OP_Transpose), 1);
        assert_int_equal(interpret_count(p.widened, RONDO__FUSED_Elementwise),
                         interpret_count(p.plain, RONDO__FUSED_Elementwise) - 1);
        run(&p);
        expect_same_results(&of, &p);
        end(&p);
    }
}

// What may stand around it. `blocks`: how many, `casts` and `moves`: element-wise ops and
// Transposes fewer than without the pass.
TEST(test_program_space_to_depth__neighbours) {
    static const struct {
        uint32_t around;
        size_t blocks, casts, moves;
        int64_t reads_last, saturates;
        rondo_dtype reads;
    } rows[] = {
        {0, 1, 1, 1, 0, 1, RONDO_DTYPE_F32},
        {HAS_BIAS, 1, 1, 1, 0, 1, RONDO_DTYPE_F32},
        {HAS_RESIDUAL | HAS_BIAS, 2, 1, 1, 0, 1, RONDO_DTYPE_F32},
        {IS_HALF, 1, 0, 1, 0, 0, RONDO_DTYPE_F16},
        {IS_LAST, 1, 1, 0, 1, 1, RONDO_DTYPE_F32},
        {IS_LAST | IS_HALF, 0, 0, 0, 0, 0, RONDO_DTYPE_F16},  // would be one launch more
        {HAS_OTHER_USER, 1, 0, 0, 0, 1, RONDO_DTYPE_F32},     // which follows in NHWC
        {HAS_CAST, 1, 0, 1, 0, 0, RONDO_DTYPE_F32},
        {HAS_CAST | HAS_OTHER_USER, 1, 0, 0, 0, 0, RONDO_DTYPE_F32},
        // The cast is a part of the chain before it.
        {HAS_NORM, 1, 0, 1, 0, 0, RONDO_DTYPE_F16},
        {IS_COMPUTED, 1, 1, 1, 0, 1, RONDO_DTYPE_F32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const stem of = {.batch = 2,
                         .channels = 3,
                         .image = {11, 14},
                         .filters = 5,
                         .kernel = {3, 5},
                         .strides = {2, 2},
                         .pads = {1, 2, 0, 3},
                         .dilations = {1, 1},
                         .group = 1,
                         .around = rows[i].around};
        pair p;
        begin(&of, &p);
        const size_t blocks = interpret_count(p.widened, RONDO__FUSED_SpaceToDepth);
        const size_t moves = interpret_count(p.widened, RONDO__OP_Transpose);
        if (blocks != rows[i].blocks ||
            moves + rows[i].moves != interpret_count(p.plain, RONDO__OP_Transpose)) {
            print_error("row %zu\n", i);
        }
        assert_int_equal(blocks, rows[i].blocks);
        assert_int_equal(moves + rows[i].moves, interpret_count(p.plain, RONDO__OP_Transpose));
        assert_int_equal(interpret_count(p.widened, RONDO__FUSED_Elementwise) + rows[i].casts,
                         interpret_count(p.plain, RONDO__FUSED_Elementwise));
        const rondo__node *node = interpret_find(p.widened, RONDO__FUSED_SpaceToDepth);
        if (node != NULL) {
            assert_int_equal(rondo__op_get_int(&node->op, "channels_last", 2), rows[i].reads_last);
            assert_int_equal(rondo__op_get_int(&node->op, "saturate", 2), rows[i].saturates);
            assert_int_equal(p.widened->values[node->inputs[0]].dtype, rows[i].reads);
        }
        run(&p);
        expect_same_results(&of, &p);
        end(&p);
    }
}

// What has enough channels, groups or f32 is left alone.
TEST(test_program_space_to_depth__others) {
    static const int64_t channels[] = {8, 16, 17, 20, 24};
    stem of = {.batch = 1,
               .image = {9, 8},
               .filters = 6,
               .kernel = {3, 3},
               .strides = {2, 2},
               .dilations = {1, 1},
               .group = 1};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; ++i) {
        pair p;
        of.channels = channels[i];
        begin(&of, &p);
        assert_int_equal(interpret_count(p.widened, RONDO__FUSED_SpaceToDepth), 0);
        end(&p);
    }
    pair grouped;
    of.channels = 6;
    of.group = 3;
    begin(&of, &grouped);
    assert_int_equal(interpret_count(grouped.widened, RONDO__FUSED_SpaceToDepth), 0);
    end(&grouped);
    const rondo__pass_options options = {
        .channels_last = true, .widen_images = true, .fuse_convolution = true};
    const rondo_shape image = {4, {1, 3, 9, 8}};
    const rondo_tensor shapes[1] = {{.dtype = RONDO_DTYPE_F32, .shape = image}};
    rondo_program *program;
    of.channels = 3;
    of.group = 1;
    rondo_program *source = build(&of);
    OK(rondo__program_specialise(source, shapes, 1 << 20, &program, NULL));
    OK(rondo__program_optimise(program, &options));
    assert_int_equal(interpret_count(program, RONDO__FUSED_SpaceToDepth), 0);
    rondo_program_destroy(program);
    rondo_program_destroy(source);
}

// Where neither a cast nor a move of data goes, there must be enough to do.
TEST(test_program_space_to_depth__one_launch_more) {
    static const struct {
        int64_t filters;
        size_t count;
    } rows[] = {{39, 0}, {40, 1}};  // 2500 pixels, 100 multiplications for each and each filter
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const stem of = {.batch = 1,
                         .channels = 4,
                         .image = {54, 54},
                         .filters = rows[i].filters,
                         .kernel = {5, 5},
                         .strides = {1, 1},
                         .dilations = {1, 1},
                         .group = 1,
                         .around = IS_LAST | IS_HALF};
        pair p;
        begin(&of, &p);
        assert_int_equal(interpret_count(p.widened, RONDO__FUSED_SpaceToDepth), rows[i].count);
        if (rows[i].count > 0) {
            const rondo__op *op = &interpret_find(p.widened, RONDO__FUSED_SpaceToDepth)->op;
            assert_int_equal(rondo__op_get_int(op, "channels_last", 0), 1);
            assert_int_equal(rondo__op_get_int(op, "channels", 0), 8);
            run(&p);
            expect_same_results(&of, &p);
        }
        end(&p);
    }
}

// The marks of the convolution hold for both ops; one with a place of its own stays as it is.
TEST(test_program_space_to_depth__places) {
    static const struct {
        const char *place;
        uint8_t mark;
        size_t count;
    } rows[] = {{"gpu", RONDO__PLACE_GPU, 1}, {"cpu", RONDO__PLACE_CPU, 0}};
    const stem of = {.batch = 1,
                     .channels = 3,
                     .image = {8, 8},
                     .filters = 2,
                     .kernel = {4, 4},
                     .strides = {4, 4},
                     .dilations = {1, 1},
                     .group = 1,
                     .around = IS_HALF};
    const rondo_shape image = get_image_shape(&of);
    rondo_tensor inputs[2] = {{.dtype = RONDO_DTYPE_F16, .shape = image}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *source = build(&of);
        OK(rondo_program_set_place(source, "Conv", rows[i].place));
        rondo_program *program = make_plan(source, inputs, true);
        assert_int_equal(interpret_count(program, RONDO__FUSED_SpaceToDepth), rows[i].count);
        const rondo__node *node = interpret_find(program, RONDO__FUSED_SpaceToDepth);
        if (node != NULL) {
            assert_int_equal(node->place.place, rows[i].mark);
            assert_int_equal(node->place.by, RONDO__PLACED_BY_CALL);
        }
        rondo_program_destroy(program);
        rondo_program_destroy(source);
    }
}

static stem draw_stem(void) {
    static const int64_t kernels[] = {1, 2, 3, 4, 5, 7, 11, 16}, strides[] = {1, 2, 3, 4, 16};
    static const int64_t channels[] = {1, 2, 3, 4, 5, 6, 12};
    static const char *const modes[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    static const uint32_t arounds[] = {0,
                                       0,
                                       HAS_BIAS,
                                       IS_HALF,
                                       IS_LAST,
                                       IS_LAST | HAS_BIAS,
                                       HAS_BIAS | HAS_RESIDUAL,
                                       HAS_OTHER_USER | HAS_BIAS};
    stem of = {.batch = draw(1, 3),
               .channels = draw_of(channels, 7),
               .filters = draw(1, 9),
               .dilations = {1, 1},
               .group = 1,
               .around = arounds[draw(0, 7)]};
    const bool is_square = draw(0, 2) > 0;
    for (int d = 0; d < 2; ++d) {
        of.kernel[d] = d == 1 && is_square ? of.kernel[0] : draw_of(kernels, 8);
        of.strides[d] = d == 1 && is_square ? of.strides[0] : draw_of(strides, 5);
        of.pads[d] = draw(0, 1) * draw(0, of.kernel[d]);
        of.pads[2 + d] = draw(0, 1) * draw(0, of.kernel[d]);
        of.dilations[d] = draw(0, 9) == 0 ? 2 : 1;
        const int64_t reach = (of.kernel[d] - 1) * of.dilations[d] + 1;
        of.image[d] = reach + draw(1, 19);
    }
    of.channels = of.channels == 1 && has(&of, IS_HALF) ? 2 : of.channels;  // nothing to be saved
    of.auto_pad = draw(0, 3) == 0 ? modes[draw(0, 2)] : NULL;
    return of;
}

TEST(test_program_space_to_depth__random_windows) {
    enum { ROUND_COUNT = 400 };
    size_t block_count = 0, aligned_count = 0;
    for (size_t round = 0; round < ROUND_COUNT; ++round) {
        const stem of = draw_stem();
        pair p;
        begin(&of, &p);
        const rondo__node *node = interpret_find(p.widened, RONDO__FUSED_SpaceToDepth);
        if (node == NULL) {
            print_stem(&of);
        }
        assert_non_null(node);
        size_t count;
        const int64_t *block = rondo__op_get_ints(&node->op, "block", &count);
        const int64_t *before = rondo__op_get_ints(&node->op, "before", &count);
        block_count += block[0] * block[1] > 1 ? 1 : 0;
        aligned_count += block[1] > 1 && before[1] > 0 && before[1] % block[1] == 0 ? 1 : 0;
        run(&p);
        expect_same_results(&of, &p);
        end(&p);
    }
    // The draws reach both forms, and pads that are not those of the convolution.
    assert_true(block_count > ROUND_COUNT / 4 && block_count < ROUND_COUNT);
    assert_true(aligned_count > ROUND_COUNT / 40);
}

// A NaN reaches all that it reached before; beyond, at most what one tap more would see. Numbers,
// however large, reach nothing else.
TEST(test_program_space_to_depth__not_finite) {
    enum { SIZE = 16, OUT = 8 };
    static const float values[] = {NAN, INFINITY, 3e38f};
    const stem of = {.batch = 1,
                     .channels = 1,
                     .image = {SIZE, SIZE},
                     .filters = 1,
                     .kernel = {3, 3},
                     .strides = {2, 2},
                     .pads = {1, 1, 1, 1},
                     .dilations = {1, 1},
                     .group = 1};
    for (size_t v = 0; v < 3; ++v) {
        for (int64_t at = 0; at < SIZE * SIZE; at += 7) {
            pair p;
            begin(&of, &p);
            ((float *)p.inputs[0].data)[at] = values[v];
            run(&p);
            for (int64_t i = 0; i < OUT * OUT; ++i) {
                const float expected = ((const float *)p.expected[0].data)[i];
                const float result = ((const float *)p.results[0].data)[i];
                const int64_t y = i / OUT * 2 - at / SIZE, x = i % OUT * 2 - at % SIZE;
                const bool is_near = y >= -1 && y <= 2 && x >= -1 && x <= 2;
                assert_true(isfinite(expected) || !isfinite(result));
                assert_true(!isfinite(expected) || isfinite(result) || (is_near && v < 2));
            }
            end(&p);
        }
    }
}

TEST_MAIN()
