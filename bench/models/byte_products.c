// How long products and convolutions of 8-bit integers take on a GPU: four products an instruction
// (plain), and on tensor cores.
//
//   build/bench/byte_products [DEVICE] [--full] [--only TEXT]        default: cuda:0
//
// The library's own contest times the ways, each ten times in a graph with a small kernel behind
// each, and this program listens to what it logs; kernels and choices go to a folder of their own,
// so that nothing is remembered. Normally the four plans on tensor cores with the best estimate are
// timed, with --full all. A product ends as a real number with scale and bias, as bytes, or is the
// sum itself; convolutions have channels last, a scale for each filter and a bias, and end as
// bytes. Products of the same sizes by PyTorch: bench/peers/torch_int_mm.py.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "kernel/kernel.h"
#include "rondo/models.h"

enum { INPUTS_MAX = 9, NAME_BYTES = 64 };

typedef enum ending { REAL, STEPS, SUMS } ending;

typedef struct problem {
    const char *name;
    int64_t m, n, k;  // of a product
    ending end;
    int64_t batch, size, channels, filters, kernel, stride;  // of a convolution: filters > 0
} problem;

static const problem problems[] = {
    {.name = "4096 cubed, sums", .m = 4096, .n = 4096, .k = 4096, .end = SUMS},
    {.name = "4096 cubed, real", .m = 4096, .n = 4096, .k = 4096, .end = REAL},
    {.name = "4096 cubed, bytes", .m = 4096, .n = 4096, .k = 4096, .end = STEPS},
    {.name = "2048 cubed, sums", .m = 2048, .n = 2048, .k = 2048, .end = SUMS},
    {.name = "bert 128 q", .m = 128, .n = 768, .k = 768},
    {.name = "bert 128 qkv", .m = 128, .n = 2304, .k = 768},
    {.name = "bert 128 up", .m = 128, .n = 3072, .k = 768},
    {.name = "bert 128 down", .m = 128, .n = 768, .k = 3072},
    {.name = "bert 32x128 q", .m = 4096, .n = 768, .k = 768},
    {.name = "bert 32x128 up", .m = 4096, .n = 3072, .k = 768},
    {.name = "bert 32x128 down", .m = 4096, .n = 768, .k = 3072},
    {.name = "t5 1 token, q", .m = 1, .n = 384, .k = 512},
    {.name = "t5 1 token, words", .m = 1, .n = 32128, .k = 512},
    {.name = "t5 16 tokens, words", .m = 16, .n = 32128, .k = 512},
#define LAYERS(batch_)                                                          \
    {.name = "resnet stem",                                                     \
     .batch = (batch_),                                                         \
     .size = 224,                                                               \
     .channels = 3,                                                             \
     .filters = 64,                                                             \
     .kernel = 7,                                                               \
     .stride = 2},                                                              \
        LAYER(batch_, 56, 64, 64, 1, 1), LAYER(batch_, 56, 64, 64, 3, 1),       \
        LAYER(batch_, 56, 64, 256, 1, 1), LAYER(batch_, 56, 256, 64, 1, 1),     \
        LAYER(batch_, 56, 256, 128, 1, 1), LAYER(batch_, 56, 128, 128, 3, 2),   \
        LAYER(batch_, 56, 256, 512, 1, 2), LAYER(batch_, 28, 128, 512, 1, 1),   \
        LAYER(batch_, 28, 512, 128, 1, 1), LAYER(batch_, 28, 128, 128, 3, 1),   \
        LAYER(batch_, 28, 512, 256, 1, 1), LAYER(batch_, 28, 256, 256, 3, 2),   \
        LAYER(batch_, 28, 512, 1024, 1, 2), LAYER(batch_, 14, 256, 1024, 1, 1), \
        LAYER(batch_, 14, 1024, 256, 1, 1), LAYER(batch_, 14, 256, 256, 3, 1),  \
        LAYER(batch_, 14, 1024, 512, 1, 1), LAYER(batch_, 14, 512, 512, 3, 2),  \
        LAYER(batch_, 14, 1024, 2048, 1, 2), LAYER(batch_, 7, 512, 2048, 1, 1), \
        LAYER(batch_, 7, 2048, 512, 1, 1), LAYER(batch_, 7, 512, 512, 3, 1)
#define LAYER(batch_, size_, channels_, filters_, kernel_, stride_)                    \
    {                                                                                  \
        .name = "resnet", .batch = (batch_), .size = (size_), .channels = (channels_), \
        .filters = (filters_), .kernel = (kernel_), .stride = (stride_)                \
    }
    LAYERS(1),
    LAYERS(32),
};

// ---- what the contest says --------------------------------------------------------------------

static double g_plain_us, g_tensor_us;
static char g_tensor_name[NAME_BYTES];

// "tune KEY: NAME takes 12.34 us with its neighbour"
static void listen(void *user_data, rondo_log_level level, const char *message) {
    const char *takes = strstr(message, " takes ");
    const char *name = strstr(message, ": ");
    (void)user_data;
    if (level <= RONDO_LOG_WARNING) {
        fprintf(stderr, "%s\n", message);
    }
    if (strncmp(message, "tune ", 5) != 0 || takes == NULL || name == NULL || name > takes) {
        return;
    }
    const double time_us = strtod(takes + strlen(" takes "), NULL);
    name += 2;
    if (strncmp(name, "plain", 5) == 0) {
        g_plain_us = time_us;
    } else if (!(g_tensor_us > 0 && g_tensor_us <= time_us)) {
        g_tensor_us = time_us;
        (void)snprintf(g_tensor_name, sizeof g_tensor_name, "%.*s", (int)(takes - name), name);
    }
}

// ---- the products -----------------------------------------------------------------------------

// Constants are kept until the kernel is gone.
typedef struct request {
    rondo__op op;
    rondo__tensor_info inputs[INPUTS_MAX];
    rondo_tensor constants[INPUTS_MAX];
    rondo__tensor_info output;
} request;

static void set_input(request *r, size_t input, rondo_dtype dtype, rondo_shape shape) {
    r->inputs[input] = (rondo__tensor_info){.dtype = dtype, .is_shape_known = true, .shape = shape};
}

static void set_weights(request *r, size_t input, rondo_shape shape) {
    rondo_tensor *weights = &r->constants[input];
    set_input(r, input, RONDO_DTYPE_I8, shape);
    must(rondo_tensor_init(RONDO_DTYPE_I8, &shape, weights));
    for (int64_t i = 0; i < rondo_shape_get_count(&shape); ++i) {
        ((int8_t *)weights->data)[i] = (int8_t)(i * 7 % 255 - 127);
    }
    r->inputs[input].constant = weights;
}

static void make_product(const problem *p, request *r) {
    const rondo_shape scalar = {0}, columns = {1, {p->n}};
    const rondo_shape x = {2, {p->m, p->k}}, w = {2, {p->k, p->n}}, y = {2, {p->m, p->n}};
    const bool is_linear = p->end == STEPS;
    r->op.def = rondo__op_lookup(is_linear ? "" : "rondo",
                                 is_linear ? "QLinearMatMul" : "MatMulInteger", RONDO_OP_OPSET_MAX);
    set_input(r, 0, RONDO_DTYPE_U8, x);
    if (is_linear) {
        set_input(r, 1, RONDO_DTYPE_F32, scalar);
        set_input(r, 2, RONDO_DTYPE_U8, scalar);
        set_weights(r, 3, w);
        set_input(r, 4, RONDO_DTYPE_F32, columns);
        set_weights(r, 5, scalar);
        ((int8_t *)r->constants[5].data)[0] = 0;
        set_input(r, 6, RONDO_DTYPE_F32, scalar);
        set_input(r, 7, RONDO_DTYPE_U8, scalar);
    } else {
        set_weights(r, 1, w);
        set_input(r, 2, RONDO_DTYPE_U8, scalar);
    }
    if (p->end == REAL) {
        set_input(r, 4, RONDO_DTYPE_F32, scalar);
        set_input(r, 5, RONDO_DTYPE_F32, columns);
        set_input(r, 6, RONDO_DTYPE_F32, columns);
    }
    r->output = (rondo__tensor_info){.dtype = p->end == REAL ? RONDO_DTYPE_F32
                                              : is_linear    ? RONDO_DTYPE_U8
                                                             : RONDO_DTYPE_I32,
                                     .is_shape_known = true,
                                     .shape = y};
}

static int64_t get_out(const problem *p) {
    return (p->size + 2 * (p->kernel / 2) - p->kernel) / p->stride + 1;
}

static void make_convolution(const problem *p, request *r) {
    const int64_t out = get_out(p), margin = p->kernel / 2;
    const int64_t kernel[2] = {p->kernel, p->kernel}, strides[2] = {p->stride, p->stride};
    const int64_t pads[4] = {margin, margin, margin, margin};
    const rondo_shape scalar = {0}, filters = {1, {p->filters}};
    const rondo_shape x = {4, {p->batch, p->size, p->size, p->channels}};
    const rondo_shape w = {4, {p->filters, p->channels, p->kernel, p->kernel}};
    r->op.def = rondo__op_lookup("rondo", "QLinearConv", RONDO_OP_OPSET_MAX);
    must(rondo__op_set_ints(&r->op, "kernel_shape", kernel, 2));
    must(rondo__op_set_ints(&r->op, "strides", strides, 2));
    must(rondo__op_set_ints(&r->op, "pads", pads, 4));
    must(rondo__op_set_int(&r->op, "channels_last", 1));
    set_input(r, 0, RONDO_DTYPE_U8, x);
    set_input(r, 1, RONDO_DTYPE_F32, scalar);
    set_input(r, 2, RONDO_DTYPE_U8, scalar);
    set_weights(r, 3, w);
    set_input(r, 4, RONDO_DTYPE_F32, filters);
    set_weights(r, 5, scalar);
    ((int8_t *)r->constants[5].data)[0] = 0;
    set_input(r, 6, RONDO_DTYPE_F32, scalar);
    set_input(r, 7, RONDO_DTYPE_U8, scalar);
    set_input(r, 8, RONDO_DTYPE_I32, filters);
    r->output = (rondo__tensor_info){.dtype = RONDO_DTYPE_U8,
                                     .is_shape_known = true,
                                     .shape = {4, {p->batch, out, out, p->filters}}};
}

static double count_operations(const problem *p) {
    if (p->filters == 0) {
        return 2.0 * (double)p->m * (double)p->n * (double)p->k;
    }
    const double pixels = (double)p->batch * (double)get_out(p) * (double)get_out(p);
    return 2.0 * pixels * (double)p->filters * (double)p->channels *
           (double)(p->kernel * p->kernel);
}

static const char *describe(const problem *p, char *text, size_t text_bytes) {
    if (p->filters == 0) {
        (void)snprintf(text, text_bytes, "%s", p->name);
    } else {
        (void)snprintf(text, text_bytes, "%s %lldx%lld %lld %lld to %lld, %lldx%lld by %lld",
                       p->name, (long long)p->batch, (long long)p->size, (long long)p->size,
                       (long long)p->channels, (long long)p->filters, (long long)p->kernel,
                       (long long)p->kernel, (long long)p->stride);
    }
    return text;
}

static void measure(rondo_device *device, rondo_stream *stream, const problem *p,
                    rondo_tuning tuning) {
    rondo__weight_account account = {.stream = stream};
    rondo__weight_list weights;
    rondo__kernel *kernel = NULL;
    request r = {0};
    char text[NAME_BYTES];
    if (p->filters > 0) {
        make_convolution(p, &r);
    } else {
        make_product(p, &r);
    }
    r.op.opset = RONDO_OP_OPSET_MAX;
    must(rondo__weight_store_create(device, RONDO_MEMORY_DEVICE, &account.store));
    rondo__weight_list_init(&account, &weights);
    const rondo__kernel_request asked = {
        .device = device,
        .op = &r.op,
        .input_count = INPUTS_MAX,
        .inputs = r.inputs,
        .output_count = 1,
        .outputs = &r.output,
        .weights = &weights,
        .tuning = tuning,
    };
    g_plain_us = g_tensor_us = 0;
    must(rondo__kernel_prepare(&asked, &kernel));
    const double operations = count_operations(p);
    printf("%-44s %9.2f %8.1f %9.2f %8.1f %6.1f  %s\n", describe(p, text, sizeof text), g_plain_us,
           operations / g_plain_us * 1e-6, g_tensor_us, operations / g_tensor_us * 1e-6,
           g_plain_us / g_tensor_us, g_tensor_name);
    (void)fflush(stdout);
    rondo__kernel_destroy(kernel);
    rondo__weight_list_cut(&weights, 0);
    rondo__weight_store_destroy(account.store);
    for (size_t i = 0; i < INPUTS_MAX; ++i) {
        rondo_tensor_deinit(&r.constants[i]);
    }
    rondo__op_deinit(&r.op);
}

int main(int argc, char **argv) {
    const char *name = "cuda:0", *only = NULL;
    char folder[] = "/tmp/rondo_byte_products_XXXXXX";
    rondo_tuning tuning = RONDO_TUNING_FAST;
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--full") == 0) {
            tuning = RONDO_TUNING_FULL;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            name = argv[i];
        }
    }
    if (mkdtemp(folder) == NULL || setenv("RONDO_CACHE_DIR", folder, 1) != 0) {
        fprintf(stderr, "%s: no folder for kernels\n", folder);
        return 2;
    }
    rondo_log_set_level(RONDO_LOG_DEBUG);
    rondo_log_set_sink(listen, NULL);
    must(rondo_device_open(name, &device));
    must(rondo_stream_create(device, NULL, &stream));
    printf("%-44s %9s %8s %9s %8s %6s  %s\n", "", "plain us", "TOPS", "tensor us", "TOPS", "ratio",
           "plan");
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i) {
        char text[NAME_BYTES];
        if (only == NULL || strstr(describe(&problems[i], text, sizeof text), only) != NULL) {
            measure(device, stream, &problems[i], tuning);
        }
    }
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    printf("kernels are left in %s\n", folder);
    return 0;
}
