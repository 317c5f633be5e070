// A small GPT-2: words and places looked up, layers of causal attention and a gelu between norms,
// and the table of words again as the last product. It learns sentences that the example makes,
// letter by letter, and then writes some of its own.
//
// The whole step is one program: forward, backward, clipping, AdamW with a warm-up and a cosine.
// Ends well when the loss is below a third of what the letters' frequencies alone would give.
//
//   train_gpt2 [DEVICE] [STEPS]
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/models.h>

enum {
    WIDTH = 32,
    HEADS = 2,
    LAYERS = 2,
    LETTERS = 27,
    TOKENS = 32,
    BATCH = 8,
    WRITTEN = 60,
    NAMES_MAX = 128
};

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s\n", rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

// ---- text: letters, of which 0 is a space -------------------------------------------------------

static uint32_t g_seed = 1;

static float draw(void) {
    g_seed = g_seed * 1664525u + 1013904223u;
    return (float)(g_seed >> 8) / 16777216.0f;
}

static size_t append_word(int64_t *text, size_t count, size_t room) {
    static const char *const words[] = {"a", "bird", "sees", "the", "cat", "and", "finds", "dogs"};
    const char *word = words[(size_t)(draw() * 8.0f)];
    for (; *word != '\0' && count < room; ++word) {
        text[count++] = *word - 'a' + 1;
    }
    if (count < room) {
        text[count++] = 0;
    }
    return count;
}

// Text in `x`, and of each letter the next one in `y`.
static void write_text(int64_t *x, int64_t *y) {
    int64_t text[TOKENS + 1];
    for (int b = 0; b < BATCH; ++b) {
        size_t count = 0;
        while (count < TOKENS + 1) {
            count = append_word(text, count, TOKENS + 1);
        }
        memcpy(x + b * TOKENS, text, TOKENS * sizeof *text);
        memcpy(y + b * TOKENS, text + 1, TOKENS * sizeof *text);
    }
}

// ---- the model ----------------------------------------------------------------------------------

typedef struct model {
    rondo_builder *b;
    char names[NAMES_MAX][16];
    int name_count;
} model;

static const char *new_name(model *m) {
    if (m->name_count == NAMES_MAX) {
        exit(EXIT_FAILURE);
    }
    char *name = m->names[m->name_count];
    (void)snprintf(name, sizeof m->names[0], "v%d", m->name_count++);
    return name;
}

static const char *add_weights(model *m, rondo_shape shape, float range, float middle) {
    const char *name = new_name(m);
    rondo_tensor values;
    check(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &values));
    for (int64_t i = 0; i < rondo_shape_get_count(&shape); ++i) {
        ((float *)values.data)[i] = middle + (draw() - 0.5f) * 2.0f * range;
    }
    check(rondo_builder_add_constant(m->b, name, RONDO_DTYPE_F32, &shape, values.data));
    rondo_tensor_deinit(&values);
    return name;
}

static const char *add(model *m, const char *op, const char *const *inputs, size_t count,
                       const rondo_attribute *attributes, size_t attribute_count) {
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = attributes,
                                                .attribute_count = attribute_count};
    const char *output = new_name(m);
    check(rondo_builder_add_node(m->b, op, inputs, count, &output, 1, &options));
    return output;
}
#define INPUTS(...) \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static const char *add_linear(model *m, const char *x, int64_t from, int64_t to) {
    const char *w = add_weights(m, (rondo_shape){2, {from, to}}, 0.15f, 0.0f);
    const char *bias = add_weights(m, (rondo_shape){1, {to}}, 0.0f, 0.0f);
    return add(m, "Gemm", INPUTS(x, w, bias), NULL, 0);
}

static const char *add_norm(model *m, const char *x) {
    const char *scale = add_weights(m, (rondo_shape){1, {WIDTH}}, 0.0f, 1.0f);
    const char *shift = add_weights(m, (rondo_shape){1, {WIDTH}}, 0.0f, 0.0f);
    return add(m, "LayerNormalization", INPUTS(x, scale, shift), NULL, 0);
}

// Rows of WIDTH in and out; only Attention knows which rows belong to one text.
static const char *add_attention(model *m, const char *x) {
    const rondo_attribute heads[] = {
        {.name = "q_num_heads", .kind = RONDO_ATTRIBUTE_INT, .int_value = HEADS},
        {.name = "kv_num_heads", .kind = RONDO_ATTRIBUTE_INT, .int_value = HEADS},
        {.name = "is_causal", .kind = RONDO_ATTRIBUTE_INT, .int_value = 1}};
    const char *parts[3];
    for (int i = 0; i < 3; ++i) {
        parts[i] = add(m, "Reshape", INPUTS(add_linear(m, x, WIDTH, WIDTH), "texts"), NULL, 0);
    }
    const char *mixed = add(m, "Attention", parts, 3, heads, 3);
    return add_linear(m, add(m, "Reshape", INPUTS(mixed, "rows"), NULL, 0), WIDTH, WIDTH);
}

static const char *add_layer(model *m, const char *x) {
    const rondo_attribute tanh = {
        .name = "approximate", .kind = RONDO_ATTRIBUTE_STRING, .string_value = "tanh"};
    x = add(m, "Add", INPUTS(x, add_attention(m, add_norm(m, x))), NULL, 0);
    const char *up = add_linear(m, add_norm(m, x), WIDTH, 4L * WIDTH);
    const char *h = add(m, "Gelu", INPUTS(up), &tanh, 1);
    return add(m, "Add", INPUTS(x, add_linear(m, h, 4L * WIDTH, WIDTH)), NULL, 0);
}

static rondo_program *build_model(void) {
    static const int64_t rows[] = {-1, WIDTH};
    static const int64_t texts[] = {-1, TOKENS, WIDTH};
    static const rondo_shape two = {1, {2}};
    static const rondo_shape three = {1, {3}};
    const rondo_builder_options options = {.struct_size = sizeof options, .opset = 23};
    const rondo_attribute turned = {.name = "transB", .kind = RONDO_ATTRIBUTE_INT, .int_value = 1};
    const rondo_port ids = {.struct_size = sizeof ids,
                            .name = "ids",
                            .dtype = RONDO_DTYPE_I64,
                            .rank = 2,
                            .extent = {-1, TOKENS},
                            .symbol = {"batch"}};
    model *m = calloc(1, sizeof *m);
    rondo_program *program;
    if (m == NULL) {
        exit(EXIT_FAILURE);
    }
    check(rondo_builder_create(&options, &m->b));
    check(rondo_builder_add_input(m->b, &ids));
    check(rondo_builder_add_constant(m->b, "rows", RONDO_DTYPE_I64, &two, rows));
    check(rondo_builder_add_constant(m->b, "texts", RONDO_DTYPE_I64, &three, texts));
    const char *letters = add_weights(m, (rondo_shape){2, {LETTERS, WIDTH}}, 0.2f, 0.0f);
    const char *places = add_weights(m, (rondo_shape){2, {TOKENS, WIDTH}}, 0.2f, 0.0f);
    const char *looked = add(m, "Gather", INPUTS(letters, "ids"), NULL, 0);
    const char *x = add(m, "Add", INPUTS(looked, places), NULL, 0);
    x = add(m, "Reshape", INPUTS(x, "rows"), NULL, 0);
    for (int i = 0; i < LAYERS; ++i) {
        x = add_layer(m, x);
    }
    const rondo_builder_node_options last = {
        .struct_size = sizeof last, .attributes = &turned, .attribute_count = 1};
    check(rondo_builder_add_node(m->b, "Gemm", (const char *[]){add_norm(m, x), letters}, 2,
                                 (const char *[]){"scores"}, 1, &last));
    check(rondo_builder_add_output(m->b, "scores", NULL));
    check(rondo_builder_finish(m->b, &program));
    rondo_builder_destroy(m->b);
    free(m);
    return program;
}

static rondo_program *build_step(const rondo_program *program, int steps) {
    const rondo_port next = {.struct_size = sizeof next,
                             .name = "next",
                             .dtype = RONDO_DTYPE_I64,
                             .rank = 1,
                             .extent = {-1},
                             .symbol = {"letters"}};
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .optimizer = RONDO_OPTIMIZER_ADAMW,
                                            .learning_rate = 0.01,
                                            .weight_decay = 0.01,
                                            .clip_norm = 1.0,
                                            .schedule = RONDO_SCHEDULE_COSINE,
                                            .schedule_steps = steps,
                                            .warmup_steps = 10};
    rondo_builder *b;
    rondo_program *step;
    check(rondo_builder_create_from(program, &b));
    check(rondo_builder_add_input(b, &next));
    check(rondo_builder_add_node(b, "SoftmaxCrossEntropyLoss", (const char *[]){"scores", "next"},
                                 2, (const char *[]){"loss"}, 1, NULL));
    check(rondo_builder_add_output(b, "loss", NULL));
    check(rondo_builder_minimize(b, "loss", &options));
    check(rondo_builder_finish(b, &step));
    rondo_builder_destroy(b);
    return step;
}

// ---- training, and a look at the result ---------------------------------------------------------

static float train(rondo_executor *executor, int steps) {
    static int64_t x[BATCH * TOKENS];
    static int64_t y[BATCH * TOKENS];
    float loss = 0.0f;
    const rondo_binding feeds[] = {
        {.name = "ids",
         .tensor = {.dtype = RONDO_DTYPE_I64, .shape = {2, {BATCH, TOKENS}}, .data = x}},
        {.name = "next",
         .tensor = {.dtype = RONDO_DTYPE_I64, .shape = {1, {BATCH * TOKENS}}, .data = y}}};
    rondo_binding fetch = {.name = "loss", .tensor = {.dtype = RONDO_DTYPE_F32, .data = &loss}};
    for (int step = 0; step < steps; ++step) {
        write_text(x, y);
        check(rondo_executor_run(executor, feeds, 2, &fetch, 1));
        if (step % 50 == 0 || step == steps - 1) {
            printf("step %3d: loss %.4f\n", step, (double)loss);
        }
    }
    return loss;
}

// A letter, as likely as its score says.
static int64_t pick(const float *scores) {
    double sum = 0.0;
    for (int i = 0; i < LETTERS; ++i) {
        sum += exp((double)scores[i]);
    }
    double left = (double)draw() * sum;
    int64_t chosen = 0;
    while (chosen < LETTERS - 1 && (left -= exp((double)scores[chosen])) > 0.0) {
        chosen += 1;
    }
    return chosen;
}

// Writes letter by letter; the last TOKENS are read.
static void write_on(rondo_executor *executor) {
    static float scores[TOKENS][LETTERS];
    int64_t text[TOKENS + WRITTEN] = {0};
    const char *const start = "the cat ";
    size_t count = strlen(start);
    for (size_t i = 0; i < count; ++i) {
        text[i] = start[i] == ' ' ? 0 : start[i] - 'a' + 1;
    }
    while (count < WRITTEN) {
        const size_t first = count > TOKENS ? count - TOKENS : 0;
        const rondo_binding feed = {
            .name = "ids",
            .tensor = {.dtype = RONDO_DTYPE_I64, .shape = {2, {1, TOKENS}}, .data = text + first}};
        rondo_binding fetch = {
            .name = "scores",
            .tensor = {.dtype = RONDO_DTYPE_F32, .shape = {2, {TOKENS, LETTERS}}, .data = scores}};
        check(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        text[count] = pick(scores[count - first - 1]);
        count += 1;
    }
    for (size_t i = 0; i < count; ++i) {
        (void)putchar(text[i] == 0 ? ' ' : (int)('a' + text[i] - 1));
    }
    (void)putchar('\n');
}

int main(int argc, char **argv) {
    const int steps = argc > 2 ? atoi(argv[2]) : 300;
    rondo_device *device;
    rondo_executor *trainer;
    rondo_executor *writer;
    rondo_program *trained;
    rondo_program *program = build_model();
    rondo_program *step = build_step(program, steps);
    check(rondo_device_open(argc > 1 ? argv[1] : "auto", &device));
    check(rondo_executor_create(step, device, NULL, &trainer));
    const float loss = train(trainer, steps);
    check(rondo_executor_get_trained(trainer, program, &trained));
    check(rondo_executor_create(trained, device, NULL, &writer));
    write_on(writer);
    rondo_executor_destroy(writer);
    rondo_executor_destroy(trainer);
    rondo_device_release(device);
    rondo_program_destroy(trained);
    rondo_program_destroy(step);
    rondo_program_destroy(program);
    return loss < 0.9f ? EXIT_SUCCESS : EXIT_FAILURE;
}
