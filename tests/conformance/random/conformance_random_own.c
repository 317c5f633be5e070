// Kernels of the caller's own that draw from a generator.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/random/random_support.h"
#include "support/peek.h"
#include "support/short_forms.h"

typedef struct own_arguments {
    rondo_random_range range;
    uint32_t *out;
} own_arguments;

// Four words of each counter.
static void run_own(void *data) {
    const own_arguments *a = data;
    for (uint64_t i = 0; i < a->range.count; ++i) {
        rondo_random_philox(a->range.state[0], 0, a->range.state[1] + a->range.relative + i,
                            a->out + 4 * i);
    }
}
static void fake_own(const void *arguments, size_t argument_bytes) {
    own_arguments copy;
    memcpy(&copy, arguments, argument_bytes);
    run_own(&copy);
}

static const char own_text[] =
    "struct range { const unsigned long long *state; unsigned long long relative, count; };\n"
    "extern \"C\" __global__ void own_kernel(range r, unsigned *out) {\n"
    "    unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < r.count) {\n"
    "        rondo_philox(r.state[0], r.state[1] + r.relative + i, out + 4 * i);\n"
    "    }\n"
    "}\n";

static void *get_own_function(suite_context *context) {
    union {
        rondo_host_function function;
        void *address;
    } own = {.function = run_own};
    if (!context->is_cuda) {
        return own.address;
    }
    suite_set_fake_kernel(context, "own_kernel", fake_own);
    const char *prefix = rondo_random_get_device_text();
    char *text = malloc(strlen(prefix) + sizeof own_text);
    assert_non_null(text);
    strcpy(text, prefix);
    strcat(text, own_text);
    void *function = NULL;
    ASSERT_OK(peek_compile(context->device, text, "own_kernel", &function));
    free(text);
    return function;
}

typedef struct own_launch {
    void *function;
    uint32_t *out;
} own_launch;

static rondo_status launch_range(rondo_stream *stream, const rondo_random_range *range,
                                 const own_launch *own) {
    own_arguments arguments = {.range = *range, .out = own->out};
    const rondo_launch launch =
        LAUNCH("own_kernel", own->function, 1, DRAW_COUNTERS, &arguments, sizeof arguments);
    assert_int_equal(range->count, DRAW_COUNTERS);
    return rondo_stream_launch(stream, &launch);
}

static rondo_status draw_own(rondo_generator *generator, rondo_stream *stream,
                             const own_launch *own) {
    rondo_random_range range;
    rondo_status status = rondo_generator_reserve(generator, stream, DRAW_COUNTERS, &range);
    return status != RONDO_STATUS_OK ? status : launch_range(stream, &range, own);
}

SUITE_CASE(test_conformance_random_own__kernels_reserve_their_range) {
    rondo_generator *generator = suite_create_generator(context, 6);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_stream *stream = suite_create_stream(context);
    uint32_t *out = suite_allocate(context, RONDO_MEMORY_DEVICE, 4 * 64);
    own_launch inside = {.function = get_own_function(context), .out = out + 64};
    own_launch eager = {.function = inside.function, .out = out + 192};
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_draw(generator, stream, out));
    ASSERT_OK(draw_own(generator, stream, &inside));
    ASSERT_OK(suite_draw(generator, stream, out + 128));
    ASSERT_OK(rondo_graph_capture_end(graph));
    for (uint64_t i = 0; i < 3; ++i) {
        ASSERT_OK(draw_own(generator, stream, &eager));
        ASSERT_OK(rondo_graph_replay(graph, stream));
        ASSERT_DRAWN(context, out + 192, 6, i * 64);
        ASSERT_DRAWN(context, out, 6, i * 64 + 16);
        ASSERT_DRAWN(context, out + 64, 6, i * 64 + 32);
        ASSERT_DRAWN(context, out + 128, 6, i * 64 + 48);
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_generator_release(generator);
}
