// bench/models/train_nets.h — the nets of train_steps.c, with random weights, up to their loss. The
// same as torch_train_steps.py has:
//
//   mlp        784-512-512-10 on 128 rows
//   cnn        two blocks of 32 and 64 channels on 64 x 1 x 28 x 28
//   resnet18   32 x 3 x 224 x 224
//   gpt2       124M parameters, 4 x 256 tokens
//   embed      a table of rows x 150, one row looked up and normalised
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"

typedef struct net {
    rondo_builder *b;
    rondo_shape x;        // what is fed as "x"
    rondo_dtype x_dtype;  // F32, or I64: tokens below `words`
    rondo_shape y;        // what is fed as "y"
    rondo_dtype y_dtype;  // I64: classes below `classes`, or F32
    int64_t words, classes;
} net;

static inline void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s\n", rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

static uint32_t fill_seed = 1;

static inline void fill(float *values, int64_t count, float range) {
    for (int64_t i = 0; i < count; ++i) {
        fill_seed = fill_seed * 1664525u + 1013904223u;
        values[i] = ((float)(fill_seed >> 8) / 16777216.0f - 0.5f) * 2.0f * range;
    }
}

#define SHAPE(rank_, ...) ((rondo_shape){.rank = (rank_), .extent = {__VA_ARGS__}})
#define INPUTS(...) \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

// "block3.up", say; kept until the program ends.
__attribute__((format(printf, 1, 2))) static inline const char *name_of(const char *format, ...) {
    static char names[1 << 16];
    static size_t used;
    va_list list;
    va_start(list, format);
    char *name = names + used;
    const int length = vsnprintf(name, sizeof names - used, format, list);
    va_end(list);
    if (length < 0 || used + (size_t)length + 1 > sizeof names) {
        exit(EXIT_FAILURE);
    }
    used += (size_t)length + 1;
    return name;
}

// ---- nodes --------------------------------------------------------------------------------------

static inline void add_weights(net *n, const char *name, rondo_shape shape, float range,
                               float middle) {
    const int64_t count = rondo_shape_get_count(&shape);
    float *values = malloc((size_t)count * sizeof *values);
    if (values == NULL) {
        exit(EXIT_FAILURE);
    }
    fill(values, count, range);
    for (int64_t i = 0; i < count; ++i) {
        values[i] += middle;
    }
    check(rondo_builder_add_constant(n->b, name, RONDO_DTYPE_F32, &shape, values));
    free(values);
}

static inline void add_ints(net *n, const char *name, const int64_t *values, int64_t count) {
    check(rondo_builder_add_constant(n->b, name, RONDO_DTYPE_I64, &SHAPE(1, count), values));
}

static inline void add(net *n, const char *op, const char *const *inputs, size_t count,
                       const char *output, const rondo_attribute *attributes,
                       size_t attribute_count) {
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = attributes,
                                                .attribute_count = attribute_count};
    check(rondo_builder_add_node(n->b, op, inputs, count, &output, 1, &options));
}

static inline void add_input(net *n, const char *name, rondo_dtype dtype, rondo_shape shape) {
    rondo_port port = {
        .struct_size = sizeof port, .name = name, .dtype = dtype, .rank = shape.rank};
    memcpy(port.extent, shape.extent, sizeof port.extent);
    check(rondo_builder_add_input(n->b, &port));
}

static inline rondo_attribute int_of(const char *name, int64_t value) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INT, .int_value = value};
}

static inline rondo_attribute ints_of(const char *name, const int64_t *values, size_t count) {
    return (rondo_attribute){
        .name = name, .kind = RONDO_ATTRIBUTE_INTS, .ints = values, .count = count};
}

// Weights "NAME.w" and "NAME.b", the output NAME.
static inline const char *add_linear(net *n, const char *x, const char *name, int64_t from,
                                     int64_t to) {
    const char *w = name_of("%s.w", name);
    const char *bias = name_of("%s.b", name);
    add_weights(n, w, SHAPE(2, from, to), 0.05f, 0.0f);
    add_weights(n, bias, SHAPE(1, to), 0.05f, 0.0f);
    add(n, "Gemm", INPUTS(x, w, bias), name, NULL, 0);
    return name;
}

static inline const char *add_one(net *n, const char *op, const char *x, const char *name) {
    add(n, op, INPUTS(x), name, NULL, 0);
    return name;
}

static inline const char *add_norm(net *n, const char *x, const char *name, int64_t channels) {
    const char *parts[4];
    for (int i = 0; i < 4; ++i) {
        parts[i] = name_of("%s.%d", name, i);
        const bool is_one = i == 0 || i == 3;
        add_weights(n, parts[i], SHAPE(1, channels), 0.05f, is_one ? 1.0f : 0.0f);
    }
    add(n, "BatchNormalization", INPUTS(x, parts[0], parts[1], parts[2], parts[3]), name, NULL, 0);
    return name;
}

typedef struct conv_form {
    int64_t from, to, side, stride, pad;
    bool has_bias;
} conv_form;

static inline const char *add_conv(net *n, const char *x, const char *name, const conv_form *f) {
    const int64_t pads[] = {f->pad, f->pad, f->pad, f->pad};
    const int64_t strides[] = {f->stride, f->stride};
    const rondo_attribute attributes[] = {ints_of("pads", pads, 4), ints_of("strides", strides, 2)};
    const char *w = name_of("%s.w", name);
    const char *bias = f->has_bias ? name_of("%s.b", name) : NULL;
    const float range = 1.0f / (float)(f->from * f->side);
    add_weights(n, w, SHAPE(4, f->to, f->from, f->side, f->side), range, 0.0f);
    if (f->has_bias) {
        add_weights(n, bias, SHAPE(1, f->to), 0.05f, 0.0f);
    }
    const char *const inputs[] = {x, w, bias};
    add(n, "Conv", inputs, f->has_bias ? 3 : 2, name, attributes, 2);
    return name;
}

static inline const char *add_pool(net *n, const char *x, const char *name, int64_t side,
                                   int64_t pad) {
    const int64_t sides[] = {side, side};
    const int64_t strides[] = {2, 2};
    const int64_t pads[] = {pad, pad, pad, pad};
    const rondo_attribute attributes[] = {ints_of("kernel_shape", sides, 2),
                                          ints_of("strides", strides, 2), ints_of("pads", pads, 4)};
    add(n, "MaxPool", INPUTS(x), name, attributes, 3);
    return name;
}

static inline void add_cross_entropy(net *n, const char *scores, int64_t rows, int64_t classes) {
    n->y = SHAPE(1, rows);
    n->y_dtype = RONDO_DTYPE_I64;
    n->classes = classes;
    add_input(n, "y", n->y_dtype, n->y);
    add(n, "SoftmaxCrossEntropyLoss", INPUTS(scores, "y"), "loss", NULL, 0);
}

// ---- nets ---------------------------------------------------------------------------------------

static inline void build_mlp(net *n) {
    n->x = SHAPE(2, 128, 784);
    add_input(n, "x", n->x_dtype, n->x);
    const char *h = add_one(n, "Relu", add_linear(n, "x", "l1", 784, 512), "r1");
    h = add_one(n, "Relu", add_linear(n, h, "l2", 512, 512), "r2");
    add_cross_entropy(n, add_linear(n, h, "l3", 512, 10), 128, 10);
}

static inline void build_cnn(net *n) {
    static const float tenth = 0.1f;
    n->x = SHAPE(4, 64, 1, 28, 28);
    add_input(n, "x", n->x_dtype, n->x);
    const char *h = "x";
    for (int i = 0; i < 2; ++i) {
        const conv_form form = {i == 0 ? 1 : 32, i == 0 ? 32 : 64, 3, 1, 1, true};
        h = add_conv(n, h, name_of("c%d", i), &form);
        h = add_norm(n, h, name_of("n%d", i), form.to);
        h = add_pool(n, add_one(n, "Relu", h, name_of("r%d", i)), name_of("p%d", i), 2, 0);
    }
    h = add_one(n, "Flatten", h, "f");
    check(rondo_builder_add_constant(n->b, "ratio", RONDO_DTYPE_F32, &SHAPE(0, 0), &tenth));
    add(n, "Dropout", INPUTS(h, "ratio"), "d", NULL, 0);
    add_cross_entropy(n, add_linear(n, "d", "scores", 3136, 10), 64, 10);
}

static inline const char *add_residual(net *n, const char *x, const char *name, int64_t from,
                                       int64_t to) {
    const int64_t stride = from == to ? 1 : 2;
    const char *h = add_conv(n, x, name_of("%s.c1", name), &(conv_form){from, to, 3, stride, 1, 0});
    h = add_one(n, "Relu", add_norm(n, h, name_of("%s.n1", name), to), name_of("%s.r1", name));
    h = add_conv(n, h, name_of("%s.c2", name), &(conv_form){to, to, 3, 1, 1, 0});
    h = add_norm(n, h, name_of("%s.n2", name), to);
    const char *aside = x;
    if (from != to) {
        aside = add_conv(n, x, name_of("%s.c3", name), &(conv_form){from, to, 1, 2, 0, 0});
        aside = add_norm(n, aside, name_of("%s.n3", name), to);
    }
    add(n, "Add", INPUTS(h, aside), name_of("%s.sum", name), NULL, 0);
    return add_one(n, "Relu", name_of("%s.sum", name), name);
}

static inline void build_resnet18(net *n) {
    static const int64_t widths[] = {64, 64, 128, 256, 512};
    n->x = SHAPE(4, 32, 3, 224, 224);
    add_input(n, "x", n->x_dtype, n->x);
    const char *h = add_conv(n, "x", "c", &(conv_form){3, 64, 7, 2, 3, 0});
    h = add_pool(n, add_one(n, "Relu", add_norm(n, h, "n", 64), "r"), "p", 3, 1);
    for (int stage = 1; stage <= 4; ++stage) {
        h = add_residual(n, h, name_of("s%d.a", stage), widths[stage - 1], widths[stage]);
        h = add_residual(n, h, name_of("s%d.b", stage), widths[stage], widths[stage]);
    }
    h = add_one(n, "Flatten", add_one(n, "GlobalAveragePool", h, "mean"), "f");
    add_cross_entropy(n, add_linear(n, h, "scores", 512, 1000), 32, 1000);
}

enum {
    WIDTH = 768,
    HEADS = 12,
    LAYERS = 12,
    WORDS = 50257,
    PLACES = 1024,
    BATCH = 4,
    TOKENS = 256
};

static inline const char *add_layer_norm(net *n, const char *x, const char *name) {
    const char *scale = name_of("%s.scale", name);
    const char *shift = name_of("%s.shift", name);
    add_weights(n, scale, SHAPE(1, WIDTH), 0.05f, 1.0f);
    add_weights(n, shift, SHAPE(1, WIDTH), 0.05f, 0.0f);
    add(n, "LayerNormalization", INPUTS(x, scale, shift), name, NULL, 0);
    return name;
}

static inline const char *add_sum(net *n, const char *a, const char *b, const char *name) {
    add(n, "Add", INPUTS(a, b), name, NULL, 0);
    return name;
}

// Rows of WIDTH in and out; heads are seen by Attention alone.
static inline const char *add_attention(net *n, const char *x, int i) {
    const rondo_attribute parts[] = {int_of("axis", 2), int_of("num_outputs", 3)};
    const rondo_attribute heads[] = {int_of("q_num_heads", HEADS), int_of("kv_num_heads", HEADS),
                                     int_of("is_causal", 1)};
    const rondo_builder_node_options split = {
        .struct_size = sizeof split, .attributes = parts, .attribute_count = 2};
    const char *all = add_linear(n, x, name_of("qkv%d", i), WIDTH, 3L * WIDTH);
    const char *batches = name_of("qkv%d.3d", i);
    const char *const qkv[] = {name_of("q%d", i), name_of("k%d", i), name_of("v%d", i)};
    add(n, "Reshape", INPUTS(all, "batches"), batches, NULL, 0);
    check(rondo_builder_add_node(n->b, "Split", &batches, 1, qkv, 3, &split));
    add(n, "Attention", qkv, 3, name_of("mixed%d", i), heads, 3);
    add(n, "Reshape", INPUTS(name_of("mixed%d", i), "rows"), name_of("mixed%d.2d", i), NULL, 0);
    return add_linear(n, name_of("mixed%d.2d", i), name_of("out%d", i), WIDTH, WIDTH);
}

static inline const char *add_gpt2_layer(net *n, const char *x, int i) {
    const rondo_attribute tanh = {
        .name = "approximate", .kind = RONDO_ATTRIBUTE_STRING, .string_value = "tanh"};
    const char *h = add_attention(n, add_layer_norm(n, x, name_of("norm%d.1", i)), i);
    x = add_sum(n, x, h, name_of("sum%d.1", i));
    h = add_layer_norm(n, x, name_of("norm%d.2", i));
    h = add_linear(n, h, name_of("up%d", i), WIDTH, 4L * WIDTH);
    add(n, "Gelu", INPUTS(h), name_of("gelu%d", i), &tanh, 1);
    h = add_linear(n, name_of("gelu%d", i), name_of("down%d", i), 4L * WIDTH, WIDTH);
    return add_sum(n, x, h, name_of("sum%d.2", i));
}

static inline void build_gpt2(net *n) {
    n->x = SHAPE(2, BATCH, TOKENS);
    n->x_dtype = RONDO_DTYPE_I64;
    n->words = WORDS;
    add_input(n, "x", n->x_dtype, n->x);
    add_weights(n, "words", SHAPE(2, WORDS, WIDTH), 0.03f, 0.0f);
    add_weights(n, "places", SHAPE(2, PLACES, WIDTH), 0.03f, 0.0f);
    add_ints(n, "rows", (const int64_t[]){-1, WIDTH}, 2);
    add_ints(n, "batches", (const int64_t[]){BATCH, TOKENS, 3L * WIDTH}, 3);
    add(n, "Gather", INPUTS("words", "x"), "looked", NULL, 0);
    check(rondo_builder_add_slice(n->b, "places", (const int64_t[]){0}, (const int64_t[]){0},
                                  (const int64_t[]){TOKENS}, (const int64_t[]){1}, 1, "placed"));
    add(n, "Reshape", INPUTS(add_sum(n, "looked", "placed", "start"), "rows"), "h", NULL, 0);
    const char *h = "h";
    for (int i = 0; i < LAYERS; ++i) {
        h = add_gpt2_layer(n, h, i);
    }
    h = add_layer_norm(n, h, "last");
    const rondo_attribute turned = int_of("transB", 1);
    add(n, "Gemm", INPUTS(h, "words"), "scores", &turned, 1);
    add_cross_entropy(n, "scores", (int64_t)BATCH * TOKENS, WORDS);
}

// `place`: where the table lies and its rows are changed; NULL: on the device.
static inline void build_embed(net *n, int64_t rows, const char *place) {
    const rondo_start start = {.struct_size = sizeof start, .kind = RONDO_START_NORMAL, .b = 0.1};
    const rondo_port table = {.struct_size = sizeof table,
                              .name = "table",
                              .dtype = RONDO_DTYPE_F32,
                              .rank = 2,
                              .extent = {rows, 150}};
    n->x = SHAPE(1, 1);
    n->x_dtype = RONDO_DTYPE_I64;
    n->words = rows;
    n->y = SHAPE(2, 1, 150);
    n->y_dtype = RONDO_DTYPE_F32;
    check(rondo_builder_add_variable(n->b, &table, &start));
    add_input(n, "x", n->x_dtype, n->x);
    add_input(n, "y", n->y_dtype, n->y);
    if (place != NULL) {
        check(rondo_builder_begin_place(n->b, place));
    }
    check(rondo_builder_add_embedding(n->b, "x", "table", "row"));
    if (place != NULL) {
        check(rondo_builder_end_place(n->b));
    }
    check(rondo_builder_add_l2_normalize(n->b, "row", 1, 1e-12f, "unit"));
    check(rondo_builder_add_square_error_cost(n->b, "unit", "y", "cost"));
    check(rondo_builder_add_mean(n->b, "cost", "loss"));
}
