// Whole training steps, one replay each: an MLP (784-512-512-10, batch 128, SGD with momentum) and
// a convolutional net (32 and 64 channels on 28 x 28, batch 64, AdamW). bench/torch_train_steps.py
// has the same in PyTorch. Then the gradients of the same nets alone, which stay on the device: the
// rest of a step is the optimiser's.
//
//   train_steps [DEVICE] [mlp|cnn] [show]      show: the plan, op by op
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rondo/models.h"

enum { WARM_UP = 8, RUNS = 60 };

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s\n", rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

static double get_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void fill(float *values, int64_t count, float range) {
    static uint32_t seed = 1;
    for (int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((float)(seed >> 8) / 16777216.0f - 0.5f) * 2.0f * range;
    }
}

static void add_weights(rondo_builder *b, const char *name, rondo_shape shape, float range) {
    const int64_t count = rondo_shape_get_count(&shape);
    float *values = malloc((size_t)count * sizeof *values);
    if (values == NULL) {
        exit(EXIT_FAILURE);
    }
    fill(values, count, range);
    check(rondo_builder_add_constant(b, name, RONDO_DTYPE_F32, &shape, values));
    free(values);
}

static void add(rondo_builder *b, const char *op, const char *const *inputs, size_t count,
                const char *output, const rondo_attribute *attributes, size_t attribute_count) {
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = attributes,
                                                .attribute_count = attribute_count};
    check(rondo_builder_add_node(b, op, inputs, count, &output, 1, &options));
}
#define INPUTS(...) \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define SHAPE(rank_, ...) ((rondo_shape){.rank = (rank_), .extent = {__VA_ARGS__}})

static void add_input(rondo_builder *b, const char *name, rondo_dtype dtype, rondo_shape shape) {
    rondo_port port = {
        .struct_size = sizeof port, .name = name, .dtype = dtype, .rank = shape.rank};
    memcpy(port.extent, shape.extent, sizeof port.extent);
    check(rondo_builder_add_input(b, &port));
}

static void add_linear(rondo_builder *b, const char *x, const char *w, const char *bias,
                       const char *output, int64_t from, int64_t to) {
    add_weights(b, w, SHAPE(2, from, to), 0.05f);
    add_weights(b, bias, SHAPE(1, to), 0.05f);
    add(b, "Gemm", INPUTS(x, w, bias), output, NULL, 0);
}

static void build_mlp(rondo_builder *b, rondo_shape *out_x, int64_t *out_batch) {
    *out_x = SHAPE(2, 128, 784);
    *out_batch = 128;
    add_input(b, "x", RONDO_DTYPE_F32, *out_x);
    add_linear(b, "x", "w1", "b1", "h1", 784, 512);
    add(b, "Relu", INPUTS("h1"), "r1", NULL, 0);
    add_linear(b, "r1", "w2", "b2", "h2", 512, 512);
    add(b, "Relu", INPUTS("h2"), "r2", NULL, 0);
    add_linear(b, "r2", "w3", "b3", "scores", 512, 10);
}

static void add_block(rondo_builder *b, const char *x, const char *const *names, int64_t from,
                      int64_t to) {
    static const int64_t pads[] = {1, 1, 1, 1};
    static const int64_t two[] = {2, 2};
    const rondo_attribute same = {
        .name = "pads", .kind = RONDO_ATTRIBUTE_INTS, .ints = pads, .count = 4};
    const rondo_attribute pool[] = {
        {.name = "kernel_shape", .kind = RONDO_ATTRIBUTE_INTS, .ints = two, .count = 2},
        {.name = "strides", .kind = RONDO_ATTRIBUTE_INTS, .ints = two, .count = 2}};
    add_weights(b, names[0], SHAPE(4, to, from, 3, 3), 0.1f);
    for (int i = 1; i < 6; ++i) {
        add_weights(b, names[i], SHAPE(1, to), 0.5f);
    }
    add(b, "Conv", INPUTS(x, names[0], names[1]), names[6], &same, 1);
    add(b, "BatchNormalization", INPUTS(names[6], names[2], names[3], names[4], names[5]), names[7],
        NULL, 0);
    add(b, "Relu", INPUTS(names[7]), names[8], NULL, 0);
    add(b, "MaxPool", INPUTS(names[8]), names[9], pool, 2);
}

static void build_cnn(rondo_builder *b, rondo_shape *out_x, int64_t *out_batch) {
    static const char *const first[] = {"w1", "b1", "s1", "t1", "m1", "v1", "c1", "n1", "r1", "p1"};
    static const char *const next[] = {"w2", "b2", "s2", "t2", "m2", "v2", "c2", "n2", "r2", "p2"};
    static const float tenth = 0.1f;
    *out_x = SHAPE(4, 64, 1, 28, 28);
    *out_batch = 64;
    add_input(b, "x", RONDO_DTYPE_F32, *out_x);
    add_block(b, "x", first, 1, 32);
    add_block(b, "p1", next, 32, 64);
    add(b, "Flatten", INPUTS("p2"), "f", NULL, 0);
    check(rondo_builder_add_constant(b, "ratio", RONDO_DTYPE_F32, &SHAPE(0, 0), &tenth));
    add(b, "Dropout", INPUTS("f", "ratio"), "d", NULL, 0);
    add_linear(b, "d", "w3", "b3", "scores", 3136, 10);
}

// The parameters of the two nets.
static const char *const mlp_weights[] = {"w1", "b1", "w2", "b2", "w3", "b3"};
static const char *const cnn_weights[] = {"w1", "b1", "s1", "t1", "w2",
                                          "b2", "s2", "t2", "w3", "b3"};
enum { WEIGHTS_MAX = 10, FETCHES_MAX = 1 + WEIGHTS_MAX };

// Adds the gradients of all parameters as outputs, and a fetch on the device for each.
static size_t add_gradients(rondo_builder *b, bool is_mlp, rondo_device *device,
                            rondo_binding *fetches) {
    static char names[WEIGHTS_MAX][8];
    const char *const *weights = is_mlp ? mlp_weights : cnn_weights;
    const size_t count = is_mlp ? sizeof mlp_weights / sizeof *mlp_weights : WEIGHTS_MAX;
    const char *outputs[WEIGHTS_MAX];
    for (size_t i = 0; i < count; ++i) {
        (void)snprintf(names[i], sizeof names[i], "d%s", weights[i]);
        outputs[i] = names[i];
    }
    check(rondo_builder_add_gradients(b, "loss", weights, outputs, count, NULL));
    for (size_t i = 0; i < count; ++i) {
        check(rondo_builder_add_output(b, outputs[i], NULL));
        fetches[i] = (rondo_binding){.name = outputs[i], .tensor = {.device = device}};
    }
    return count;
}

static void add_minimize(rondo_builder *b, bool is_mlp) {
    const rondo_minimize_options options = {
        .struct_size = sizeof options,
        .optimizer = is_mlp ? RONDO_OPTIMIZER_SGD : RONDO_OPTIMIZER_ADAMW,
        .learning_rate = is_mlp ? 0.01 : 0.001,
        .momentum = is_mlp ? 0.9 : 0.0,
        .weight_decay = is_mlp ? 0.0 : 0.01};
    check(rondo_builder_minimize(b, "loss", &options));
}

static int compare(const void *a, const void *b) {
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static bool show(void *data, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, data) == bytes;
}

static void run(const char *device_name, const char *name, bool shows, bool is_whole) {
    rondo_builder *b;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    rondo_shape shape;
    int64_t batch = 0;
    float loss = 0.0f;
    rondo_binding fetches[FETCHES_MAX] = {
        {.name = "loss", .tensor = {.dtype = RONDO_DTYPE_F32, .data = &loss}}};
    size_t fetch_count = 1;
    double times[RUNS];
    const bool is_mlp = strcmp(name, "mlp") == 0;
    check(rondo_device_open(device_name, &device));
    check(rondo_builder_create(NULL, &b));
    if (is_mlp) {
        build_mlp(b, &shape, &batch);
    } else {
        build_cnn(b, &shape, &batch);
    }
    add_input(b, "y", RONDO_DTYPE_I64, SHAPE(1, batch));
    add(b, "SoftmaxCrossEntropyLoss", INPUTS("scores", "y"), "loss", NULL, 0);
    check(rondo_builder_add_output(b, "loss", NULL));
    if (is_whole) {
        add_minimize(b, is_mlp);
    } else {
        fetch_count += add_gradients(b, is_mlp, device, fetches + 1);
    }
    check(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    check(rondo_executor_create(program, device, NULL, &executor));
    float *x = malloc((size_t)rondo_shape_get_count(&shape) * sizeof *x);
    int64_t *y = malloc((size_t)batch * sizeof *y);
    if (x == NULL || y == NULL) {
        exit(EXIT_FAILURE);
    }
    fill(x, rondo_shape_get_count(&shape), 1.0f);
    for (int64_t i = 0; i < batch; ++i) {
        y[i] = i % 10;
    }
    const rondo_binding feeds[] = {
        {.name = "x", .tensor = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = x}},
        {.name = "y", .tensor = {.dtype = RONDO_DTYPE_I64, .shape = SHAPE(1, batch), .data = y}}};
    for (int i = 0; i < WARM_UP + RUNS; ++i) {
        const double start = get_us();
        check(rondo_executor_run(executor, feeds, 2, fetches, fetch_count));
        times[i < WARM_UP ? 0 : i - WARM_UP] = get_us() - start;
    }
    if (shows) {
        check(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, show, stdout));
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    check(rondo_executor_get_stats(executor, &stats));
    qsort(times, RUNS, sizeof *times, compare);
    printf(
        "%s%s on %s: %.0f us a step, median of %d (%.0f to %.0f), %llu ops in %llu segments, "
        "%llu beside them; loss %.4f\n",
        name, is_whole ? "" : ", gradients alone,", device_name, times[RUNS / 2], RUNS,
        times[RUNS / 10], times[RUNS - RUNS / 10], (unsigned long long)stats.op_count,
        (unsigned long long)stats.segment_count, (unsigned long long)stats.bypassed_count,
        (double)loss);
    free(x);
    free(y);
    for (size_t i = 1; i < fetch_count; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

int main(int argc, char **argv) {
    const char *device = argc > 1 ? argv[1] : "auto";
    const bool shows = argc > 3 && strcmp(argv[3], "show") == 0;
    if (argc < 3 || strcmp(argv[2], "mlp") == 0) {
        run(device, "mlp", shows, true);
        run(device, "mlp", shows, false);
    }
    if (argc < 3 || strcmp(argv[2], "cnn") == 0) {
        run(device, "cnn", shows, true);
        run(device, "cnn", shows, false);
    }
    return 0;
}
