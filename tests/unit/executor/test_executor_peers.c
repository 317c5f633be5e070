// Ops on several GPUs of the fake driver: results equal those of the host bit for bit, eager,
// captured and replayed, with a direct way between the GPUs and without one; each tensor crosses
// once in a run and direction; streams are ordered by events; what cannot be done is refused.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_random.h"
#include "support/models/placed_program.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { GPUS = 3, RUNS = PLACED_RUNS, COUNT = PLACED_COUNT };

static rondo_device *g_gpus[GPUS];
static rondo_device *g_host;

static void open_all(bool has_no_peers) {
    const fake_cuda_options options = {.device_count = GPUS,
                                       .driver_version = 13000,
                                       .has_get_proc_address = true,
                                       .has_no_peers = has_no_peers};
    placed_open(&options, g_gpus, &g_host);
    fake_random_set_kernels();
}

static void close_all(void) {
    placed_close(g_gpus, GPUS, g_host);
}

// ---- stories ----------------------------------------------------------------------------------

typedef struct counts {
    uint64_t to_device, to_host, between;  // copies of one run
    uint64_t stopped;
    uint64_t segments;
} counts;

typedef struct story {
    const char *what;
    placed_node nodes[PLACED_NODES_MAX];
    const char *outputs[4];
    counts direct;
    counts detour;  // where the GPUs have no way to each other
} story;

static const story stories[] = {
    {"there and back",
     {{"Relu", {"x"}, "a", NULL}, {"Neg", {"a"}, "b", "gpu:1"}, {"Abs", {"b"}, "y", NULL}},
     {"y"},
     {0, 0, 2, 0, 3},
     {2, 2, 0, 0, 3}},
    {"read twice, by several",
     {{"Relu", {"x"}, "a", NULL},
      {"Neg", {"a"}, "b", "gpu:1"},
      {"Add", {"a", "b"}, "c", "gpu:1"},
      {"Abs", {"a"}, "d", "gpu:2"},
      {"Add", {"c", "d"}, "e", "gpu:2"},
      {"Add", {"e", "b"}, "y", NULL}},
     {"y"},
     {0, 0, 5, 0, 5},
     {5, 4, 0, 0, 5}},
    {"through views",
     {{"Relu", {"x"}, "a", NULL},
      {"Reshape", {"a", "square"}, "s", NULL},
      {"Neg", {"s"}, "b", "gpu:1"},
      {"Neg", {"a"}, "c", "gpu:1"},
      {"Flatten", {"b"}, "f", NULL},
      {"Abs", {"f"}, "y", NULL},
      {"Abs", {"c"}, "z", NULL}},
     {"y", "z"},
     {0, 0, 3, 0, 3},
     {3, 3, 0, 0, 3}},
    {"inputs and outputs are there alone",
     {{"Neg", {"x"}, "y", "gpu:1"}, {"Abs", {"x"}, "z", "gpu:2"}},
     {"y", "z"},
     {2, 2, 0, 0, 2},
     {2, 2, 0, 0, 2}},
    {"an input for all",
     {{"Neg", {"x"}, "a", "gpu:1"},
      {"Abs", {"x"}, "b", "cpu"},
      {"Relu", {"x"}, "c", NULL},
      {"Add", {"a", "b"}, "d", NULL},
      {"Add", {"d", "c"}, "y", NULL}},
     {"y"},
     {1, 0, 2, 0, 3},
     {3, 1, 0, 0, 3}},
    {"the processor between two GPUs",
     {{"Neg", {"x"}, "a", "gpu:1"},
      {"Abs", {"a"}, "b", "cpu"},
      {"Relu", {"b"}, "c", "gpu:2"},
      {"Neg", {"c"}, "d", "cpu"},
      {"Add", {"d", "x"}, "y", NULL}},
     {"y"},
     {2, 2, 1, 0, 4},
     {3, 3, 0, 0, 5}},
    {"weights on both",
     {{"Add", {"x", "row"}, "a", "gpu:1"},
      {"Add", {"a", "row"}, "b", "gpu:1"},
      {"Add", {"b", "row"}, "c", NULL},
      {"Add", {"c", "x"}, "y", "gpu:1"}},
     {"y"},
     {1, 1, 2, 0, 3},
     {3, 3, 0, 0, 3}},
    {"memory is used again",
     {{"Relu", {"x"}, "a", NULL},
      {"Neg", {"a"}, "b", "gpu:1"},
      {"Neg", {"a"}, "c", NULL},
      {"Abs", {"c"}, "d", NULL},
      {"Neg", {"d"}, "e", NULL},
      {"Abs", {"b"}, "f", "gpu:1"},
      {"Add", {"e", "f"}, "g", "gpu:1"},
      {"Neg", {"g"}, "h", "gpu:1"},
      {"Add", {"h", "e"}, "y", NULL}},
     {"y"},
     {0, 0, 3, 0, 3},
     {3, 3, 0, 0, 3}},
    {"a shape that depends on data",
     {{"Relu", {"x"}, "a", "gpu:1"}, {"NonZero", {"a"}, "y", NULL}, {"Neg", {"a"}, "z", NULL}},
     {"y", "z"},
     {1, 1, 1, 3, 2},
     {2, 2, 0, 4, 2}},  // the count, and what goes through the processor
};

static void expect_counts(const rondo_executor *executor, const counts *want, const char *what) {
    rondo_transfer_stats have = {.struct_size = sizeof have};
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_transfers(executor, &have));
    OK(rondo_executor_get_stats(executor, &stats));
    const uint64_t stopped = have.synchronous_to_device.count + have.synchronous_to_host.count +
                             have.synchronous_between_devices.count;
    if (have.to_device.count != RUNS * want->to_device ||
        have.to_host.count != RUNS * want->to_host ||
        have.between_devices.count != RUNS * want->between || stopped != RUNS * want->stopped ||
        stats.segment_count != want->segments) {
        fail_msg(
            "%s: in %d runs %d copies to a GPU, %d to the host, %d between, %d waited for; %d "
            "segments",
            what, RUNS, (int)have.to_device.count, (int)have.to_host.count,
            (int)have.between_devices.count, (int)stopped, (int)stats.segment_count);
    }
}

static void run_story(const story *s, int gpu_number, const rondo_executor_options *options,
                      bool waits, const counts *want) {
    rondo_program *program = placed_build(s->nodes, s->outputs);
    rondo_executor *gpu;
    rondo_executor *host;
    OK(rondo_executor_create(program, g_gpus[gpu_number], options, &gpu));
    OK(rondo_program_set_place(program, "*", "all"));
    OK(rondo_executor_create(program, g_host, NULL, &host));
    placed_compare(gpu, host, s->outputs, s->what, waits);
    if (want != NULL) {
        expect_counts(gpu, want, s->what);
    }
    rondo_executor_destroy(gpu);
    rondo_executor_destroy(host);
    rondo_program_destroy(program);
}

TEST(test_executor_peers__stories) {
    static const rondo_executor_options rows[] = {
        {.struct_size = sizeof rows[0]},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_OFF},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_ON, .op_by_op = true},
        {.struct_size = sizeof rows[0], .branches = RONDO_BRANCHES_ON},
    };
    for (int detour = 0; detour < 2; ++detour) {
        open_all(detour > 0);
        for (size_t i = 0; i < sizeof stories / sizeof *stories; ++i) {
            const story *s = &stories[i];
            const counts *want = detour > 0 ? &s->detour : &s->direct;
            for (size_t o = 0; o < sizeof rows / sizeof *rows; ++o) {
                run_story(s, 0, &rows[o], true, want);
            }
            run_story(s, 0, NULL, false, want);
            run_story(s, 1, NULL, true, NULL);  // gpu:1 is the executor's own
        }
        close_all();
    }
}

// Each run in both ways, compared: on each GPU.
TEST(test_executor_peers__self_checks) {
    const rondo_executor_options options = {.struct_size = sizeof options, .self_check_every = 1};
    open_all(false);
    for (size_t i = 0; i < sizeof stories / sizeof *stories; ++i) {
        run_story(&stories[i], 0, &options, true, NULL);
    }
    rondo_program *program = placed_build(stories[0].nodes, stories[0].outputs);
    rondo_executor *gpu;
    rondo_self_check_report report = {.struct_size = sizeof report};
    placed_feeds f;
    OK(rondo_executor_create(program, g_gpus[0], &options, &gpu));
    placed_fill(&f, 0);
    OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
    OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
    OK(rondo_executor_get_self_check(gpu, &report));
    assert_int_equal(report.segment_count, 3);
    assert_false(report.is_different);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
    close_all();
}

// ---- order ------------------------------------------------------------------------------------

// The processor waits once in a run that is waited for, and not at all in one that is not; the
// streams wait for each other: at the begin, at each crossing, at the end.
TEST(test_executor_peers__events_order_the_streams) {
    open_all(false);
    rondo_program *program = placed_build(stories[0].nodes, stories[0].outputs);
    rondo_executor *gpu;
    placed_feeds f;
    OK(rondo_executor_create(program, g_gpus[0], NULL, &gpu));
    placed_fill(&f, 0);
    for (int run = 0; run < RUNS; ++run) {
        OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
    }
    const uint64_t waits = fake_cuda_count_calls("cuStreamWaitEvent");
    const uint64_t synchronized = fake_cuda_count_calls("cuStreamSynchronize");
    const uint64_t launches = fake_cuda_count_calls("cuGraphLaunch");
    OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
    assert_int_equal(fake_cuda_count_calls("cuGraphLaunch") - launches, 3);
    assert_int_equal(fake_cuda_count_calls("cuStreamWaitEvent") - waits, 4);
    assert_true(fake_cuda_count_calls("cuStreamSynchronize") - synchronized <= 2);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
    close_all();
}

// ---- where everything is ----------------------------------------------------------------------

static void expect_described(rondo_executor *executor, const char *text) {
    text_sink sink = {{0}, 0};
    OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, text_sink_append, &sink));
    if (strstr(sink.text, text) == NULL) {
        fail_msg("no \"%s\" in\n%s", text, sink.text);
    }
}

// By a pattern, before the first run and behind it.
TEST(test_executor_peers__queries) {
    static const char *const places[] = {"N*=gpu:1", "Abs=gpu:0"};
    static const placed_node nodes[] = {{"Relu", {"x"}, "a", NULL},
                                        {"Neg", {"a"}, "b", NULL},
                                        {"Add", {"b", "row"}, "c", "gpu:1"},
                                        {"Abs", {"c"}, "y", NULL},
                                        {0}};
    static const char *const outputs[] = {"y", NULL};
    open_all(false);
    rondo_program *program = placed_build(nodes, outputs);
    rondo_executor *gpu;
    const rondo_executor_options options = {
        .struct_size = sizeof options, .place = places, .place_count = 2};
    OK(rondo_executor_create(program, g_gpus[0], &options, &gpu));
    for (int run = 0; run < 3; ++run) {
        placed_feeds f;
        placed_fill(&f, run);
        placed_expect_place(gpu, RONDO_PLACEMENT_OP, "a", "gpu", "has a kernel");
        placed_expect_place(gpu, RONDO_PLACEMENT_OP, "b", "gpu:1", "options.place");
        placed_expect_place(gpu, RONDO_PLACEMENT_OP, "c", "gpu:1", "rondo_builder_begin_place");
        placed_expect_place(gpu, RONDO_PLACEMENT_OP, "y", "gpu", "options.place");
        placed_expect_place(gpu, RONDO_PLACEMENT_TENSOR, "b", "gpu:1", "make or read");
        placed_expect_place(gpu, RONDO_PLACEMENT_TENSOR, "row", "gpu:1", "a constant");
        placed_expect_place(gpu, RONDO_PLACEMENT_TRANSFER, "a", "gpu:1", "reads it");
        placed_expect_place(gpu, RONDO_PLACEMENT_TRANSFER, "c", "gpu", "reads it");
        expect_described(gpu, "on cuda:1, captured; the next op is on another device");
        expect_described(gpu, "  gpu:1 Neg b: options.place");
        OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(gpu, &stats));
    assert_int_equal(stats.constant_bytes, COUNT * sizeof(float));  // on gpu:1 alone
    assert_int_equal(stats.op_count, 4);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
    close_all();
}

typedef struct told {
    int count;
    char latest[256];
} told;

static void see(void *user_data, const rondo_log_record *record) {
    told *t = user_data;
    if (strstr(record->message, "from cuda:0 to cuda:1") != NULL) {
        t->count += 1;
        (void)snprintf(t->latest, sizeof t->latest, "%s", record->message);
    }
}

TEST(test_executor_peers__transfers_are_told) {
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .graphs = RONDO_GRAPHS_OFF};
    open_all(false);
    rondo_program *program = placed_build(stories[0].nodes, stories[0].outputs);
    rondo_executor *gpu;
    placed_feeds f;
    told t = {0};
    OK(rondo_executor_create(program, g_gpus[0], &options, &gpu));
    placed_fill(&f, 0);
    rondo_log_set_record_sink(see, &t);
    OK(rondo_log_set_levels("device=debug"));
    OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
    rondo_log_set_level(RONDO_LOG_ERROR);
    rondo_log_set_record_sink(NULL, NULL);
    assert_int_equal(t.count, 1);
    assert_string_equal(t.latest,
                        "transfer: Neg \"b\" takes \"a\" f32 [8] from cuda:0 to cuda:1, "
                        "32 bytes, in the background");
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
    close_all();
}

// ---- what cannot be done ----------------------------------------------------------------------

TEST(test_executor_peers__refusals) {
    static const struct {
        const char *entry;
        const char *text;
    } rows[] = {
        {"a=gpu:5", "\"gpu:5\" by options.place: "},
        {"a=gpu:5", "cuda:5"},
        {"h=gpu:1", "Normalizer node \"h\" is placed on \"gpu:1\""},
        {"r=gpu:1", "it draws random numbers"},
        {"n=gpu:1", "its result shape depends on data"},
    };
    static const placed_node nodes[] = {{"Relu", {"x"}, "a", NULL},
                                        {"RandomNormalLike", {"a"}, "r", NULL},
                                        {"ai.onnx.ml.Normalizer", {"r"}, "h", NULL},
                                        {"NonZero", {"h"}, "n", NULL},
                                        {0}};
    static const char *const outputs[] = {"n", NULL};
    open_all(false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_program *program = placed_build(nodes, outputs);
        rondo_executor *executor = NULL;
        const rondo_executor_options options = {
            .struct_size = sizeof options, .place = &rows[i].entry, .place_count = 1};
        rondo_status status = rondo_executor_create(program, g_gpus[0], &options, &executor);
        if (status == RONDO_STATUS_OK) {
            placed_feeds f;
            placed_fill(&f, 0);
            status = rondo_executor_run(executor, f.list, 2, NULL, 0);
        }
        EXPECT(UNSUPPORTED, rows[i].text, status);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
    }
    close_all();
}

// A run cannot be recorded; device tensors are copied.
TEST(test_executor_peers__device_tensors) {
    open_all(false);
    rondo_program *program = placed_build(stories[0].nodes, stories[0].outputs);
    rondo_executor *gpu;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_tensor x;
    rondo_tensor y;
    placed_feeds f;
    const rondo_shape shape = {1, {COUNT}};
    OK(rondo_stream_create(g_gpus[0], NULL, &stream));
    OK(rondo_executor_create(program, g_gpus[0], NULL, &gpu));
    OK(rondo_tensor_init_device(g_gpus[0], RONDO_DTYPE_F32, &shape, &x));
    OK(rondo_tensor_init_device(g_gpus[0], RONDO_DTYPE_F32, &shape, &y));
    rondo_binding fetch = {"y", y};
    for (int run = 0; run < RUNS; ++run) {
        float values[COUNT];
        rondo_tensor to = {RONDO_DTYPE_F32, shape, values, NULL, NULL};
        placed_fill(&f, run);
        OK(rondo_tensor_copy(stream, &f.list[0].tensor, &x));
        OK(rondo_stream_synchronize(stream));
        f.list[0].tensor = x;
        OK(rondo_executor_run(gpu, f.list, 2, &fetch, 1));
        OK(rondo_tensor_copy(stream, &y, &to));
        OK(rondo_stream_synchronize(stream));
        for (int k = 0; k < COUNT; ++k) {
            const float value = (float)(k - 3 + run);
            assert_true(values[k] == (value > 0 ? value : 0));
        }
    }
    OK(rondo_graph_create(g_gpus[0], NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    EXPECT(UNSUPPORTED, "Neg node \"b\" cannot be recorded: it runs on cuda:1",
           rondo_executor_record(gpu, stream, f.list, 2, &fetch, 1));
    rondo_graph_capture_abort(graph);
    rondo_graph_destroy(graph);
    rondo_tensor_deinit(&x);
    rondo_tensor_deinit(&y);
    rondo_stream_destroy(stream);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
    close_all();
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return RUN_TESTS(NULL, NULL);
}
