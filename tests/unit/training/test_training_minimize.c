// Training steps: optimisers, schedules, clipping and the loss scale to PyTorch's bits, a network's
// gradients against PyTorch's, replays against eager runs, what is skipped, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"
#include "support/variables_world.h"
#include "training/training_golden.h"

enum { COUNT = 64, STEPS = 12 };

static rondo_tensor vector(float *values, int64_t count) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = {1, {count}}, .data = values};
}

static void add_parameter(rondo_builder *b, const char *name, const rondo_shape *shape,
                          float *values) {
    const rondo_tensor tensor = {.dtype = RONDO_DTYPE_F32, .shape = *shape, .data = values};
    OK(rondo_builder_add_parameter(b, name, &tensor, RONDO_PARAMETER_COPIED));
}

static void add_node(rondo_builder *b, const char *op, const char *x, const char *y,
                     const char *out, const rondo_attribute *attributes, size_t count) {
    OK(rondo_builder_add_node(b, op, (const char *[]){x, y}, y != NULL ? 2 : 1,
                              (const char *[]){out}, 1, &WITH_LIST(attributes, count)));
}

static void add_input(rondo_builder *b, const char *name, rondo_dtype dtype, const rondo_shape *s) {
    rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = dtype, .rank = s->rank};
    memcpy(port.extent, s->extent, sizeof port.extent);
    OK(rondo_builder_add_input(b, &port));
}

static void open_world(rondo_builder *b, rondo_graphs_mode graphs, variables_world *w) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .graphs = graphs, .seed = 5};
    w->program = build_finish(b);
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    OK(rondo_executor_create(w->program, w->device, &options, &w->executor));
}

// ---- optimisers -------------------------------------------------------------------------------

// loss = sum(w * x): the gradient of w is x.
static rondo_builder *begin_sum(void) {
    static const rondo_shape shape = {1, {COUNT}};
    float start[COUNT];
    rondo_builder *b = build_begin();
    add_input(b, "x", RONDO_DTYPE_F32, &shape);
    variables_fill(1, COUNT, 1.0, start);
    add_parameter(b, "w", &shape, start);
    add_node(b, "Mul", "w", "x", "p", NULL, 0);
    const rondo_attribute keep = ATTRIBUTE_INT("keepdims", 0);
    add_node(b, "ReduceSum", "p", NULL, "loss", &keep, 1);
    OK(rondo_builder_add_output(b, "loss", NULL));
    return b;
}

static void run_sum(const variables_world *w, float *x) {
    const rondo_binding feed = {.name = "x", .tensor = vector(x, COUNT)};
    OK(rondo_executor_run(w->executor, &feed, 1, NULL, 0));
}

#define BASE(kind, rate) \
    .struct_size = sizeof(rondo_minimize_options), .optimizer = (kind), .learning_rate = (rate)
#define GOLDEN(name) #name, golden_##name
static const struct {
    const char *name;
    const unsigned *bits;
    rondo_minimize_options options;
} optimizer_cases[] = {
    {GOLDEN(sgd), {BASE(RONDO_OPTIMIZER_SGD, 0.1)}},
    {GOLDEN(sgd_decay), {BASE(RONDO_OPTIMIZER_SGD, 0.1), .weight_decay = 0.05}},
    {GOLDEN(momentum), {BASE(RONDO_OPTIMIZER_SGD, 0.1), .momentum = 0.9}},
    {GOLDEN(dampening),
     {BASE(RONDO_OPTIMIZER_SGD, 0.1), .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01}},
    {GOLDEN(nesterov), {BASE(RONDO_OPTIMIZER_SGD, 0.1), .momentum = 0.9, .nesterov = true}},
    {GOLDEN(adam), {BASE(RONDO_OPTIMIZER_ADAM, 0.01)}},
    {GOLDEN(adam_l2), {BASE(RONDO_OPTIMIZER_ADAM, 0.01), .weight_decay = 0.1}},
    {GOLDEN(adam_betas),
     {BASE(RONDO_OPTIMIZER_ADAM, 0.01), .beta1 = 0.3, .beta2 = 0.9, .epsilon = 0.1}},
    {GOLDEN(adamw), {BASE(RONDO_OPTIMIZER_ADAMW, 0.01), .weight_decay = 0.1}},
    {GOLDEN(step),
     {BASE(RONDO_OPTIMIZER_SGD, 0.1), .schedule = RONDO_SCHEDULE_STEP, .schedule_steps = 4,
      .schedule_factor = 0.5}},
    {GOLDEN(cosine),
     {BASE(RONDO_OPTIMIZER_SGD, 0.1), .schedule = RONDO_SCHEDULE_COSINE, .schedule_steps = 11}},
    {GOLDEN(warmup), {BASE(RONDO_OPTIMIZER_SGD, 0.1), .warmup_steps = 5}},
    {GOLDEN(clip_norm), {BASE(RONDO_OPTIMIZER_SGD, 0.1), .clip_norm = 0.5}},
    {GOLDEN(clip_value), {BASE(RONDO_OPTIMIZER_SGD, 0.1), .clip_value = 0.1}},
};

// How many units in the last place two numbers lie apart.
static int64_t count_steps(float have, unsigned want) {
    int32_t a;
    memcpy(&a, &have, sizeof a);
    const int64_t left = a < 0 ? (int64_t)INT32_MIN - a : a;
    const int32_t b = (int32_t)want;
    const int64_t right = b < 0 ? (int64_t)INT32_MIN - b : b;
    return left > right ? left - right : right - left;
}

TEST(optimizers_are_pytorchs) {
    for (size_t c = 0; c < sizeof optimizer_cases / sizeof *optimizer_cases; ++c) {
        variables_world w;
        float values[COUNT];
        rondo_builder *b = begin_sum();
        OK(rondo_builder_minimize(b, "loss", &optimizer_cases[c].options));
        open_world(b, RONDO_GRAPHS_AUTO, &w);
        for (uint32_t step = 0; step < STEPS; ++step) {
            variables_fill(100 + step, COUNT, 0.3, values);
            run_sum(&w, values);
        }
        variables_read_all(w.executor, "w", values);
        // The norm adds up in another order, and PyTorch's cosine is recursive.
        const bool is_close = strncmp(optimizer_cases[c].name, "c", 1) == 0;
        for (size_t i = 0; i < COUNT; ++i) {
            const int64_t apart = count_steps(values[i], optimizer_cases[c].bits[i]);
            if (apart > (is_close ? 8 : 0)) {
                fail_msg("%s: element %zu is %.9g, %lld steps away", optimizer_cases[c].name, i,
                         (double)values[i], (long long)apart);
            }
        }
        variables_close(&w);
    }
}

// ---- the loss scale -----------------------------------------------------------------------------

TEST(scale_is_gradscalers) {
    variables_world w;
    float x[COUNT] = {0};
    float before[COUNT];
    float after[COUNT];
    rondo_builder *b = begin_sum();
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAM, 0.01), .scale_loss = true,
                                            .scale_start = 1024.0, .scale_interval = 3};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    variables_read_all(w.executor, "w", before);
    for (int step = 0; step < 24; ++step) {
        const bool is_bad = step == 3 || step == 7 || step == 8 || step == 15;
        float scale = 0.0f;
        x[7] = is_bad ? (step % 2 != 0 ? INFINITY : NAN) : 1.0f;
        run_sum(&w, x);
        variables_read_all(w.executor, "train.scale", &scale);
        assert_int_equal(count_steps(scale, golden_scaler[step]), 0);
        variables_read_all(w.executor, "w", after);
        assert_int_equal(memcmp(before, after, sizeof before) == 0, is_bad);
        memcpy(before, after, sizeof before);
    }
    variables_close(&w);
}

TEST(scale_has_patience_and_floor) {
    static const float wanted[] = {64, 64, 32, 16, 16, 16, 32, 32, 32, 16, 16, 16};
    static const bool is_bad[] = {true,  true, true, true, true, false,
                                  false, true, true, true, true, true};
    variables_world w;
    float x[COUNT] = {0};
    rondo_builder *b = begin_sum();
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_SGD, 0.01),
                                            .scale_loss = true,
                                            .scale_start = 64.0,
                                            .scale_least = 16.0,
                                            .scale_interval = 2,
                                            .scale_patience = 3};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    for (size_t step = 0; step < 12; ++step) {
        float scale = 0.0f;
        x[0] = is_bad[step] ? NAN : 1.0f;
        run_sum(&w, x);
        variables_read_all(w.executor, "train.scale", &scale);
        assert_float_equal(scale, wanted[step], 0.0f);
    }
    variables_close(&w);
}

// ---- micro-batches ------------------------------------------------------------------------------

TEST(micro_batches_are_averaged) {
    variables_world w;
    float start[COUNT];
    float x[COUNT];
    float now[COUNT];
    rondo_builder *b = begin_sum();
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_SGD, 0.5), .momentum = 0.9,
                                            .accumulate = 4};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    variables_fill(1, COUNT, 1.0, start);
    for (int run = 0; run < 8; ++run) {
        for (size_t i = 0; i < COUNT; ++i) {
            x[i] = (float)(run % 4 + 1);  // 2.5 on average
        }
        run_sum(&w, x);
        variables_read_all(w.executor, "w", now);
        const float moved = run < 3 ? 0.0f : run < 7 ? 1.25f : 1.25f + 1.25f * 1.9f;
        for (size_t i = 0; i < COUNT; ++i) {
            assert_true(fabsf(now[i] - (start[i] - moved)) < 1e-5f);
        }
    }
    variables_close(&w);
}

// A schedule counts steps, not the runs whose gradients a step averages.
TEST(schedules_count_steps_of_micro_batches) {
    static const float moved[] = {0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 2.5f, 2.5f, 3.0f};
    variables_world w;
    float start[COUNT];
    float x[COUNT];
    float now[COUNT];
    rondo_builder *b = begin_sum();
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_SGD, 1.0), .accumulate = 2,
                                            .schedule = RONDO_SCHEDULE_STEP, .schedule_steps = 2,
                                            .schedule_factor = 0.5};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    variables_fill(1, COUNT, 1.0, start);
    for (size_t i = 0; i < COUNT; ++i) {
        x[i] = 1.0f;
    }
    for (int run = 0; run < 8; ++run) {
        run_sum(&w, x);
        variables_read_all(w.executor, "w", now);
        for (size_t i = 0; i < COUNT; ++i) {
            assert_true(fabsf(now[i] - (start[i] - moved[run])) < 1e-5f);
        }
    }
    variables_close(&w);
}

// ---- a network ----------------------------------------------------------------------------------

static const struct {
    const char *name;
    rondo_shape shape;
    const unsigned *gradient;
} network[] = {
    {"conv.weight", {4, {4, 2, 3, 3}}, golden_network_conv_weight},
    {"conv.bias", {1, {4}}, NULL},  // in front of a norm: nothing but noise
    {"norm.weight", {1, {4}}, golden_network_norm_weight},
    {"norm.bias", {1, {4}}, golden_network_norm_bias},
    {"first.weight", {2, {8, 16}}, golden_network_first_weight},
    {"first.bias", {1, {8}}, golden_network_first_bias},
    {"layer.weight", {1, {8}}, golden_network_layer_weight},
    {"layer.bias", {1, {8}}, golden_network_layer_bias},
    {"second.weight", {2, {5, 8}}, golden_network_second_weight},
    {"second.bias", {1, {5}}, golden_network_second_bias},
};
enum { PARAMETERS = sizeof network / sizeof *network };

static int64_t count_elements(const rondo_shape *shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape->rank; ++d) {
        count *= shape->extent[d];
    }
    return count;
}

static void add_many(rondo_builder *b, const char *op, const char *const *inputs, size_t count,
                     const char *out, const rondo_attribute *attributes, size_t attribute_count) {
    OK(rondo_builder_add_node(b, op, inputs, count, &out, 1,
                              &WITH_LIST(attributes, attribute_count)));
}

// make_golden.py's Network; `batch` -1: a symbol.
static rondo_builder *begin_network(int64_t batch) {
    static const int64_t pads[] = {1, 1, 1, 1};
    static const int64_t two[] = {2, 2};
    static const rondo_shape four = {1, {4}};
    float values[256];
    rondo_builder *b;
    OK(rondo_builder_create(
        &(rondo_builder_options){.struct_size = sizeof(rondo_builder_options), .opset = 20}, &b));
    rondo_port x = PORT("x", RONDO_DTYPE_F32, batch, 2, 8, 8);
    rondo_port y = PORT("y", RONDO_DTYPE_I64, batch);
    x.symbol[0] = y.symbol[0] = batch < 0 ? "batch" : NULL;
    OK(rondo_builder_add_input(b, &x));
    OK(rondo_builder_add_input(b, &y));
    for (uint32_t i = 0; i < PARAMETERS; ++i) {
        variables_fill(1000 + i, (size_t)count_elements(&network[i].shape), 0.5, values);
        add_parameter(b, network[i].name, &network[i].shape, values);
    }
    memset(values, 0, sizeof values);
    add_parameter(b, "mean", &four, values);
    values[0] = values[1] = values[2] = values[3] = 1.0f;
    add_parameter(b, "variance", &four, values);
    const rondo_attribute conv[] = {ATTRIBUTE_INTS("pads", pads, 4),
                                    ATTRIBUTE_INTS("strides", two, 2)};
    const rondo_attribute pool[] = {ATTRIBUTE_INTS("kernel_shape", two, 2),
                                    ATTRIBUTE_INTS("strides", two, 2)};
    const rondo_attribute turned = ATTRIBUTE_INT("transB", 1);
    add_many(b, "Conv", (const char *[]){"x", "conv.weight", "conv.bias"}, 3, "c", conv, 2);
    add_many(b, "BatchNormalization",
             (const char *[]){"c", "norm.weight", "norm.bias", "mean", "variance"}, 5, "n", NULL,
             0);
    add_node(b, "Relu", "n", NULL, "r", NULL, 0);
    add_node(b, "MaxPool", "r", NULL, "m", pool, 2);
    add_node(b, "Flatten", "m", NULL, "f", NULL, 0);
    add_many(b, "Gemm", (const char *[]){"f", "first.weight", "first.bias"}, 3, "h", &turned, 1);
    add_many(b, "LayerNormalization", (const char *[]){"h", "layer.weight", "layer.bias"}, 3, "l",
             NULL, 0);
    add_node(b, "Gelu", "l", NULL, "g", NULL, 0);
    add_many(b, "Gemm", (const char *[]){"g", "second.weight", "second.bias"}, 3, "s", &turned, 1);
    add_node(b, "SoftmaxCrossEntropyLoss", "s", "y", "loss", NULL, 0);
    OK(rondo_builder_add_output(b, "loss", NULL));
    return b;
}

static float run_network(const variables_world *w, int64_t batch, float *x, int64_t *y) {
    float loss = NAN;
    const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, batch, 2, 8, 8),
                                   BIND("y", RONDO_DTYPE_I64, y, batch)};
    rondo_binding fetch = BIND("loss", RONDO_DTYPE_F32, &loss);
    OK(rondo_executor_run(w->executor, feeds, 2, &fetch, 1));
    return loss;
}

// The host has one op each for what gradients write with many, all with vector code.
static void look_at_plan(const variables_world *w) {
    static const char *const ops[] = {
        "rondo.BatchNormalization simd", "rondo.NormGradient   simd",
        "rondo.ConvWeights    simd",     "rondo.PoolGradient   simd",
        "rondo.LossGradient   simd",     "SoftmaxCrossEntropyLoss simd"};
    text_sink plan = {.length = 0};
    if (!rondo_device_is_host(w->device)) {
        return;
    }
    OK(rondo_executor_describe(w->executor, RONDO_TEXT_PLAIN, text_sink_append, &plan));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
        if (strstr(plan.text, ops[i]) == NULL) {
            fail_msg("%s is not in the plan:\n%s", ops[i], plan.text);
        }
    }
}

// The step of SGD with a rate of 1 is the gradient.
static void test_network(int64_t batch, const char *recompute) {
    variables_world w;
    float x[3 * 2 * 8 * 8];
    float before[256];
    float after[256];
    int64_t y[] = {1, 4, 0};
    rondo_builder *b = begin_network(batch);
    const char *const patterns[] = {recompute};
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_SGD, 1.0),
                                            .recompute = recompute != NULL ? patterns : NULL,
                                            .recompute_count = recompute != NULL ? 1 : 0};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    variables_fill(77, 3 * 2 * 8 * 8, 1.0, x);
    const float loss = run_network(&w, 3, x, y);
    float wanted_loss;
    memcpy(&wanted_loss, golden_network_loss, sizeof wanted_loss);
    assert_true(fabsf(loss - wanted_loss) <= 1e-5f);
    if (recompute == NULL) {
        look_at_plan(&w);
    }
    for (uint32_t i = 0; i < PARAMETERS; ++i) {
        const size_t count = (size_t)count_elements(&network[i].shape);
        variables_fill(1000 + i, count, 0.5, before);
        variables_read_all(w.executor, network[i].name, after);
        for (size_t k = 0; k < count; ++k) {
            float want = 0.0f;
            memcpy(&want, network[i].gradient != NULL ? &network[i].gradient[k] : (void *)&want,
                   sizeof want);
            const float have = before[k] - after[k];
            if (!(fabsf(have - want) <= 2e-6f)) {
                fail_msg("%s[%zu]: %.9g, PyTorch %.9g", network[i].name, k, (double)have,
                         (double)want);
            }
        }
    }
    // ONNX keeps nine tenths of the old mean.
    variables_read_all(w.executor, "variance", after);
    assert_true(after[0] > 0.9f && after[0] < 1.5f && after[0] != 1.0f);
    variables_close(&w);
}

TEST(network_is_pytorchs) {
    test_network(3, NULL);
    test_network(-1, NULL);
    test_network(3, "*");
}

TEST(replays_are_eager_runs) {
    variables_world worlds[2];
    float x[5 * 2 * 8 * 8];
    float values[2][256];
    int64_t y[5];
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAMW, 0.01),
                                            .weight_decay = 0.01,
                                            .clip_norm = 1.0,
                                            .schedule = RONDO_SCHEDULE_COSINE,
                                            .schedule_steps = 200,
                                            .warmup_steps = 10,
                                            .scale_loss = true,
                                            .scale_interval = 20};
    for (int i = 0; i < 2; ++i) {
        rondo_builder *b = begin_network(-1);
        OK(rondo_builder_minimize(b, "loss", &options));
        open_world(b, i == 0 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_AUTO, &worlds[i]);
    }
    float first = 0.0f;
    float last[2] = {0};
    for (uint32_t step = 0; step < 300; ++step) {
        const int64_t batch = step % 7 == 6 ? 2 : 5;  // a smaller last batch
        variables_fill(step % 20, 5 * 2 * 8 * 8, 1.0, x);
        for (size_t i = 0; i < 5; ++i) {
            y[i] = x[i * 128] > 0.0f ? 1 : 3;
        }
        last[0] = run_network(&worlds[0], batch, x, y);
        last[1] = run_network(&worlds[1], batch, x, y);
        assert_memory_equal(&last[0], &last[1], sizeof *last);
        first = step == 0 ? last[0] : first;
    }
    assert_true(last[0] < first * 0.7f);
    for (uint32_t i = 0; i < PARAMETERS; ++i) {
        variables_read_all(worlds[0].executor, network[i].name, values[0]);
        variables_read_all(worlds[1].executor, network[i].name, values[1]);
        assert_memory_equal(values[0], values[1],
                            (size_t)count_elements(&network[i].shape) * sizeof(float));
    }
    variables_close(&worlds[0]);
    variables_close(&worlds[1]);
}

// ---- tables -------------------------------------------------------------------------------------

enum { ROWS = 50, COLUMNS = 3, LOOKED_UP = 5 };

// loss = sum of the rows times 1, 2, 3: each time that a row is looked up it loses rate * those.
TEST(rows_change_alone) {
    for (int is_scaled = 0; is_scaled < 2; ++is_scaled) {
        static const rondo_shape shape = {2, {ROWS, COLUMNS}};
        static const rondo_shape looked_up = {1, {LOOKED_UP}};
        static const rondo_shape line = {1, {COLUMNS}};
        float start[ROWS * COLUMNS];
        float now[ROWS * COLUMNS];
        float weights[] = {1, 2, 3};
        int32_t ids[] = {7, 3, 7, 49, 0};
        variables_world w;
        rondo_builder *b;
        OK(rondo_builder_create(NULL, &b));
        add_input(b, "ids", RONDO_DTYPE_I32, &looked_up);
        variables_fill(5, ROWS * COLUMNS, 1.0, start);
        add_parameter(b, "table", &shape, start);
        OK(rondo_builder_add_constant(b, "line", RONDO_DTYPE_F32, &line, weights));
        OK(rondo_builder_add_embedding(b, "ids", "table", "rows"));
        add_node(b, "Mul", "rows", "line", "p", NULL, 0);
        const rondo_attribute keep = ATTRIBUTE_INT("keepdims", 0);
        add_node(b, "ReduceSum", "p", NULL, "loss", &keep, 1);
        const rondo_minimize_options options = {
            BASE(RONDO_OPTIMIZER_SGD, 0.25), .scale_loss = is_scaled == 1,
            .train = (const char *const[]){"table"}, .train_count = 1};
        OK(rondo_builder_minimize(b, "loss", &options));
        OK(rondo_builder_add_output(b, "loss", NULL));
        open_world(b, RONDO_GRAPHS_AUTO, &w);
        for (size_t n = 0; n < rondo_program_get_node_count(w.program); ++n) {
            rondo_program_node node = {.struct_size = sizeof node};
            OK(rondo_program_get_node(w.program, n, &node));
            if (strcmp(node.op, "ScatterND") == 0) {  // no table of gradients
                assert_string_equal(rondo_program_get_node_input(w.program, n, 0), "table");
            }
        }
        const rondo_binding feed = BIND_SHAPE("ids", RONDO_DTYPE_I32, ids, looked_up);
        for (int run = 0; run < 3; ++run) {
            OK(rondo_executor_run(w.executor, &feed, 1, NULL, 0));
        }
        variables_read_all(w.executor, "table", now);
        for (size_t i = 0; i < ROWS * COLUMNS; ++i) {
            const size_t row = i / COLUMNS;
            const float times = row == 7 ? 6.0f : row == 3 || row == 49 || row == 0 ? 3.0f : 0.0f;
            const float want = start[i] - times * 0.25f * weights[i % COLUMNS];
            assert_true(times == 0.0f ? now[i] == start[i] : fabsf(now[i] - want) < 1e-5f);
        }
        variables_close(&w);
    }
}

// w + a b: the trained model has the sum.
TEST(adapters_end_in_weights) {
    rondo_program *model;
    rondo_program *trained;
    variables_world w;
    float x[3 * 2 * 8 * 8];
    float before[256];
    int64_t y[] = {1, 4, 0};
    rondo_builder *b = begin_network(3);
    model = build_finish(b);
    OK(rondo_builder_create_from(model, &b));
    EXPECT(INVALID, "no matrix", rondo_builder_add_adapters(b, NULL, 0, 8));
    OK(rondo_builder_add_adapters(b, (const char *const[]){"first*"}, 1, 2));
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAM, 0.02),
                                            .train = (const char *const[]){"*.lora_?"},
                                            .train_count = 1};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    variables_fill(77, 3 * 2 * 8 * 8, 1.0, x);
    const float first = run_network(&w, 3, x, y);
    float last = first;
    for (int step = 0; step < 60; ++step) {
        last = run_network(&w, 3, x, y);
    }
    assert_true(last < first);
    OK(rondo_executor_get_trained(w.executor, model, &trained));
    variables_fill(1004, 128, 0.5, before);
    size_t count = 0;
    rondo_parameter parameters[64];
    OK(rondo_program_list_parameters(trained, 64, parameters, &count));
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(parameters[i].name, "first.weight") == 0) {
            assert_memory_not_equal(parameters[i].tensor->data, before, 128 * sizeof *before);
        } else if (strcmp(parameters[i].name, "layer.bias") == 0) {
            variables_fill(1007, 8, 0.5, before + 128);
            assert_memory_equal(parameters[i].tensor->data, before + 128, 8 * sizeof *before);
        }
    }
    rondo_program_destroy(trained);
    rondo_program_destroy(model);
    variables_close(&w);
}

// ---- what is kept -------------------------------------------------------------------------------

static const char checkpoint[] = "test_training_minimize.checkpoint";

// The sum of what Dropout leaves, so that random numbers count, with momentum.
static void open_dropped(variables_world *w, rondo_dtype dtype) {
    static const rondo_shape shape = {1, {COUNT}};
    float start[COUNT];
    rondo_builder *b = build_begin();
    add_input(b, "x", RONDO_DTYPE_F32, &shape);
    variables_fill(1, COUNT, 1.0, start);
    if (dtype == RONDO_DTYPE_F32) {
        add_parameter(b, "w", &shape, start);
        add_node(b, "Identity", "w", NULL, "wide", NULL, 0);
    } else {
        uint16_t half[COUNT];
        for (size_t i = 0; i < COUNT; ++i) {
            half[i] = (uint16_t)(0x3c00 + i);  // from 1 on
        }
        const rondo_tensor tensor = {.dtype = dtype, .shape = shape, .data = half};
        OK(rondo_builder_add_parameter(b, "w", &tensor, RONDO_PARAMETER_COPIED));
        const rondo_attribute to = ATTRIBUTE_INT("to", 1);
        add_node(b, "Cast", "w", NULL, "wide", &to, 1);
    }
    add_node(b, "Mul", "wide", "x", "p", NULL, 0);
    add_node(b, "Dropout", "p", NULL, "d", NULL, 0);
    const rondo_attribute keep = ATTRIBUTE_INT("keepdims", 0);
    add_node(b, "ReduceSum", "d", NULL, "loss", &keep, 1);
    OK(rondo_builder_add_output(b, "loss", NULL));
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAM, 0.001), .scale_loss = true};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, w);
}

static void step_dropped(const variables_world *w, uint32_t step) {
    float x[COUNT];
    variables_fill(100 + step, COUNT, 0.3, x);
    run_sum(w, x);
}

TEST(resumes_to_the_same_bits) {
    for (int half = 0; half < 2; ++half) {
        variables_world whole;
        variables_world part;
        float values[2][COUNT];
        const char *const name = half == 1 ? "w.master" : "w";
        const rondo_dtype dtype = half == 1 ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32;
        open_dropped(&whole, dtype);
        open_dropped(&part, dtype);
        for (uint32_t step = 0; step < 20; ++step) {
            step_dropped(&whole, step);
            if (step == 9) {
                OK(rondo_checkpoint_save(whole.executor, checkpoint));
            }
        }
        step_dropped(&part, 77);  // what it did before does not count
        OK(rondo_checkpoint_load(part.executor, checkpoint));
        for (uint32_t step = 10; step < 20; ++step) {
            step_dropped(&part, step);
        }
        variables_read_all(whole.executor, name, values[0]);
        variables_read_all(part.executor, name, values[1]);
        assert_memory_equal(values[0], values[1], sizeof values[0]);
        variables_close(&whole);
        variables_close(&part);
        (void)remove(checkpoint);
    }
}

TEST(bad_checkpoints_change_nothing) {
    variables_world w;
    variables_world other;
    float values[2][COUNT];
    open_dropped(&w, RONDO_DTYPE_F32);
    step_dropped(&w, 0);
    OK(rondo_checkpoint_save(w.executor, checkpoint));
    variables_read_all(w.executor, "w", values[0]);
    step_dropped(&w, 1);
    rondo_tensor kept;
    OK(rondo_checkpoint_read(checkpoint, "w", &kept));
    assert_int_equal(rondo_tensor_get_bytes(&kept), sizeof values[0]);
    assert_memory_equal(kept.data, values[0], sizeof values[0]);
    rondo_tensor_deinit(&kept);
    EXPECT(BAD_DATA, "no variable \"v\"", rondo_checkpoint_read(checkpoint, "v", &kept));
    EXPECT(UNAVAILABLE, "nowhere", rondo_checkpoint_read("nowhere/at.all", "w", &kept));
    variables_read_all(w.executor, "w", values[0]);
    FILE *file = fopen(checkpoint, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 100, SEEK_SET), 0);
    assert_int_equal(fputc(0x55, file), 0x55);
    assert_int_equal(fclose(file), 0);
    EXPECT(BAD_DATA, "damaged", rondo_checkpoint_load(w.executor, checkpoint));
    EXPECT(BAD_DATA, "damaged", rondo_checkpoint_read(checkpoint, "w", &kept));
    EXPECT(UNAVAILABLE, "nowhere", rondo_checkpoint_load(w.executor, "nowhere/at.all"));
    EXPECT(UNAVAILABLE, "nowhere", rondo_checkpoint_save(w.executor, "nowhere/at.all"));
    open_dropped(&other, RONDO_DTYPE_F16);
    OK(rondo_checkpoint_save(other.executor, checkpoint));
    EXPECT(BAD_DATA, "\"w\"", rondo_checkpoint_load(w.executor, checkpoint));
    variables_read_all(w.executor, "w", values[1]);
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    variables_close(&w);
    variables_close(&other);
    (void)remove(checkpoint);
}

// The trained model, saved and loaded, infers as the trainer's values say.
TEST(trained_models_are_models) {
    static const char path[] = "test_training_minimize.onnx";
    variables_world w;
    float x[3 * 2 * 8 * 8];
    float values[256];
    int64_t y[] = {1, 4, 0};
    rondo_program *model;
    rondo_program *trained;
    rondo_program *loaded;
    rondo_builder *b = begin_network(3);
    model = build_finish(b);
    OK(rondo_builder_create_from(model, &b));
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAM, 0.01)};
    OK(rondo_builder_minimize(b, "loss", &options));
    open_world(b, RONDO_GRAPHS_AUTO, &w);
    variables_fill(77, 3 * 2 * 8 * 8, 1.0, x);
    for (int step = 0; step < 200; ++step) {
        (void)run_network(&w, 3, x, y);
    }
    OK(rondo_executor_get_trained(w.executor, model, &trained));
    OK(rondo_program_save_onnx(trained, path));
    rondo_program_destroy(trained);
    OK(rondo_program_load_onnx(path, &loaded));
    variables_read_all(w.executor, "variance", values);
    size_t count = 0;
    rondo_parameter parameters[64];
    OK(rondo_program_list_parameters(loaded, 64, parameters, &count));
    bool has_statistics = false;
    for (size_t i = 0; i < count; ++i) {
        has_statistics =
            has_statistics || (strcmp(parameters[i].name, "variance") == 0 &&
                               memcmp(parameters[i].tensor->data, values, 4 * sizeof *values) == 0);
    }
    assert_true(has_statistics);
    variables_close(&w);
    w.program = loaded;
    OK(rondo_device_open(on_devices_get_name(), &w.device));
    OK(rondo_executor_create(loaded, w.device, NULL, &w.executor));
    // It trained to this batch, with its own mean; the statistics have come close.
    assert_true(run_network(&w, 3, x, y) < 0.1f);
    EXPECT(INVALID, "no parameter", rondo_executor_get_trained(w.executor, model, &trained));
    variables_close(&w);
    rondo_program_destroy(model);
    (void)remove(path);
}

// ---- what is refused ----------------------------------------------------------------------------

TEST(refusals_name_what_is_wrong) {
    rondo_builder *b = begin_sum();
    const rondo_minimize_options bad[] = {
        {BASE(RONDO_OPTIMIZER_SGD, (double)NAN)},
        {BASE(RONDO_OPTIMIZER_SGD, 0.0)},
        {BASE(9, 0.1)},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), .nesterov = true},
        {BASE(RONDO_OPTIMIZER_ADAM, 0.1), .beta1 = 1.0},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), .schedule = RONDO_SCHEDULE_COSINE},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), .clip_norm = -1.0},
        {BASE(RONDO_OPTIMIZER_SGD, 0.1), .train = (const char *const[]){"v*"}, .train_count = 1},
    };
    const char *const words[] = {"learning_rate", "learning_rate",  "rondo_optimizer", "nesterov",
                                 "beta1",         "schedule_steps", "clip_norm",       "\"v*\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        EXPECT(INVALID, words[i], rondo_builder_minimize(b, "loss", &bad[i]));
    }
    EXPECT(INVALID, "\"nothing\"", rondo_builder_minimize(b, "nothing", NULL));
    OK(rondo_builder_minimize(b, "loss", NULL));
    EXPECT(INVALID, "already", rondo_builder_minimize(b, "loss", NULL));
    rondo_builder_destroy(b);
}

TEST(no_gradient_names_op_and_way) {
    static const rondo_shape square = {2, {4, 4}};
    rondo_builder *b = build_begin();
    add_input(b, "x", RONDO_DTYPE_F32, &square);
    add_node(b, "Det", "x", NULL, "d", NULL, 0);
    add_node(b, "Exp", "d", NULL, "y", NULL, 0);
    EXPECT(UNSUPPORTED, "op Det, node \"Det_0\" (Det -> Exp -> \"y\")",
           rondo_builder_add_gradients(b, "y", (const char *[]){"x"}, (const char *[]){"dx"}, 1,
                                       NULL));
    rondo_builder_destroy(b);
}

typedef struct fault {
    int64_t left;  // allocations until the one that fails
} fault;

static bool fail_once(void *user_data) {
    fault *f = user_data;
    return f->left-- == 0;
}

// Each of many allocations fails once; nothing is lost, and the builder is as it was.
TEST(allocations_may_fail) {
    const rondo_minimize_options options = {BASE(RONDO_OPTIMIZER_ADAMW, 0.01),
                                            .clip_norm = 1.0,
                                            .scale_loss = true,
                                            .accumulate = 2,
                                            .recompute = (const char *const[]){"Gelu"},
                                            .recompute_count = 1};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo_builder *b = begin_network(-1);
    int64_t failures = 0;
    for (int64_t n = 0; status != RONDO_STATUS_OK; n += 1 + n / 24) {
        fault f = {n};
        const int64_t before = rondo__memory_get_balance();
        rondo__memory_set_fault(fail_once, &f);
        status = rondo_builder_minimize(b, "loss", &options);
        rondo__memory_set_fault(NULL, NULL);
        if (status != RONDO_STATUS_OK) {
            assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
            assert_int_equal(rondo__memory_get_balance(), before);
            failures += 1;
        }
    }
    assert_true(failures > 50);
    rondo_builder_destroy(b);
}

int main(void) {
    return ON_DEVICES();
}
