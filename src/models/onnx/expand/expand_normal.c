// onnx/expand/expand_normal.c — normalisations with what optimisers fuse in front of them, and the
// Gelu family.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/expand/expand.h"
#include "rondo/tensor.h"

#define NEW RONDO__VALUE_NONE

// ---- layer normalisation ----------------------------------------------------------------------

// 1 / sqrt(mean of x^2 + epsilon) along the last axis.
static void add_inverse_root(rondo__expander *e, int32_t x, float epsilon, int64_t axis,
                             int32_t result) {
    if (result == RONDO__VALUE_NONE) {
        return;
    }
    if (axis != -1) {
        rondo__expand_refuse(e, "output 1 where axis is not the last");
    }
    const int32_t wide = EXPAND(e, "Cast", NEW, x);
    rondo__expand_set_int(e, "to", 1);  // f32
    const int32_t square = EXPAND(e, "Mul", NEW, wide, wide);
    const int32_t axes = rondo__expand_ints(e, &axis, 1);
    const int32_t mean = EXPAND(e, "ReduceMean", NEW, square, axes);
    const int32_t number = rondo__expand_number(e, epsilon, RONDO__VALUE_NONE);
    const int32_t sum = EXPAND(e, "Add", NEW, mean, number);
    const int32_t root = EXPAND(e, "Sqrt", NEW, sum);
    EXPAND(e, "Reciprocal", result, root);
}

static void expand_simplified(rondo__expander *e) {
    const int32_t x = rondo__expand_in(e, 0);
    const rondo__op *op = rondo__expand_op(e);
    EXPAND(e, "RMSNormalization", rondo__expand_out(e, 0), x, rondo__expand_in(e, 1));
    rondo__expand_copy(e, (const char *const[]){"axis", "epsilon", "stash_type", NULL});
    add_inverse_root(e, x, rondo__op_get_float(op, "epsilon", 1e-5f),
                     rondo__op_get_int(op, "axis", -1), rondo__expand_out(e, 1));
}

static void expand_layer(rondo__expander *e) {
    const int32_t inputs[] = {rondo__expand_in(e, 0), rondo__expand_in(e, 1),
                              rondo__expand_in(e, 2)};
    const int32_t outputs[] = {rondo__expand_out(e, 0), rondo__expand_out(e, 1),
                               rondo__expand_out(e, 2)};
    const size_t count = outputs[2] >= 0 ? 3 : outputs[1] >= 0 ? 2 : 1;
    rondo__expand_node_of(e, "LayerNormalization", inputs, 3, outputs, count);
    rondo__expand_copy(e, (const char *const[]){"axis", "epsilon", "stash_type", NULL});
}

// The sum of the inputs in front, which may be an output of its own.
static int32_t add_sum(rondo__expander *e, int32_t a, int32_t b, int32_t bias, int32_t result) {
    if (bias == RONDO__VALUE_NONE) {
        return EXPAND(e, "Add", result, a, b);
    }
    const int32_t sum = EXPAND(e, "Add", NEW, a, b);
    return EXPAND(e, "Add", result, sum, bias);
}

static void expand_skip_layer(rondo__expander *e) {
    const float epsilon = rondo__op_get_float(rondo__expand_op(e), "epsilon", 1e-12f);
    const int32_t sum = add_sum(e, rondo__expand_in(e, 0), rondo__expand_in(e, 1),
                                rondo__expand_in(e, 4), rondo__expand_out(e, 3));
    const int32_t inputs[] = {sum, rondo__expand_in(e, 2), rondo__expand_in(e, 3)};
    const int32_t outputs[] = {rondo__expand_out(e, 0), rondo__expand_out(e, 1),
                               rondo__expand_out(e, 2)};
    const size_t count = outputs[2] >= 0 ? 3 : outputs[1] >= 0 ? 2 : 1;
    rondo__expand_node_of(e, "LayerNormalization", inputs, 3, outputs, count);
    rondo__expand_set_float(e, "epsilon", epsilon);
}

static void expand_skip_simplified(rondo__expander *e) {
    const float epsilon = rondo__op_get_float(rondo__expand_op(e), "epsilon", 1e-12f);
    const int32_t sum = add_sum(e, rondo__expand_in(e, 0), rondo__expand_in(e, 1),
                                rondo__expand_in(e, 3), rondo__expand_out(e, 3));
    EXPAND(e, "RMSNormalization", rondo__expand_out(e, 0), sum, rondo__expand_in(e, 2));
    rondo__expand_set_float(e, "epsilon", epsilon);
    add_inverse_root(e, sum, epsilon, -1, rondo__expand_out(e, 2));
}

// ---- embeddings -------------------------------------------------------------------------------

// The rows of positions that the ids name; those of 0, 1, ... where there are none.
static int32_t add_positions(rondo__expander *e, int32_t ids, int32_t table, int32_t positions) {
    static const int64_t zero = 0;
    if (positions != RONDO__VALUE_NONE) {
        return EXPAND(e, "Gather", NEW, table, positions);
    }
    const int32_t length = EXPAND(e, "Shape", NEW, ids);
    rondo__expand_set_int(e, "start", 1);
    rondo__expand_set_int(e, "end", 2);
    const int32_t start = rondo__expand_ints(e, &zero, 1);
    return EXPAND(e, "Slice", NEW, table, start, length, start);
}

// How many ids of each row the mask keeps; 0 without a mask.
static void add_mask_index(rondo__expander *e, int32_t ids, int32_t mask, int32_t result) {
    static const int64_t one = 1;
    if (result == RONDO__VALUE_NONE) {
        return;
    }
    if (mask != RONDO__VALUE_NONE) {
        const int32_t axes = rondo__expand_ints(e, &one, 1);
        const int32_t sum = EXPAND(e, "ReduceSum", NEW, mask, axes);
        rondo__expand_set_int(e, "keepdims", 0);
        EXPAND(e, "Cast", result, sum);
        rondo__expand_set_int(e, "to", 6);  // i32
        return;
    }
    const int32_t rows = EXPAND(e, "Shape", NEW, ids);
    rondo__expand_set_int(e, "end", 1);
    const int32_t zeros = EXPAND(e, "ConstantOfShape", NEW, rows);
    EXPAND(e, "Cast", result, zeros);
    rondo__expand_set_int(e, "to", 6);
}

static void expand_embed(rondo__expander *e) {
    const rondo__op *op = rondo__expand_op(e);
    const int32_t ids = rondo__expand_in(e, 0), segments = rondo__expand_in(e, 1);
    const int32_t words = EXPAND(e, "Gather", NEW, rondo__expand_in(e, 2), ids);
    const int32_t places = add_positions(e, ids, rondo__expand_in(e, 3), rondo__expand_in(e, 8));
    const bool has_segments = segments >= 0 && rondo__expand_in(e, 4) >= 0;
    const int32_t segment =
        has_segments ? EXPAND(e, "Gather", NEW, rondo__expand_in(e, 4), segments) : NEW;
    const int32_t sum = add_sum(e, words, places, segment, rondo__expand_out(e, 2));
    EXPAND(e, "LayerNormalization", rondo__expand_out(e, 0), sum, rondo__expand_in(e, 5),
           rondo__expand_in(e, 6));
    rondo__expand_set_float(e, "epsilon", rondo__op_get_float(op, "epsilon", 1e-12f));
    add_mask_index(e, ids, rondo__expand_in(e, 7), rondo__expand_out(e, 1));
}

// ---- group normalisation ----------------------------------------------------------------------

// x of [N, H, W, C], or with channels first.
static void add_group_norm(rondo__expander *e, int32_t x) {
    const rondo__op *op = rondo__expand_op(e);
    const bool is_last = rondo__op_get_int(op, "channels_last", 1) != 0;
    const bool is_active = rondo__op_get_int(op, "activation", 0) != 0;
    const int32_t result = rondo__expand_out(e, 0);
    // Statistics and scales are in f32 whatever x is.
    const int32_t scale = EXPAND(e, "CastLike", NEW, rondo__expand_in(e, 1), x);
    const int32_t shift = EXPAND(e, "CastLike", NEW, rondo__expand_in(e, 2), x);
    const int32_t image = is_last ? rondo__expand_channels_first(e, x, NEW) : x;
    int32_t y =
        EXPAND(e, "GroupNormalization", is_last || is_active ? NEW : result, image, scale, shift);
    rondo__expand_set_int(e, "num_groups", rondo__op_get_int(op, "groups", 1));
    rondo__expand_set_float(e, "epsilon", rondo__op_get_float(op, "epsilon", 1e-5f));
    if (is_active) {
        const int32_t gate = EXPAND(e, "Sigmoid", NEW, y);
        y = EXPAND(e, "Mul", is_last ? NEW : result, y, gate);
    }
    if (is_last) {
        (void)rondo__expand_channels_last(e, y, result);
    }
}

static void expand_group(rondo__expander *e) {
    add_group_norm(e, rondo__expand_in(e, 0));
}

static void expand_skip_group(rondo__expander *e) {
    static const int64_t axes[] = {1, 2};
    int32_t skip = rondo__expand_in(e, 3);
    if (rondo__expand_get_rank(e, skip) == 2) {  // [N, C]: the same for all pixels
        skip = EXPAND(e, "Unsqueeze", NEW, skip, rondo__expand_ints(e, axes, 2));
    }
    if (rondo__op_get_int(rondo__expand_op(e), "channels_last", 1) == 0) {
        rondo__expand_refuse(e, "attribute channels_last = 0");
    }
    add_group_norm(e, add_sum(e, rondo__expand_in(e, 0), skip, rondo__expand_in(e, 4),
                              rondo__expand_out(e, 1)));
}

// ---- the Gelu family --------------------------------------------------------------------------

static void expand_gelu(rondo__expander *e) {
    EXPAND(e, "Gelu", rondo__expand_out(e, 0), rondo__expand_in(e, 0));
}

static void expand_bias_gelu(rondo__expander *e) {
    const int32_t sum = EXPAND(e, "Add", NEW, rondo__expand_in(e, 0), rondo__expand_in(e, 1));
    EXPAND(e, "Gelu", rondo__expand_out(e, 0), sum);
}

static void expand_fast_gelu(rondo__expander *e) {
    const int32_t sum = rondo__expand_add(e, rondo__expand_in(e, 0), rondo__expand_in(e, 1));
    EXPAND(e, "Gelu", rondo__expand_out(e, 0), sum);
    rondo__expand_set_text(e, "approximate", "tanh");
}

static void expand_gemm_fast_gelu(rondo__expander *e) {
    const int32_t product =
        EXPAND(e, "MatMul", NEW, rondo__expand_in(e, 0), rondo__expand_in(e, 1));
    EXPAND(e, "Gelu", rondo__expand_out(e, 0),
           rondo__expand_add(e, product, rondo__expand_in(e, 2)));
    rondo__expand_set_text(e, "approximate", "tanh");
}

static void expand_quick_gelu(rondo__expander *e) {
    const int32_t x = rondo__expand_in(e, 0);
    const float alpha = rondo__op_get_float(rondo__expand_op(e), "alpha", 1.702f);
    const int32_t scaled =
        alpha == 1.0f ? x : EXPAND(e, "Mul", NEW, x, rondo__expand_number(e, alpha, x));
    const int32_t gate = EXPAND(e, "Sigmoid", NEW, scaled);
    EXPAND(e, "Mul", rondo__expand_out(e, 0), x, gate);
}

static void expand_bias_split_gelu(rondo__expander *e) {
    const int32_t sum = EXPAND(e, "Add", NEW, rondo__expand_in(e, 0), rondo__expand_in(e, 1));
    const int32_t halves[] = {rondo__expand_value(e, "left"), rondo__expand_value(e, "right")};
    rondo__expand_node_of(e, "Split", &sum, 1, halves, 2);
    rondo__expand_set_int(e, "axis", -1);
    rondo__expand_set_int(e, "num_outputs", 2);
    const int32_t gate = EXPAND(e, "Gelu", NEW, halves[1]);
    EXPAND(e, "Mul", rondo__expand_out(e, 0), halves[0], gate);
}

// ---- biases -----------------------------------------------------------------------------------

static void expand_bias_add(rondo__expander *e) {
    (void)add_sum(e, rondo__expand_in(e, 0), rondo__expand_in(e, 1), rondo__expand_in(e, 2),
                  rondo__expand_out(e, 0));
}

// All axes from `axis` on are one row, as before version 13.
static void expand_bias_softmax(rondo__expander *e) {
    const int32_t sum = EXPAND(e, "Add", NEW, rondo__expand_in(e, 0), rondo__expand_in(e, 1));
    e->opset = 12;
    EXPAND(e, "Softmax", rondo__expand_out(e, 0), sum);
    rondo__expand_set_int(e, "axis", rondo__op_get_int(rondo__expand_op(e), "axis", 1));
}

static void expand_bias_dropout(rondo__expander *e) {
    (void)add_sum(e, rondo__expand_in(e, 0), rondo__expand_in(e, 1), rondo__expand_in(e, 2),
                  rondo__expand_out(e, 0));
    if (rondo__expand_in(e, 4) >= 0) {
        rondo__expand_refuse(e, "input training_mode");
    }
    if (rondo__expand_out(e, 1) >= 0) {
        rondo__expand_refuse(e, "output mask");
    }
}

static const char *const no_attributes[] = {NULL};
static const char *const layer_attributes[] = {"axis", "epsilon", "stash_type", NULL};
static const char *const epsilon_attributes[] = {"epsilon", NULL};
static const char *const embed_attributes[] = {"epsilon", "mask_index_type", NULL};
static const char *const group_attributes[] = {"activation", "channels_last", "epsilon", "groups",
                                               NULL};
static const char *const alpha_attributes[] = {"alpha", NULL};
static const char *const softmax_attributes[] = {"axis", "is_inner_broadcast", NULL};
static const char *const seed_attributes[] = {"seed", NULL};

// onnxruntime's own ops in the standard's domain, under any of its versions.
#define STANDARD(op_name, last, inputs, outputs, function) \
    {                                                      \
        .def = {.domain = "",                              \
                .name = (op_name),                         \
                .opset_min = 1,                            \
                .opset_max = (last),                       \
                .input_min = 2,                            \
                .input_max = (inputs),                     \
                .output_min = 1,                           \
                .output_max = (outputs),                   \
                .attributes = layer_attributes},           \
        .expand = (function)                               \
    }

const rondo__expansion rondo__expansions_normal[] = {
    STANDARD("SimplifiedLayerNormalization", RONDO_OP_OPSET_MAX, 2, 2, expand_simplified),
    STANDARD("LayerNormalization", 16, 3, 3, expand_layer),
    RONDO_EXPANSION("SkipLayerNormalization", 3, 5, 1, 4, epsilon_attributes, expand_skip_layer),
    RONDO_EXPANSION("SkipSimplifiedLayerNormalization", 3, 4, 1, 4, epsilon_attributes,
                    expand_skip_simplified),
    RONDO_EXPANSION("EmbedLayerNormalization", 7, 9, 1, 3, embed_attributes, expand_embed),
    RONDO_EXPANSION("GroupNorm", 3, 3, 1, 1, group_attributes, expand_group),
    RONDO_EXPANSION("SkipGroupNorm", 4, 5, 1, 2, group_attributes, expand_skip_group),
    RONDO_EXPANSION("Gelu", 1, 1, 1, 1, no_attributes, expand_gelu),
    RONDO_EXPANSION("BiasGelu", 2, 2, 1, 1, no_attributes, expand_bias_gelu),
    RONDO_EXPANSION("FastGelu", 1, 2, 1, 1, no_attributes, expand_fast_gelu),
    RONDO_EXPANSION("GemmFastGelu", 2, 3, 1, 1, no_attributes, expand_gemm_fast_gelu),
    RONDO_EXPANSION("QuickGelu", 1, 1, 1, 1, alpha_attributes, expand_quick_gelu),
    RONDO_EXPANSION("BiasSplitGelu", 2, 2, 1, 1, no_attributes, expand_bias_split_gelu),
    RONDO_EXPANSION("BiasAdd", 3, 3, 1, 1, no_attributes, expand_bias_add),
    RONDO_EXPANSION("BiasSoftmax", 2, 2, 1, 1, softmax_attributes, expand_bias_softmax),
    RONDO_EXPANSION("BiasDropout", 2, 5, 1, 2, seed_attributes, expand_bias_dropout),
    {.def = {.name = NULL}},
};
