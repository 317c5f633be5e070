// Profiles of a real GPU: a replayed model's nodes explain its device time, each named by its op;
// a kernel of 50 ms shows as 50 ms from either source. Skipped without a GPU; RONDO_REQUIRE=cuda
// makes that a failure, as well as a CUPTI that does not start.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/device.h"
#include "profile/profile.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { SKIP = 77, LAYERS = 4, ROWS = 4096, COLUMNS = 4096, RUNS = 5 };

static rondo_device *g_device;

static bool is_required(void) {
    const char *required = getenv("RONDO_REQUIRE");
    return required != NULL && strstr(required, "cuda") != NULL;
}

// ---- a model ----------------------------------------------------------------------------------

static const char *const g_ops[2] = {"MatMul", "Softmax"};

// x -> MatMul product<i> -> Softmax share<i>, LAYERS times.
static rondo_program *build(void) {
    const rondo_shape shape = {.rank = 2, .extent = {COLUMNS, COLUMNS}};
    rondo_builder *builder = NULL;
    rondo_program *program = NULL;
    float *w = calloc((size_t)COLUMNS * COLUMNS, sizeof *w);
    assert_non_null(w);
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("v0", RONDO_DTYPE_F32, ROWS, COLUMNS)));
    OK(rondo_builder_add_constant(builder, "w", RONDO_DTYPE_F32, &shape, w));
    char name[16];
    for (int i = 0; i < 2 * LAYERS; ++i) {
        char from[8];
        char to[8];
        (void)snprintf(from, sizeof from, "v%d", i);
        (void)snprintf(to, sizeof to, "v%d", i + 1);
        (void)snprintf(name, sizeof name, "%s%d", i % 2 == 0 ? "product" : "share", i / 2);
        const char *inputs[2] = {from, "w"};
        const char *output = to;
        const rondo_builder_node_options options = {.struct_size = sizeof options, .name = name};
        OK(rondo_builder_add_node(builder, g_ops[i % 2], inputs, i % 2 == 0 ? 2 : 1, &output, 1,
                                  &options));
        if (i == 2 * LAYERS - 1) {
            OK(rondo_builder_add_output(builder, to, NULL));
        }
    }
    program = build_finish(builder);
    free(w);
    return program;
}

static rondo_profile *create(rondo_profile_source source) {
    const rondo_profile_options options = {.struct_size = sizeof options, .source = source};
    rondo_profile *profile = NULL;
    OK(rondo_profile_create(&options, &profile));
    return profile;
}

// Whether the source starts; without RONDO_REQUIRE one that does not is left out.
static bool start(rondo_profile *profile) {
    const rondo_status status = rondo_profile_start(profile);
    if (status == RONDO_STATUS_UNAVAILABLE && !is_required()) {
        print_message("left out: %s\n", rondo_error_get_last()->message);
        return false;
    }
    OK(status);
    return true;
}

// Busy time of all device work; overlaps once. Works stand by their begins.
static uint64_t add_up(const rondo__profile_records *records) {
    uint64_t busy_ns = 0;
    uint64_t end_ns = 0;
    for (size_t i = 0; i < records->work_count; ++i) {
        const rondo__profile_work *work = &records->works[i];
        const uint64_t begin_ns = work->begin_ns > end_ns ? work->begin_ns : end_ns;
        if (work->end_ns > begin_ns) {
            busy_ns += work->end_ns - begin_ns;
            end_ns = work->end_ns;
        }
    }
    return busy_ns;
}

static size_t count_labelled(const rondo__profile_records *records, const char *label) {
    size_t count = 0;
    for (size_t i = 0; i < records->work_count; ++i) {
        count += strcmp(records->works[i].label, label) == 0 ? 1 : 0;
    }
    return count;
}

// The span, or one that it lies in, is of this category.
static bool lies_in(const rondo__profile_records *records, uint64_t span,
                    rondo__span_category category) {
    while (span != 0 && records->spans[span - 1].category != category) {
        span = records->spans[span - 1].parent;
    }
    return span != 0;
}

static void check_model(const rondo__profile_records *records, bool is_replayed,
                        uint64_t compute_ns) {
    const uint64_t busy_ns = add_up(records);
    const double share = (double)busy_ns / (double)compute_ns;
    print_message("%s: %zu pieces of work, %.1f us a run, %.2f %% of the time between events\n",
                  is_replayed ? "replayed" : "eager", records->work_count,
                  (double)busy_ns / 1e3 / RUNS, 100 * share);
    assert_int_equal(records->dropped_count, 0);
    assert_true(share >= 0.95 && share <= 1.02);
    for (size_t i = 0; i < records->work_count; ++i) {
        const rondo__profile_work *work = &records->works[i];
        const rondo__span_category wanted = is_replayed ? RONDO__SPAN_REPLAY : RONDO__SPAN_OP;
        if (!lies_in(records, work->span, wanted)) {
            fail_msg("%s \"%s\" lies in span %llu, \"%s\"", work->name, work->label,
                     (unsigned long long)work->span,
                     work->span != 0 ? records->spans[work->span - 1].name : "");
        }
        assert_true(work->kind != RONDO__WORK_KERNEL || work->name[0] != '\0');
        assert_true(!is_replayed || work->label[0] != '\0');
    }
    for (int i = 0; i < 2 * LAYERS && is_replayed; ++i) {
        char label[32];
        (void)snprintf(label, sizeof label, "%s %s%d", g_ops[i % 2],
                       i % 2 == 0 ? "product" : "share", i / 2);
        const size_t count = count_labelled(records, label);
        assert_true(count >= RUNS && count % RUNS == 0);
    }
}

static void profile_model(rondo_program *program, float *x, bool is_replayed) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .graphs = is_replayed ? RONDO_GRAPHS_ON : RONDO_GRAPHS_OFF};
    rondo_binding feed = BIND("v0", RONDO_DTYPE_F32, x, ROWS, COLUMNS);
    char last[8];
    (void)snprintf(last, sizeof last, "v%d", 2 * LAYERS);
    rondo_binding fetch = {.name = last};
    rondo_executor *executor = NULL;
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    OK(rondo_executor_create(program, g_device, &options, &executor));
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_executor_rerun(executor));
    }
    if (start(profile)) {
        uint64_t compute_ns = 0;
        for (int i = 0; i < RUNS; ++i) {
            rondo_run_times times = {.struct_size = sizeof times};
            OK(rondo_executor_rerun(executor));
            OK(rondo_executor_get_times(executor, &times));
            assert_int_equal(times.was_replayed, is_replayed);
            compute_ns += times.compute_ns;
        }
        OK(rondo_profile_stop(profile));
        check_model(&profile->store.records, is_replayed, compute_ns);
    }
    rondo_profile_destroy(profile);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_executor_destroy(executor);
}

TEST(test_profile_gpu__nodes_explain_a_models_time) {
    rondo_program *program = build();
    float *x = calloc((size_t)ROWS * COLUMNS, sizeof *x);
    assert_non_null(x);
    profile_model(program, x, true);
    profile_model(program, x, false);
    free(x);
    rondo_program_destroy(program);
}

// ---- planted kernels --------------------------------------------------------------------------

static const char g_text[] =
    "__device__ unsigned long long get_now() {\n"
    "    unsigned long long ns;\n"
    "    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(ns));\n"
    "    return ns;\n"
    "}\n"
    "extern \"C\" __global__ void wait_ns(unsigned long long ns) {\n"
    "    const unsigned long long begin = get_now();\n"
    "    while (get_now() - begin < ns) {}\n"
    "}\n";

static void *g_function;

static void launch(rondo_stream *stream, uint64_t ns) {
    const rondo_launch wanted = LAUNCH("wait_ns", g_function, 1, 1, &ns, sizeof ns);
    OK(rondo_stream_launch(stream, &wanted));
}

static void check_duration(const rondo__profile_work *work, uint64_t wanted_ns) {
    const double took_ns = (double)(work->end_ns - work->begin_ns);
    print_message("planted %.3f ms, shown %.3f ms\n", (double)wanted_ns / 1e6, took_ns / 1e6);
    assert_true(took_ns >= 0.98 * (double)wanted_ns && took_ns <= 1.02 * (double)wanted_ns);
}

TEST(test_profile_gpu__a_planted_kernel_shows) {
    static const rondo_profile_source sources[] = {RONDO_PROFILE_SOURCE_CUPTI,
                                                   RONDO_PROFILE_SOURCE_EVENTS};
    const uint64_t planted_ns = 50 * 1000 * 1000;
    for (int i = 0; i < 2; ++i) {
        rondo_graph *graph = NULL;
        rondo_stream *stream = NULL;
        rondo_profile *profile = create(sources[i]);
        OK(rondo_stream_create(g_device, NULL, &stream));
        OK(rondo_graph_create(g_device, NULL, &graph));
        OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_label_push(stream, "planted"));
        launch(stream, planted_ns);
        OK(rondo_label_pop(stream));
        OK(rondo_graph_capture_end(graph));
        OK(rondo_graph_replay(graph, stream));
        OK(rondo_stream_synchronize(stream));
        if (start(profile)) {
            const uint64_t begin_ns = rondo__clock_now_ns();
            OK(rondo_graph_replay(graph, stream));
            OK(rondo_stream_synchronize(stream));
            const uint64_t end_ns = rondo__clock_now_ns();
            OK(rondo_profile_stop(profile));
            const rondo__profile_records *records = &profile->store.records;
            assert_int_equal(records->work_count, 1);
            check_duration(&records->works[0], planted_ns);
            // The device's clock is tied to ours.
            assert_true(records->works[0].begin_ns + 100000 > begin_ns);
            assert_true(records->works[0].end_ns < end_ns + 100000);
            assert_true(lies_in(records, records->works[0].span, RONDO__SPAN_REPLAY));
            if (sources[i] == RONDO_PROFILE_SOURCE_CUPTI) {
                assert_string_equal(records->works[0].name, "wait_ns");
                assert_string_equal(records->works[0].label, "planted");
            }
        }
        rondo_profile_destroy(profile);
        rondo_graph_destroy(graph);
        rondo_stream_destroy(stream);
    }
}

// Labels of nodes inside a recorded graph and inside bodies of conditions, one of which is not
// taken.
TEST(test_profile_gpu__names_nodes_inside_nodes) {
    rondo_graph *inner = NULL;
    rondo_graph *graph = NULL;
    rondo_stream *stream = NULL;
    uint32_t *predicates = NULL;
    rondo_profile *profile = create(RONDO_PROFILE_SOURCE_CUPTI);
    OK(rondo_stream_create(g_device, NULL, &stream));
    OK(rondo_memory_allocate(g_device, RONDO_MEMORY_DEVICE, 64, (void **)&predicates));
    OK(rondo_stream_fill(stream, predicates, 0, 4, 1));
    OK(rondo_stream_fill(stream, predicates + 4, 1, 4, 1));
    OK(rondo_stream_synchronize(stream));
    const rondo_graph_options kept = {.struct_size = sizeof kept, .keep = RONDO_KEEP_TEMPLATE};
    OK(rondo_graph_create(g_device, &kept, &inner));
    OK(rondo_graph_capture_begin(inner, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(stream, "inner"));
    launch(stream, 20000);
    OK(rondo_label_pop(stream));
    OK(rondo_graph_capture_end(inner));

    OK(rondo_graph_create(g_device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(stream, "first"));
    launch(stream, 10000);
    OK(rondo_label_pop(stream));
    for (int i = 0; i < 2; ++i) {
        rondo_scope scope;
        rondo_stream *body = NULL;
        OK(rondo_label_push(stream, i == 0 ? "not taken" : "taken"));
        OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, predicates + 4 * i, 0, &scope));
        OK(rondo_scope_enter(scope, 0, &body));
        launch(body, 30000);
        OK(rondo_scope_leave(scope));
        OK(rondo_scope_end(scope));
        OK(rondo_label_pop(stream));
    }
    OK(rondo_label_push(stream, "last"));
    launch(stream, 40000);
    OK(rondo_label_pop(stream));
    OK(rondo_graph_capture_end(graph));

    rondo_graph *outer = NULL;
    OK(rondo_graph_create(g_device, NULL, &outer));
    OK(rondo_graph_capture_begin(outer, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(stream, "outer"));
    OK(rondo_stream_add_graph(stream, inner));
    OK(rondo_label_pop(stream));
    OK(rondo_graph_capture_end(outer));
    for (int i = 0; i < 2; ++i) {
        OK(rondo_graph_replay(graph, stream));
        OK(rondo_graph_replay(outer, stream));
        OK(rondo_stream_synchronize(stream));
        if (i == 0 && !start(profile)) {
            break;
        }
    }
    if (profile->state == RONDO__PROFILE_RUNNING) {
        OK(rondo_profile_stop(profile));
        const rondo__profile_records *records = &profile->store.records;
        for (size_t i = 0; i < records->work_count; ++i) {
            print_message("%s: \"%s\" %.1f us\n", records->works[i].name, records->works[i].label,
                          (double)(records->works[i].end_ns - records->works[i].begin_ns) / 1e3);
        }
        assert_int_equal(count_labelled(records, "first"), 1);
        assert_int_equal(count_labelled(records, "taken"), 2);  // the condition, the body
        assert_int_equal(count_labelled(records, "not taken"), 1);
        assert_int_equal(count_labelled(records, "last"), 1);
        assert_int_equal(count_labelled(records, "outer/inner"), 1);
        assert_int_equal(records->dropped_count, 0);
    }
    rondo_profile_destroy(profile);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(graph);
    rondo_graph_destroy(inner);
    rondo_memory_free(g_device, predicates);
    rondo_stream_destroy(stream);
}

int main(void) {
    if (rondo_device_open("cuda:0", &g_device) != RONDO_STATUS_OK) {
        printf("%s: %s\n", is_required() ? "failed" : "skipped", rondo_error_get_last()->message);
        return is_required() ? 1 : SKIP;
    }
    if (rondo__device_get_function(g_device, g_text, NULL, 0, "wait_ns", &g_function) !=
        RONDO_STATUS_OK) {
        printf("failed: %s\n", rondo_error_get_last()->message);
        return 1;
    }
    const int result = RUN_TESTS(NULL, NULL);
    rondo_device_release(g_device);
    return result;
}
