// ResNet-50 v2, built in code, and measured as MXNet published it: a number of runs of one batch
// that lies on the device, with graphs and without, each with our fusions and without them.
//
//   resnet50_v2 --device cuda:0 --dtype fp16 --batch 128 --warm-up 10 --runs 1000
//   resnet50_v2 --help
//
// The network is that of MXNet's model zoo (pre-activation: He et al., arXiv:1603.05027), with
// drawn parameters. All four ways must give the same logits, or the program fails.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/models.h>

typedef struct settings {
    const char *device;
    const char *save;
    bool is_half;
    int64_t batch, size, width, classes, warm_up, runs;
    uint64_t seed;
} settings;

static void check(rondo_status status, const char *call) {
    if (status != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        fprintf(stderr, "%s: %s%s%s\n", call, error->op, error->op[0] != '\0' ? ": " : "",
                error->message);
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

// ---- parameters ---------------------------------------------------------------------------------

// A drawn number of mean 0 and deviation 1 (nearly normal: a sum of four), the same everywhere.
static float draw(uint64_t *state) {
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*state >> 40) / (1 << 24) - 0.5f;
    }
    return sum * 1.7320508f;
}

typedef struct network {
    rondo_builder *builder;
    uint64_t draws;
    char value[48];  // the name of what the last layer made
} network;

// Adds a parameter, of which each number is mean + deviation * draw.
static void add_parameter(network *net, const char *name, const rondo_shape *shape, float mean,
                          float deviation) {
    rondo_tensor tensor;
    CHECK(rondo_tensor_init(RONDO_DTYPE_F32, shape, &tensor));
    const int64_t count = rondo_shape_get_count(shape);
    for (int64_t i = 0; i < count; i++) {
        ((float *)tensor.data)[i] = mean + deviation * draw(&net->draws);
    }
    CHECK(rondo_builder_add_parameter(net->builder, name, &tensor, RONDO_PARAMETER_COPIED));
    rondo_tensor_deinit(&tensor);
}

// ---- layers -------------------------------------------------------------------------------------

// Each layer reads net->value and leaves its output there; a parameter of layer "a" is "a.weight".
static void add_node(network *net, const char *op, const char *layer, const char *const *parameters,
                     size_t parameter_count, const rondo_attribute *attributes,
                     size_t attribute_count) {
    char names[5][64];
    const char *inputs[5] = {net->value};
    const rondo_builder_node_options options = {
        .struct_size = sizeof options,
        .name = layer,
        .attributes = attributes,
        .attribute_count = attribute_count,
    };
    for (size_t i = 0; i < parameter_count; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s.%s", layer, parameters[i]);
        inputs[1 + i] = names[i];
    }
    CHECK(
        rondo_builder_add_node(net->builder, op, inputs, 1 + parameter_count, &layer, 1, &options));
    (void)snprintf(net->value, sizeof net->value, "%s", layer);
}

static void add_plain(network *net, const char *op, const char *layer) {
    add_node(net, op, layer, NULL, 0, NULL, 0);
}

static void add_named_parameter(network *net, const char *layer, const char *kind,
                                const rondo_shape *shape, float mean, float deviation) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s.%s", layer, kind);
    add_parameter(net, name, shape, mean, deviation);
}

// gain scales the usual initial weights (He et al., arXiv:1502.01852).
static void add_convolution(network *net, const char *layer, int64_t from, int64_t to,
                            int64_t kernel, int64_t stride, float gain) {
    const int64_t pad = kernel / 2;
    const int64_t pads[] = {pad, pad, pad, pad}, strides[] = {stride, stride};
    const rondo_attribute attributes[] = {
        {.name = "pads", .kind = RONDO_ATTRIBUTE_INTS, .ints = pads, .count = 4},
        {.name = "strides", .kind = RONDO_ATTRIBUTE_INTS, .ints = strides, .count = 2},
    };
    const rondo_shape shape = {4, {to, from, kernel, kernel}};
    const float fan_in = (float)(from * kernel * kernel);
    add_named_parameter(net, layer, "weight", &shape, 0, gain * sqrtf(2 / fan_in));
    add_node(net, "Conv", layer, (const char *[]){"weight"}, 1, attributes, 2);
}

static void add_batch_norm(network *net, const char *layer, int64_t channels) {
    static const struct {
        const char *name;
        float mean, deviation;
    } parameters[] = {{"gamma", 1, 0.1f}, {"beta", 0, 0.1f}, {"mean", 0, 0.1f}, {"var", 1, 0.1f}};
    const rondo_shape shape = {1, {channels}};
    const char *names[4];
    for (int i = 0; i < 4; i++) {
        names[i] = parameters[i].name;
        add_named_parameter(net, layer, names[i], &shape, parameters[i].mean,
                            parameters[i].deviation);
    }
    add_node(net, "BatchNormalization", layer, names, 4, NULL, 0);
}

RONDO_PRINTF(3, 4)
static const char *format_name(char *name, size_t bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, bytes, format, arguments);
    va_end(arguments);
    return name;
}
#define NAME(...) format_name((char[48]){0}, 48, __VA_ARGS__)

static void add_activation(network *net, const char *unit, int number, int64_t channels) {
    add_batch_norm(net, NAME("%s.bn%d", unit, number), channels);
    add_plain(net, "Relu", NAME("%s.relu%d", unit, number));
}

// A bottleneck: x + conv1x1(act(conv3x3(act(conv1x1(a))))), a = act(x). Where the shape changes, a
// convolution of a takes x's place.
static void add_unit(network *net, const char *unit, int64_t from, int64_t to, int64_t stride) {
    char shortcut[48], activated[48];
    (void)snprintf(shortcut, sizeof shortcut, "%s", net->value);
    add_activation(net, unit, 1, from);
    (void)snprintf(activated, sizeof activated, "%s", net->value);
    if (from != to || stride != 1) {
        add_convolution(net, NAME("%s.downsample", unit), from, to, 1, stride, 0.7f);
        (void)snprintf(shortcut, sizeof shortcut, "%s", net->value);
        (void)snprintf(net->value, sizeof net->value, "%s", activated);
    }
    add_convolution(net, NAME("%s.conv1", unit), from, to / 4, 1, 1, 1);
    add_activation(net, unit, 2, to / 4);
    add_convolution(net, NAME("%s.conv2", unit), to / 4, to / 4, 3, stride, 1);
    add_activation(net, unit, 3, to / 4);
    // Smaller, so that the sums stay where f16 is good.
    add_convolution(net, NAME("%s.conv3", unit), to / 4, to, 1, 1, 0.4f);
    const char *const inputs[] = {shortcut, net->value};
    const char *const sum = NAME("%s.sum", unit);
    CHECK(rondo_builder_add_node(net->builder, "Add", inputs, 2, &sum, 1, NULL));
    (void)snprintf(net->value, sizeof net->value, "%s", sum);
}

static void add_head(network *net, int64_t channels, int64_t classes) {
    const rondo_shape weight = {2, {classes, channels}}, bias = {1, {classes}};
    const rondo_attribute transposed = {
        .name = "transB", .kind = RONDO_ATTRIBUTE_INT, .int_value = 1};
    add_activation(net, "end", 1, channels);
    add_plain(net, "GlobalAveragePool", "pool");
    add_plain(net, "Flatten", "flat");
    add_named_parameter(net, "logits", "weight", &weight, 0, sqrtf(1 / (float)channels));
    add_named_parameter(net, "logits", "bias", &bias, 0, 0.1f);
    add_node(net, "Gemm", "logits", (const char *[]){"weight", "bias"}, 2, &transposed, 1);
}

static rondo_program *build(const settings *s) {
    static const int unit_counts[] = {3, 4, 6, 3};
    const int64_t window[] = {3, 3}, pads[] = {1, 1, 1, 1}, strides[] = {2, 2};
    const rondo_attribute pool[] = {
        {.name = "kernel_shape", .kind = RONDO_ATTRIBUTE_INTS, .ints = window, .count = 2},
        {.name = "pads", .kind = RONDO_ATTRIBUTE_INTS, .ints = pads, .count = 4},
        {.name = "strides", .kind = RONDO_ATTRIBUTE_INTS, .ints = strides, .count = 2},
    };
    rondo_port image = {.struct_size = sizeof image,
                        .name = "image",
                        .dtype = RONDO_DTYPE_F32,
                        .rank = 4,
                        .extent = {-1, 3, s->size, s->size},
                        .symbol = {"batch"}};
    network net = {.draws = s->seed, .value = "image"};
    rondo_program *program;
    int64_t channels = s->width;
    const rondo_builder_options options = {.struct_size = sizeof options, .name = "resnet50_v2"};
    CHECK(rondo_builder_create(&options, &net.builder));
    CHECK(rondo_builder_add_input(net.builder, &image));
    add_batch_norm(&net, "data", 3);
    add_convolution(&net, "stem", 3, channels, 7, 2, 1);
    add_activation(&net, "stem", 1, channels);
    add_node(&net, "MaxPool", "stem.pool", NULL, 0, pool, 3);
    for (int stage = 0; stage < 4; stage++) {
        const int64_t to = s->width * 4 << stage;
        for (int unit = 0; unit < unit_counts[stage]; unit++) {
            const int64_t stride = stage > 0 && unit == 0 ? 2 : 1;
            add_unit(&net, NAME("stage%d.%d", stage + 1, unit), channels, to, stride);
            channels = to;
        }
    }
    add_head(&net, channels, s->classes);
    CHECK(rondo_builder_add_output(net.builder, "logits", NULL));
    CHECK(rondo_builder_finish(net.builder, &program));
    rondo_builder_destroy(net.builder);
    return program;
}

// ---- measuring ----------------------------------------------------------------------------------

typedef struct way {
    bool uses_graphs, is_fused;
    double seconds;  // of all runs
    uint64_t op_count, node_count;
    rondo_tensor logits;
} way;

static void measure(const settings *s, rondo_program *program, rondo_device *device,
                    const rondo_tensor *images, way *w) {
    const rondo_executor_options options = {
        .struct_size = sizeof options,
        .graphs = w->uses_graphs ? RONDO_GRAPHS_ON : RONDO_GRAPHS_OFF,
        .dtype = s->is_half ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32,
        .op_by_op = !w->is_fused,
    };
    const rondo_binding feed = {"image", *images};
    rondo_binding fetch = {.name = "logits"};
    rondo_executor *executor;
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    rondo_run_times times = {.struct_size = sizeof times};
    CHECK(rondo_executor_create(program, device, &options, &executor));
    CHECK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    w->logits = fetch.tensor;
    for (int64_t i = 0; i < s->warm_up; i++) {
        CHECK(rondo_executor_rerun(executor));
    }
    for (int64_t i = 0; i < s->runs; i++) {
        CHECK(rondo_executor_rerun(executor));  // waits until the logits are there
        CHECK(rondo_executor_get_times(executor, &times));
        w->seconds += (double)times.latency_ns * 1e-9;
    }
    fetch.tensor = (rondo_tensor){0};
    CHECK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    rondo_tensor_deinit(&w->logits);
    w->logits = fetch.tensor;
    CHECK(rondo_executor_get_stats(executor, &stats));
    w->op_count = stats.op_count;
    w->node_count = stats.node_count;
    rondo_executor_destroy(executor);
}

// The norm of a - b as a part of b's.
static double get_error(const rondo_tensor *a, const rondo_tensor *b) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < rondo_shape_get_count(&b->shape); i++) {
        const double x = (double)((const float *)a->data)[i],
                     y = (double)((const float *)b->data)[i];
        difference += (x - y) * (x - y);
        norm += y * y;
    }
    return norm > 0 ? sqrt(difference / norm) : HUGE_VAL;
}

// Fills the table and says whether all ways agree.
static bool compare_ways(const settings *s, rondo_program *program) {
    way ways[] = {{.uses_graphs = false, .is_fused = false},
                  {.uses_graphs = true, .is_fused = false},
                  {.uses_graphs = false, .is_fused = true},
                  {.uses_graphs = true, .is_fused = true}};
    const rondo_shape shape = {4, {s->batch, 3, s->size, s->size}};
    const double allowed = s->is_half ? 3e-2 : 1e-4;
    rondo_device *device;
    rondo_tensor images;
    uint64_t draws = s->seed + 1;
    bool agree = true;
    CHECK(rondo_device_open(s->device, &device));
    CHECK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &images));
    for (int64_t i = 0; i < rondo_shape_get_count(&shape); i++) {
        ((float *)images.data)[i] = draw(&draws);
    }
    printf("ResNet-50 v2 on %s, %s, batch %lld, %lld runs after %lld\n\n",
           rondo_device_get_name(device), s->is_half ? "fp16" : "fp32", (long long)s->batch,
           (long long)s->runs, (long long)s->warm_up);
    printf(
        "| fusions | graphs | %lld runs, s | a run, ms | images/s | against eager | ops | nodes "
        "| error |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        (long long)s->runs);
    for (int i = 0; i < 4; i++) {
        way *w = &ways[i];
        measure(s, program, device, &images, w);
        const double error = get_error(&w->logits, &ways[0].logits);
        const double eager = ways[i & ~1].seconds;
        agree = agree && error <= allowed;
        printf("| %s | %s | %.3f | %.4f | %.0f | %.2f | %llu | %llu | %.1e |\n",
               w->is_fused ? "on" : "off", w->uses_graphs ? "on" : "off", w->seconds,
               w->seconds * 1e3 / (double)s->runs, (double)(s->runs * s->batch) / w->seconds,
               eager / w->seconds, (unsigned long long)w->op_count,
               (unsigned long long)w->node_count, error);
        (void)fflush(stdout);
    }
    for (int i = 0; i < 4; i++) {
        rondo_tensor_deinit(&ways[i].logits);
    }
    rondo_tensor_deinit(&images);
    rondo_device_release(device);
    if (!agree) {
        fprintf(stderr, "logits differ by more than %g of their norm\n", allowed);
    }
    return agree;
}

// ---- the command line ---------------------------------------------------------------------------

static const char usage[] =
    "usage: resnet50_v2 [--device auto] [--dtype fp16|fp32] [--batch 1] [--warm-up 10]\n"
    "    [--runs 1000] [--size 224] [--width 64] [--classes 1000] [--seed 0] [--save FILE.onnx]\n"
    "--runs 0 measures nothing. --size is that of the images, --width the channels of the first\n"
    "convolution.\n";

static bool parse_number(const char *name, const char *text, int64_t least, int64_t *number) {
    char *end;
    *number = strtoll(text, &end, 10);
    if (*end != '\0' || *number < least || *number > 100000000) {
        fprintf(stderr, "%s is a number from %lld on, not \"%s\"\n", name, (long long)least, text);
        return false;
    }
    return true;
}

static bool parse(int argc, char **argv, settings *s) {
    int64_t seed = 0;
    const struct {
        const char *name;
        int64_t least;
        int64_t *number;
    } numbers[] = {{"--batch", 1, &s->batch},    {"--warm-up", 0, &s->warm_up},
                   {"--runs", 0, &s->runs},      {"--size", 32, &s->size},
                   {"--width", 4, &s->width},    {"--seed", 0, &seed},
                   {"--classes", 1, &s->classes}};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool is_known = true;
        if (strcmp(argv[i], "--device") == 0) {
            s->device = value;
        } else if (strcmp(argv[i], "--save") == 0) {
            s->save = value;
        } else if (strcmp(argv[i], "--dtype") == 0) {
            s->is_half = strcmp(value, "fp16") == 0;
            is_known = s->is_half || strcmp(value, "fp32") == 0;
        } else {
            is_known = false;
            for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
                if (strcmp(argv[i], numbers[n].name) == 0) {
                    is_known = parse_number(argv[i], value, numbers[n].least, numbers[n].number);
                }
            }
        }
        if (!is_known || value[0] == '\0') {
            fputs(usage, stderr);
            return false;
        }
    }
    s->seed = (uint64_t)seed;
    return true;
}

int main(int argc, char **argv) {
    settings s = {.device = "auto",
                  .is_half = true,
                  .batch = 1,
                  .size = 224,
                  .width = 64,
                  .classes = 1000,
                  .warm_up = 10,
                  .runs = 1000};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (!parse(argc, argv, &s)) {
        return 2;
    }
    rondo_program *program = build(&s);
    if (s.save != NULL) {
        CHECK(rondo_program_save_onnx(program, s.save));
    }
    const bool is_right = s.runs == 0 || compare_ways(&s, program);
    rondo_program_destroy(program);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
