// Passes keep a program's meaning: shipped models computed op by op before and after, and what each
// pass must do.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"
#include "rondo/builder.h"
#include "rondo/onnx.h"
#include "support/cases/interpret.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"

// A shipped model with its inputs, specialised to them.
typedef struct model {
    rondo_program *source;
    rondo_program *program;
    rondo_tensor inputs[8];
    rondo_tensor expected[8];
} model;

static void load_model(const char *folder, model *out_model) {
    char path[512];
    memset(out_model, 0, sizeof *out_model);
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", get_source_dir(), folder);
    OK(rondo_program_load_onnx(path, &out_model->source));
    rondo_tensor shapes[8] = {{0}};
    for (size_t i = 0; i < out_model->source->input_count; ++i) {
        (void)snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%zu.pb", get_source_dir(),
                       folder, i);
        OK(rondo_tensor_load_onnx(path, &out_model->inputs[i]));
        shapes[i] = out_model->inputs[i];
        shapes[i].data = NULL;
        shapes[i].storage = NULL;
    }
    OK(rondo__program_specialise(out_model->source, shapes, 1 << 26, &out_model->program, NULL));
    OK(interpret_program(out_model->program, out_model->inputs, out_model->expected));
}

static void free_model(model *m) {
    for (size_t i = 0; i < 8; ++i) {
        rondo_tensor_deinit(&m->inputs[i]);
        rondo_tensor_deinit(&m->expected[i]);
    }
    rondo_program_destroy(m->program);
    rondo_program_destroy(m->source);
}

static void expect_same_results(model *m, double tolerance) {
    rondo_tensor outputs[8] = {{0}};
    OK(interpret_program(m->program, m->inputs, outputs));
    for (size_t i = 0; i < m->program->output_count; ++i) {
        double error = compare_tensors(&outputs[i], &m->expected[i]);
        if (!(error <= tolerance)) {
            print_error("output %zu: error %g above %g\n", i, error, tolerance);
        }
        assert_true(error <= tolerance);
        rondo_tensor_deinit(&outputs[i]);
    }
}

static const rondo__pass_options all = {.channels_last = true,
                                        .split_transposed = true,
                                        .widen_images = true,
                                        .fuse_convolution = true,
                                        .fuse_matmul = true,
                                        .fuse_attention = true,
                                        .fuse_group_norm = true,
                                        .fuse_concat = true,
                                        .fuse_elementwise = true};

static void set_element(rondo_tensor *tensor, int64_t i, float value) {
    if (tensor->dtype == RONDO_DTYPE_F16) {
        ((uint16_t *)tensor->data)[i] = rondo_f16_from_float(value);
    } else {
        ((float *)tensor->data)[i] = value;
    }
}

// Specialises and optimises the source for one input of this shape, which it fills.
static void optimise_for(model *m, rondo_dtype dtype, const rondo_shape *shape) {
    OK(rondo_tensor_init(dtype, shape, &m->inputs[0]));
    for (int64_t e = 0; e < rondo_shape_get_count(shape); ++e) {
        set_element(&m->inputs[0], e, (float)(e % 13) / 4.0f - 1.5f);
    }
    const rondo_tensor shapes[1] = {{.dtype = dtype, .shape = *shape}};
    OK(rondo__program_specialise(m->source, shapes, 1 << 20, &m->program, NULL));
    OK(interpret_program(m->program, m->inputs, m->expected));
    OK(rondo__program_simplify(m->program));
    OK(rondo__program_optimise(m->program, &all));
}

TEST(test_program_passes__squeezenet_in_nhwc) {
    model m;
    load_model("examples/models/squeezenet1_1", &m);
    OK(rondo__program_simplify(m.program));
    OK(rondo__program_optimise(m.program, &all));
    assert_int_equal(interpret_count(m.program, RONDO__OP_Conv), 0);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Relu), 0);
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_MaxPool), 3);
    // One transpose at the image; the way back is free because the last pool leaves 1 x 1 images.
    assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose), 1);
    expect_same_results(&m, 1e-5);
    free_model(&m);
}

TEST(test_program_passes__bert_fuses_products_and_gelu) {
    model m;
    load_model("tests/models/bert_mini", &m);
    OK(rondo__program_simplify(m.program));
    OK(rondo__program_optimise(m.program, &all));
    assert_int_equal(interpret_count(m.program, RONDO__OP_MatMul), 0);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Erf), 0);
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_Attention), 2);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Softmax), 0);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose), 0);
    expect_same_results(&m, 1e-5);
    free_model(&m);
}

// Layers as PyTorch writes them: what moves q, k and v between products and attention is gone.
TEST(test_program_passes__transformer_layers) {
    static const struct {
        const char *directory;
        size_t attentions, products, splits, gathers, transposes, adds;
    } rows[] = {
        {"tests/models/vit_mini", 2, 2 * 4 + 1, 0, 3, 1, 1},  // of two images
        {"tests/models/gpt2_mini", 2, 2 * 4 + 1, 0, 1, 0, 1},
        {"tests/models/bert_mini", 2, 2 * 4, 0, 2, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model m;
        load_model(rows[i].directory, &m);
        OK(rondo__program_simplify(m.program));
        OK(rondo__program_join_products(m.program));
        OK(rondo__program_optimise(m.program, &all));
        assert_int_equal(interpret_count(m.program, RONDO__OP_Tanh), 0);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Pow), 0);
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_Attention), rows[i].attentions);
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_MatMul), rows[i].products);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Split), rows[i].splits);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Gather), rows[i].gathers);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose), rows[i].transposes);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Add), rows[i].adds);
        expect_same_results(&m, 1e-5);
        free_model(&m);
    }
}

TEST(test_program_passes__gpt_stays_the_same) {
    model m;
    load_model("tests/models/gpt_mini", &m);
    OK(rondo__program_simplify(m.program));
    OK(rondo__program_optimise(m.program, &all));
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_Attention), 2);
    expect_same_results(&m, 1e-5);
    free_model(&m);
}

TEST(test_program_passes__strings_leave_classifiers) {
    model m;
    load_model("tests/models/flower_trees", &m);
    assert_int_equal(interpret_count(m.program, RONDO__ML_LabelEncoder), 0);
    OK(rondo__program_simplify(m.program));
    OK(rondo__program_optimise(m.program, &all));
    assert_int_equal(interpret_count(m.program, RONDO__ML_TreeEnsembleClassifier), 1);
    assert_int_equal(interpret_count(m.program, RONDO__ML_LabelEncoder), 1);
    for (size_t n = 0; n < m.program->node_count; ++n) {
        const rondo__node *node = &m.program->nodes[n];
        if (rondo__node_is(node, RONDO__ML_TreeEnsembleClassifier)) {
            rondo__tensor_info info;
            rondo__program_get_info(m.program, node->outputs[0], &info);
            assert_int_not_equal(info.dtype, RONDO_DTYPE_STRING);
        }
    }
    expect_same_results(&m, 1e-6);
    free_model(&m);
}

TEST(test_program_passes__known_shapes_fold_to_constants) {
    model m;
    load_model("tests/models/bert_mini", &m);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Shape), 0);
    assert_int_equal(interpret_count(m.program, RONDO__OP_ConstantOfShape), 0);
    for (size_t v = 0; v < m.program->value_count; ++v) {
        rondo_shape shape;
        assert_true(rondo__value_get_shape(&m.program->values[v], &shape));
    }
    free_model(&m);
}

// Between x (f32) and y stand a Cast and a CastLike to f32, which go, and one to f64 and back,
// which stay.
TEST(test_program_passes__casts_to_the_same_type_go) {
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    x.symbol[0] = "n";
    static const struct {
        const char *inputs[2];
        const char *output;
        int64_t to;  // 0: CastLike
    } casts[] = {
        {{"x", NULL}, "a", 1}, {{"a", "x"}, "b", 0}, {{"b", NULL}, "c", 11}, {{"c", NULL}, "y", 1}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &x));
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; ++i) {
        const bool is_like = casts[i].to == 0;
        OK(rondo_builder_add_node(builder, is_like ? "CastLike" : "Cast", casts[i].inputs,
                                  is_like ? 2 : 1, &casts[i].output, 1,
                                  is_like ? NULL : &WITH(ATTRIBUTE_INT("to", casts[i].to))));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    model m = {0};
    m.source = build_finish(builder);
    const rondo_shape shape = {1, {3}};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &m.inputs[0]));
    const rondo_tensor shapes[1] = {{.dtype = RONDO_DTYPE_F32, .shape = shape}};
    OK(rondo__program_specialise(m.source, shapes, 1 << 20, &m.program, NULL));
    OK(interpret_program(m.program, m.inputs, m.expected));
    assert_int_equal(interpret_count(m.program, RONDO__OP_Cast), 3);
    OK(rondo__program_simplify(m.program));
    assert_int_equal(interpret_count(m.program, RONDO__OP_Cast), 2);
    assert_int_equal(interpret_count(m.program, RONDO__OP_CastLike), 0);
    expect_same_results(&m, 0);
    free_model(&m);
}

static void add_drawn(rondo_builder *builder, const char *name, rondo_dtype dtype,
                      const rondo_shape *shape, float first) {
    rondo_tensor tensor;
    OK(rondo_tensor_init(dtype, shape, &tensor));
    for (int64_t i = 0; i < rondo_shape_get_count(shape); ++i) {
        set_element(&tensor, i, i == 0 ? first : (float)((i * 7 + 3) % 11) / 8.0f);
    }
    OK(rondo_builder_add_parameter(builder, name, &tensor, RONDO_PARAMETER_COPIED));
    rondo_tensor_deinit(&tensor);
}

// y = a + conv(relu(norm(a))), a = conv(x): a normalisation that no convolution can take.
static rondo_program *build_pre_activation(rondo_dtype dtype, float scale) {
    enum { CHANNELS = 4, SIZE = 5 };
    static const struct {
        const char *op;
        const char *inputs[5];
        size_t input_count;
        const char *output;
    } nodes[] = {
        {"Conv", {"x", "w"}, 2, "a"},
        {"BatchNormalization", {"a", "scale", "shift", "mean", "var"}, 5, "n"},
        {"Relu", {"n"}, 1, "r"},
        {"Conv", {"r", "w"}, 2, "c"},
        {"Add", {"a", "c"}, 2, "y"},
    };
    const rondo_shape weights = {4, {CHANNELS, CHANNELS, 1, 1}}, list = {1, {CHANNELS}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", dtype, 2, CHANNELS, SIZE, SIZE)));
    add_drawn(builder, "w", dtype, &weights, 0.5f);
    add_drawn(builder, "scale", RONDO_DTYPE_F32, &list, scale);
    add_drawn(builder, "shift", RONDO_DTYPE_F32, &list, -1.0f);
    add_drawn(builder, "mean", RONDO_DTYPE_F32, &list, 0.25f);
    add_drawn(builder, "var", RONDO_DTYPE_F32, &list, 2.0f);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        OK(rondo_builder_add_node(builder, nodes[i].op, nodes[i].inputs, nodes[i].input_count,
                                  &nodes[i].output, 1, NULL));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// y = 0.5 * x * (1 + tanh(root * (x + share * cube))), with x^3 made by a power or by products.
static rondo_program *build_tanh_gelu(bool is_power, float share, const char *last) {
    const struct {
        const char *op;
        const char *inputs[2];
        const char *output;
    } nodes[] = {
        {"Mul", {"x", "x"}, "square"},
        {is_power ? "Pow" : "Mul", {is_power ? "x" : "square", is_power ? "three" : "x"}, "cube"},
        {"Mul", {"share", "cube"}, "term"},
        {"Add", {"term", "x"}, "sum"},
        {"Mul", {"sum", "root"}, "u"},
        {"Tanh", {"u"}, "t"},
        {"Add", {"t", "one"}, "more"},
        {"Mul", {"x", "half"}, "part"},
        {"Mul", {"more", last}, "y"},
    };
    const rondo_shape one = {1, {1}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 9)));
    add_drawn(builder, "three", RONDO_DTYPE_F32, &one, 3.0f);
    add_drawn(builder, "share", RONDO_DTYPE_F32, &one, share);
    add_drawn(builder, "root", RONDO_DTYPE_F32, &one, 0.79788456f);
    add_drawn(builder, "one", RONDO_DTYPE_F32, &one, 1.0f);
    add_drawn(builder, "half", RONDO_DTYPE_F32, &one, 0.5f);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        OK(rondo_builder_add_node(builder, nodes[i].op, nodes[i].inputs,
                                  nodes[i].inputs[1] == NULL ? 1 : 2, &nodes[i].output, 1, NULL));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

TEST(test_program_passes__tanh_gelu_where_it_is_one) {
    static const struct {
        bool is_power;
        float share;
        const char *last;
        bool is_taken;
    } rows[] = {{true, 0.044715f, "part", true},
                {false, 0.044715f, "part", true},
                {true, 0.05f, "part", false},
                {true, 0.044715f, "half", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model m = {.source = build_tanh_gelu(rows[i].is_power, rows[i].share, rows[i].last)};
        const rondo_shape shape = {1, {9}};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &m.inputs[0]));
        for (int64_t e = 0; e < 9; ++e) {
            set_element(&m.inputs[0], e, (float)(e - 4) * 0.75f);
        }
        const rondo_tensor shapes[1] = {{.dtype = RONDO_DTYPE_F32, .shape = shape}};
        OK(rondo__program_specialise(m.source, shapes, 1 << 20, &m.program, NULL));
        OK(interpret_program(m.program, m.inputs, m.expected));
        OK(rondo__program_simplify(m.program));
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_Elementwise),
                         rows[i].is_taken ? 1 : 0);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Tanh), rows[i].is_taken ? 0 : 1);
        expect_same_results(&m, 1e-6);
        free_model(&m);
    }
}

TEST(test_program_passes__norms_before_convolutions_are_element_wise) {
    // What is not finite stays as it is: (x - mean) * inf is not x * inf - mean * inf.
    static const struct {
        rondo_dtype dtype;
        float scale;
        bool is_taken;
        // At the image and the result; two more around what does not follow; in f16 the image's is
        // a part of rondo.SpaceToDepth.
        size_t transposes;
        double tolerance;
    } rows[] = {{RONDO_DTYPE_F32, 1.5f, true, 2, 1e-5},
                {RONDO_DTYPE_F16, 1.5f, true, 1, 1e-2},
                {RONDO_DTYPE_F32, NAN, false, 4, 1e-5}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model m = {.source = build_pre_activation(rows[i].dtype, rows[i].scale)};
        const rondo_shape shape = {4, {2, 4, 5, 5}};
        optimise_for(&m, rows[i].dtype, &shape);
        const size_t left = rows[i].is_taken ? 0 : 1;
        assert_int_equal(interpret_count(m.program, RONDO__OP_BatchNormalization), left);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Relu), left);
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_Elementwise), 1 - left);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose), rows[i].transposes);
        expect_same_results(&m, rows[i].tolerance);
        free_model(&m);
    }
}

// y = reshape(x w) + z; `also` is an output, too.
TEST(test_program_passes__products_take_residuals_through_reshapes) {
    static const struct {
        const char *op;
        const char *inputs[2];
        const char *output;
    } nodes[] = {
        {"MatMul", {"x", "w"}, "p"}, {"Reshape", {"p", "extents"}, "r"}, {"Add", {"z", "r"}, "y"}};
    static const struct {
        const char *also;
        int64_t extents[3];
        size_t adds;
    } rows[] = {{NULL, {2, 3, 6}, 0},
                {"p", {2, 3, 6}, 1},
                {"r", {2, 3, 6}, 1},
                {NULL, {3, 3, 4}, 1}};  // other columns
    const rondo_shape shape = {2, {6, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        int64_t extents[3] = {rows[i].extents[0], rows[i].extents[1], rows[i].extents[2]};
        const rondo_tensor list = {.dtype = RONDO_DTYPE_I64, .shape = {1, {3}}, .data = extents};
        const rondo_shape residual = {3, {extents[0], extents[1], extents[2]}};
        rondo_builder *builder;
        model m = {0};
        OK(rondo_builder_create(NULL, &builder));
        OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 6, 6)));
        add_drawn(builder, "w", RONDO_DTYPE_F32, &shape, 0.5f);
        add_drawn(builder, "z", RONDO_DTYPE_F32, &residual, 0.25f);
        OK(rondo_builder_add_parameter(builder, "extents", &list, RONDO_PARAMETER_COPIED));
        for (size_t n = 0; n < sizeof nodes / sizeof nodes[0]; ++n) {
            OK(rondo_builder_add_node(builder, nodes[n].op, nodes[n].inputs, 2, &nodes[n].output, 1,
                                      NULL));
        }
        OK(rondo_builder_add_output(builder, "y", NULL));
        if (rows[i].also != NULL) {
            OK(rondo_builder_add_output(builder, rows[i].also, NULL));
        }
        OK(rondo_builder_finish(builder, &m.source));
        rondo_builder_destroy(builder);
        optimise_for(&m, RONDO_DTYPE_F32, &shape);
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_MatMul), 1);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Add), rows[i].adds);
        expect_same_results(&m, 1e-6);
        free_model(&m);
    }
}

// y = softmax(x turned(x) / 2 + mask) x over [2, 3, 5, 5], along an axis; `also` is an output, too.
static rondo_program *build_attention(const rondo_shape *mask, int64_t axis, const char *also) {
    static const struct {
        const char *op;
        const char *inputs[2];
        const char *output;
    } nodes[] = {
        {"Transpose", {"x"}, "t"},   {"MatMul", {"x", "t"}, "p"},  {"Mul", {"p", "half"}, "s"},
        {"Add", {"s", "mask"}, "m"}, {"Softmax", {"m"}, "shares"}, {"MatMul", {"shares", "x"}, "o"},
        {"Transpose", {"o"}, "y"},
    };
    int64_t turned[4] = {0, 1, 3, 2}, back[4] = {0, 2, 1, 3};
    const rondo_attribute attributes[] = {ATTRIBUTE_INTS("perm", turned, 4),
                                          ATTRIBUTE_INT("axis", axis),
                                          ATTRIBUTE_INTS("perm", back, 4)};
    const rondo_shape one = {1, {1}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 2, 3, 5, 5)));
    add_drawn(builder, "half", RONDO_DTYPE_F32, &one, 0.5f);
    add_drawn(builder, "mask", RONDO_DTYPE_F32, mask, -INFINITY);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        const int attribute = i == 0 ? 0 : i == 4 ? 1 : i == 6 ? 2 : -1;
        rondo_builder_node_options options =
            WITH_LIST(attribute < 0 ? NULL : &attributes[attribute], attribute < 0 ? 0 : 1);
        OK(rondo_builder_add_node(builder, nodes[i].op, nodes[i].inputs,
                                  nodes[i].inputs[1] == NULL ? 1 : 2, &nodes[i].output, 1,
                                  &options));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    if (also != NULL) {
        OK(rondo_builder_add_output(builder, also, NULL));
    }
    return build_finish(builder);
}

TEST(test_program_passes__attention_where_it_is_one) {
    static const struct {
        rondo_shape mask;
        int64_t axis;
        const char *also;
        size_t attentions;
    } rows[] = {{{4, {2, 3, 5, 5}}, -1, NULL, 1},
                {{4, {2, 1, 1, 5}}, 3, NULL, 1},
                {{1, {5}}, -1, NULL, 1},
                {{1, {1}}, -1, NULL, 1},
                {{1, {5}}, 2, NULL, 0},       // along the queries
                {{1, {5}}, -1, "shares", 0},  // somebody else looks at what lies between
                {{1, {5}}, -1, "s", 0},
                {{1, {5}}, -1, "o", 1}};  // or at the result before it is turned
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model m = {.source = build_attention(&rows[i].mask, rows[i].axis, rows[i].also)};
        const rondo_shape shape = {4, {2, 3, 5, 5}};
        optimise_for(&m, RONDO_DTYPE_F32, &shape);
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_Attention), rows[i].attentions);
        assert_int_equal(interpret_count(m.program, RONDO__OP_Softmax), 1 - rows[i].attentions);
        expect_same_results(&m, 1e-6);
        free_model(&m);
    }
}

// y = conv(concat(resize(a), resize(b))), a and b the halves of conv(x): all in NHWC.
TEST(test_program_passes__splits_and_resizes_keep_nhwc) {
    static const struct {
        const char *op;
        const char *inputs[4];
        size_t input_count;
        const char *outputs[2];
        size_t output_count;
        bool has_axis;
    } nodes[] = {
        {"Conv", {"x", "w"}, 2, {"c"}, 1, false},
        {"Split", {"c"}, 1, {"a", "b"}, 2, true},
        {"Resize", {"a", "roi", "scales"}, 3, {"e"}, 1, false},
        {"Resize", {"b", NULL, NULL, "sizes"}, 4, {"f"}, 1, false},
        {"Concat", {"e", "f"}, 2, {"g"}, 1, true},
        {"Conv", {"g", "w"}, 2, {"y"}, 1, false},
    };
    const rondo_shape weights = {4, {4, 4, 1, 1}}, shape = {4, {2, 4, 3, 5}};
    float scales[4] = {1.0f, 1.0f, 2.0f, 3.0f};
    int64_t sizes[4] = {2, 2, 6, 15};
    const rondo_tensor roi = {.dtype = RONDO_DTYPE_F32, .shape = {1, {0}}};
    const rondo_tensor as_scales = {.dtype = RONDO_DTYPE_F32, .shape = {1, {4}}, .data = scales};
    const rondo_tensor as_sizes = {.dtype = RONDO_DTYPE_I64, .shape = {1, {4}}, .data = sizes};
    model m = {0};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 2, 4, 3, 5)));
    add_drawn(builder, "w", RONDO_DTYPE_F32, &weights, 0.5f);
    OK(rondo_builder_add_parameter(builder, "roi", &roi, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_parameter(builder, "scales", &as_scales, RONDO_PARAMETER_COPIED));
    OK(rondo_builder_add_parameter(builder, "sizes", &as_sizes, RONDO_PARAMETER_COPIED));
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        OK(rondo_builder_add_node(builder, nodes[i].op, nodes[i].inputs, nodes[i].input_count,
                                  nodes[i].outputs, nodes[i].output_count,
                                  nodes[i].has_axis ? &WITH(ATTRIBUTE_INT("axis", 1)) : NULL));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    m.source = build_finish(builder);
    optimise_for(&m, RONDO_DTYPE_F32, &shape);
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_Conv), 2);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose),
                     2);  // at the image and the result
    expect_same_results(&m, 1e-5);
    free_model(&m);
}

// A block as in ConvNeXt, whose middle the model itself has in NHWC: its Transposes go.
TEST(test_program_passes__transposes_of_the_models_own_keep_nhwc) {
    int64_t to_nhwc[4] = {0, 2, 3, 1}, to_nchw[4] = {0, 3, 1, 2};
    const rondo_attribute perms[2] = {ATTRIBUTE_INTS("perm", to_nhwc, 4),
                                      ATTRIBUTE_INTS("perm", to_nchw, 4)};
    static const struct {
        const char *op, *inputs[2], *output;
    } nodes[] = {
        {"Conv", {"x", "w"}, "c"},   {"Transpose", {"c"}, "t"}, {"Softmax", {"t"}, "s"},
        {"MatMul", {"s", "m"}, "p"}, {"Transpose", {"p"}, "u"}, {"Mul", {"u", "scale"}, "v"},
        {"Add", {"v", "c"}, "r"},    {"Conv", {"r", "w"}, "y"},
    };
    const rondo_shape weights = {4, {4, 4, 1, 1}}, matrix = {2, {4, 4}}, scale = {3, {4, 1, 1}};
    const rondo_shape shape = {4, {2, 4, 3, 5}};
    model m = {0};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 2, 4, 3, 5)));
    add_drawn(builder, "w", RONDO_DTYPE_F32, &weights, 0.5f);
    add_drawn(builder, "m", RONDO_DTYPE_F32, &matrix, 0.5f);
    add_drawn(builder, "scale", RONDO_DTYPE_F32, &scale, 0.5f);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        OK(rondo_builder_add_node(
            builder, nodes[i].op, nodes[i].inputs, nodes[i].inputs[1] == NULL ? 1 : 2,
            &nodes[i].output, 1,
            strcmp(nodes[i].op, "Transpose") == 0 ? &WITH(perms[i == 4]) : NULL));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    m.source = build_finish(builder);
    optimise_for(&m, RONDO_DTYPE_F32, &shape);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose),
                     2);  // at the image and the result
    expect_same_results(&m, 1e-5);
    free_model(&m);
}

// Blocks of ConvNeXt: convolution, normalisation, two products, the second with the sum.
TEST(test_program_passes__convnext_is_four_ops_a_block) {
    enum { BLOCKS = 4 };
    model m;
    load_model("tests/models/convnext_mini", &m);
    OK(rondo__program_simplify(m.program));
    OK(rondo__program_optimise(m.program, &all));
    assert_int_equal(interpret_count(m.program, RONDO__OP_Mul), 0);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Add), 0);
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_Elementwise), 0);
    assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose), 1);  // at the image
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_Conv), BLOCKS + 2);
    assert_int_equal(interpret_count(m.program, RONDO__FUSED_MatMul), 2 * BLOCKS + 1);
    expect_same_results(&m, 1e-5);
    free_model(&m);
}

typedef struct transposed_case {
    int64_t kernel[2], strides[2], pads[4], output_padding[2], dilations[2], group;
    bool is_split;
} transposed_case;

// y = shuffle(relu(transposed(conv(x)))), the shuffle with its factors behind the channels.
static rondo_program *build_transposed(const transposed_case *of) {
    const rondo_builder_node_options options[] = {
        {.struct_size = sizeof options[0]},
        WITH(ATTRIBUTE_INTS("strides", of->strides, 2), ATTRIBUTE_INTS("pads", of->pads, 4),
             ATTRIBUTE_INTS("output_padding", of->output_padding, 2),
             ATTRIBUTE_INTS("dilations", of->dilations, 2), ATTRIBUTE_INT("group", of->group)),
        {.struct_size = sizeof options[0]},
        WITH(ATTRIBUTE_INT("blocksize", 2), ATTRIBUTE_TEXT("mode", "CRD"))};
    static const struct {
        const char *op, *inputs[3], *output;
        size_t count;
    } nodes[] = {{"Conv", {"x", "w"}, "c", 2},
                 {"ConvTranspose", {"c", "v", "b"}, "t", 3},
                 {"Relu", {"t"}, "r", 1},
                 {"DepthToSpace", {"r"}, "y", 1}};
    const rondo_shape one = {4, {4, 4, 1, 1}}, bias = {1, {8}};
    const rondo_shape filter = {4, {4, 8 / of->group, of->kernel[0], of->kernel[1]}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 2, 4, 5, 6)));
    add_drawn(builder, "w", RONDO_DTYPE_F32, &one, 0.5f);
    add_drawn(builder, "v", RONDO_DTYPE_F32, &filter, 0.5f);
    add_drawn(builder, "b", RONDO_DTYPE_F32, &bias, 0.5f);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; ++i) {
        OK(rondo_builder_add_node(builder, nodes[i].op, nodes[i].inputs, nodes[i].count,
                                  &nodes[i].output, 1, &options[i]));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

TEST(test_program_passes__transposed_convolutions_split) {
    static const transposed_case rows[] = {
        {{2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}, {1, 1}, 1, true},
        {{4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, {1, 1}, 1, true},
        {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1, true},
        {{4, 2}, {2, 2}, {2, 0, 0, 0}, {0, 0}, {1, 1}, 1, true},
        {{6, 9}, {3, 3}, {1, 3, 2, 3}, {0, 0}, {1, 1}, 1, true},
        {{3, 3}, {2, 2}, {0, 0, 0, 0}, {0, 0}, {1, 1}, 1, false},  // an odd number of outputs
        {{4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, {1, 1}, 2, false},
        {{2, 4}, {1, 2}, {0, 1, 0, 1}, {0, 0}, {1, 1}, 1, false},
        {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {2, 2}, 1, false},
        {{1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 1, true},   // groups without any tap
        {{2, 2}, {8, 8}, {0, 0, 0, 0}, {6, 6}, {1, 1}, 1, false},  // 16 times the work
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model m = {.source = build_transposed(&rows[i])};
        const rondo_shape shape = {4, {2, 4, 5, 6}};
        optimise_for(&m, RONDO_DTYPE_F32, &shape);
        assert_int_equal(interpret_count(m.program, RONDO__OP_ConvTranspose),
                         rows[i].is_split ? 0 : 1);
        assert_int_equal(interpret_count(m.program, RONDO__FUSED_Conv), rows[i].is_split ? 2 : 1);
        if (rows[i].is_split) {  // at the image, the result, and the two that put side by side
            assert_int_equal(interpret_count(m.program, RONDO__OP_DepthToSpace), 0);
            assert_int_equal(interpret_count(m.program, RONDO__OP_Transpose), 4);
        }
        expect_same_results(&m, 1e-5);
        free_model(&m);
    }
}

TEST_MAIN()
