// Where ops run, on a GPU of the fake driver: results equal those of the host bit for bit, eager
// and replayed; each tensor crosses once in a run and direction, and only where it must; what
// cannot be done is refused by name.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/build_node.h"
#include "support/models/placed_program.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { COUNT = PLACED_COUNT, RUNS = PLACED_RUNS, BYTES = COUNT * sizeof(float) };

static rondo_device *g_gpu;
static rondo_device *g_host;

static int open_all(void **state) {
    (void)state;
    placed_open(NULL, &g_gpu, &g_host);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    placed_close(&g_gpu, 1, g_host);
    return 0;
}

typedef struct counts {
    uint64_t to_device, to_host, stopped;  // copies of one run
    uint64_t segments, bypassed;
    uint64_t nodes;  // of the graphs, op by op; 0: any
} counts;

static void expect_counts(const rondo_executor *executor, const counts *want, const char *what) {
    rondo_transfer_stats have = {.struct_size = sizeof have};
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_transfers(executor, &have));
    OK(rondo_executor_get_stats(executor, &stats));
    assert_int_equal(have.run_count, RUNS);
    const uint64_t stopped = have.synchronous_to_device.count + have.synchronous_to_host.count;
    if (have.to_device.count != RUNS * want->to_device ||
        have.to_host.count != RUNS * want->to_host || stopped != RUNS * want->stopped ||
        stats.segment_count != want->segments || stats.bypassed_count != want->bypassed ||
        (want->nodes != 0 && stats.node_count != 0 && stats.node_count != want->nodes)) {
        fail_msg(
            "%s: in %d runs %d copies to the GPU, %d to the host, %d of them waited for; %d "
            "segments, %d bypassed, %d nodes",
            what, RUNS, (int)have.to_device.count, (int)have.to_host.count, (int)stopped,
            (int)stats.segment_count, (int)stats.bypassed_count, (int)stats.node_count);
    }
}

// ---- what crosses -------------------------------------------------------------------------------

typedef struct story {
    const char *what;
    placed_node nodes[PLACED_NODES_MAX];
    const char *outputs[4];
    counts want;
} story;

static const story stories[] = {
    {"there and back",
     {{"Relu", {"x"}, "a", NULL}, {"Neg", {"a"}, "b", "cpu"}, {"Abs", {"b"}, "y", NULL}},
     {"y"},
     {1, 1, 0, 1, 0, 0}},
    {"read twice",
     {{"Relu", {"x"}, "a", NULL},
      {"Neg", {"a"}, "b", "cpu"},
      {"Add", {"a", "b"}, "c", "cpu"},
      {"Abs", {"b"}, "d", NULL},
      {"Add", {"c", "d"}, "y", NULL},
      {"Neg", {"c"}, "z", NULL}},
     {"y", "z"},
     {2, 1, 0, 1, 0, 0}},
    {"through views",
     {{"Relu", {"x"}, "a", NULL},
      {"Reshape", {"a", "square"}, "s", NULL},
      {"Neg", {"s"}, "b", "cpu"},
      {"Neg", {"a"}, "c", "cpu"},
      {"Flatten", {"b"}, "f", NULL},
      {"Abs", {"f"}, "y", NULL},
      {"Abs", {"c"}, "z", NULL}},
     {"y", "z"},
     {2, 1, 0, 1, 0, 0}},
    {"an input for both",
     {{"Relu", {"x"}, "y", NULL}, {"Neg", {"x"}, "z", "cpu"}},
     {"y", "z"},
     {0, 0, 0, 1, 0, 0}},
    {"only the processor",
     {{"Relu", {"x"}, "a", "cpu"}, {"Neg", {"a"}, "y", "cpu"}},
     {"y"},
     {0, 0, 0, 1, 0, 1}},  // one host function
    {"in turn",
     {{"Relu", {"x"}, "a", "cpu"},
      {"Neg", {"a"}, "b", NULL},
      {"Neg", {"x"}, "c", "cpu"},
      {"Abs", {"c"}, "d", "cpu"}},
     {"b", "d"},
     {1, 0, 0, 1, 0, 2}},  // those of the processor go ahead
    {"a table",
     {{"Gather", {"table", "i"}, "a", "cpu"}, {"Add", {"a", "x"}, "y", NULL}},
     {"y"},
     {1, 0, 0, 1, 0, 0}},
    {"no kernel on the GPU",
     {{"Relu", {"x"}, "a", NULL},
      {"ai.onnx.ml.Normalizer", {"a"}, "s", NULL},
      {"Neg", {"s"}, "y", NULL}},
     {"y"},
     {1, 1, 0, 1, 0, 0}},
    {"a shape that depends on data",
     {{"Relu", {"x"}, "a", NULL}, {"NonZero", {"a"}, "y", NULL}, {"Neg", {"a"}, "z", NULL}},
     {"y", "z"},
     {0, 1, 1, 1, 0, 4}},  // Relu, Neg, NonZero, and the copy of its count
    {"a shape that depends on data, on the processor",
     {{"Relu", {"x"}, "a", NULL}, {"NonZero", {"a"}, "y", "cpu"}, {"Neg", {"a"}, "z", NULL}},
     {"y", "z"},
     {0, 1, 1, 1, 1, 0}},
};

static void run_story(const story *s, const rondo_executor_options *options, bool waits) {
    rondo_program *program = placed_build(s->nodes, s->outputs);
    rondo_executor *gpu;
    rondo_executor *host;
    OK(rondo_executor_create(program, g_gpu, options, &gpu));
    OK(rondo_executor_create(program, g_host, NULL, &host));
    placed_compare(gpu, host, s->outputs, s->what, waits);
    expect_counts(gpu, &s->want, s->what);
    rondo_executor_destroy(gpu);
    rondo_executor_destroy(host);
    rondo_program_destroy(program);
}

TEST(test_executor_placement__stories) {
    static const rondo_executor_options rows[] = {
        {.struct_size = sizeof rows[0]},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_OFF},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_ON, .op_by_op = true},
    };
    for (size_t i = 0; i < sizeof stories / sizeof *stories; ++i) {
        for (size_t o = 0; o < sizeof rows / sizeof *rows; ++o) {
            run_story(&stories[i], &rows[o], true);
        }
        run_story(&stories[i], NULL, false);
    }
}

// ---- who says so --------------------------------------------------------------------------------

static const placed_node chain[] = {
    {"Relu", {"x"}, "a", NULL}, {"Neg", {"a"}, "b", NULL}, {"Abs", {"b"}, "y", NULL}, {0}};
static const char *const only_y[] = {"y", NULL};

// The place and the reason of an op or a tensor; fails where there is none of this name.
// A scope, a call, an option: the later wins, and says so, before the first run and after it.
TEST(test_executor_placement__askers) {
    static const struct {
        const char *call;
        const char *option;
        const char *place;
        const char *reason;
    } rows[] = {
        {NULL, NULL, "cpu", "rondo_builder_begin_place"},
        {"gpu", NULL, "gpu", "rondo_program_set_place"},
        {"gpu:0", "b=cpu", "cpu", "options.place"},
        {"all", NULL, "gpu", ""},
        {NULL, "N?g=all", "gpu", ""},
        {"cpu", "*=gpu", "gpu", "options.place"},
    };
    const placed_node nodes[] = {chain[0], {"Neg", {"a"}, "b", "cpu"}, chain[2], {0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_program *program = placed_build(nodes, only_y);
        const rondo_executor_options options = {.struct_size = sizeof options,
                                                .place = &rows[i].option,
                                                .place_count = rows[i].option != NULL ? 1 : 0,
                                                .op_by_op = true};
        rondo_executor *gpu;
        rondo_executor *host;
        if (rows[i].call != NULL) {
            OK(rondo_program_set_place(program, "Neg", rows[i].call));
        }
        OK(rondo_executor_create(program, g_gpu, &options, &gpu));
        placed_expect_place(gpu, RONDO_PLACEMENT_OP, "b", rows[i].place, rows[i].reason);
        OK(rondo_program_set_place(program, "*", "all"));
        OK(rondo_executor_create(program, g_host, NULL, &host));
        placed_compare(gpu, host, only_y, "askers", true);
        placed_expect_place(gpu, RONDO_PLACEMENT_OP, "b", rows[i].place, rows[i].reason);
        placed_expect_place(gpu, RONDO_PLACEMENT_TENSOR, "b", rows[i].place, "make or read it");
        placed_expect_place(gpu, RONDO_PLACEMENT_TENSOR, "y", "gpu", "make or read it");
        placed_expect_place(host, RONDO_PLACEMENT_TENSOR, "y", "cpu", "make or read it");
        rondo_executor_destroy(gpu);
        rondo_executor_destroy(host);
        rondo_program_destroy(program);
    }
}

// Places are kept in files.
TEST(test_executor_placement__files) {
    char path[] = "/tmp/rondo_place_XXXXXX";
    const placed_node nodes[] = {
        chain[0], {"Neg", {"a"}, "b", "cpu"}, {"Abs", {"b"}, "y", "gpu:3"}, {0}};
    static const char *const want[] = {"all", "cpu", "gpu:3"};
    rondo_program *built = placed_build(nodes, only_y);
    rondo_program *loaded;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    (void)close(file);
    OK(rondo_program_save_onnx(built, path));
    OK(rondo_program_load_onnx(path, &loaded));
    (void)unlink(path);
    for (size_t n = 0; n < 3; ++n) {
        rondo_program_node facts = {.struct_size = sizeof facts};
        OK(rondo_program_get_node(loaded, n, &facts));
        assert_string_equal(facts.place, want[n]);
    }
    rondo_program_destroy(built);
    rondo_program_destroy(loaded);
}

// ---- by themselves ------------------------------------------------------------------------------

// Whole numbers that only decide a shape are computed where they are read; nothing is copied for
// them.
TEST(test_executor_placement__shape_arithmetic) {
    const placed_node nodes[] = {{"Relu", {"x"}, "a", NULL},        {"Shape", {"a"}, "s", NULL},
                                 {"Add", {"s", "i"}, "t", NULL},    {"Sub", {"t", "i"}, "u", NULL},
                                 {"Expand", {"a", "u"}, "y", NULL}, {0}};
    rondo_program *program = placed_build(nodes, only_y);
    const rondo_executor_options options = {
        .struct_size = sizeof options, .no_folding = true, .op_by_op = true};
    rondo_executor *gpu;
    rondo_executor *host;
    OK(rondo_executor_create(program, g_gpu, &options, &gpu));
    OK(rondo_executor_create(program, g_host, NULL, &host));
    placed_compare(gpu, host, only_y, "shape arithmetic", true);
    placed_expect_place(gpu, RONDO_PLACEMENT_OP, "u", "cpu", "ops of the processor read");
    placed_expect_place(gpu, RONDO_PLACEMENT_OP, "a", "gpu", "has a kernel");
    rondo_executor_destroy(gpu);
    rondo_executor_destroy(host);
    rondo_program_destroy(program);
}

// The processor asks for the shapes of what lies on the GPU, and of an input that nobody reads.
TEST(test_executor_placement__shapes_do_not_cross) {
    static const char *const outputs[] = {"y", "z", NULL};
    const placed_node nodes[] = {{"Relu", {"x"}, "a", NULL},  {"Shape", {"a"}, "s", "cpu"},
                                 {"Size", {"i"}, "n", "cpu"}, {"Add", {"s", "n"}, "y", "cpu"},
                                 {"Neg", {"a"}, "z", NULL},   {0}};
    rondo_program *program = placed_build(nodes, outputs);
    const rondo_executor_options options = {
        .struct_size = sizeof options, .no_folding = true, .op_by_op = true};
    rondo_executor *gpu;
    rondo_executor *host;
    OK(rondo_executor_create(program, g_gpu, &options, &gpu));
    OK(rondo_executor_create(program, g_host, NULL, &host));
    placed_compare(gpu, host, outputs, "shapes", true);
    expect_counts(gpu, &(counts){0, 0, 0, 1, 0, 0}, "shapes");
    rondo_executor_destroy(gpu);
    rondo_executor_destroy(host);
    rondo_program_destroy(program);
}

// A table that is larger than the limit stays where it is; only its rows go to the GPU.
TEST(test_executor_placement__large_table) {
    enum { ROWS = 65536 };
    static float table[ROWS * COUNT];
    const rondo_tensor large = {RONDO_DTYPE_F32, {2, {ROWS, COUNT}}, table, NULL, NULL};
    rondo_port ids = {
        .struct_size = sizeof ids, .name = "ids", .dtype = RONDO_DTYPE_I64, .rank = 1};
    ids.extent[0] = 2;
    rondo_program *program;
    rondo_executor *gpu;
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &ids));
    OK(rondo_builder_add_parameter(builder, "table", &large, RONDO_PARAMETER_SHARED));
    OK(rondo_builder_add_embedding(builder, "ids", "table", "rows"));
    build_node(builder, "Neg", "rows", "y", NULL);
    OK(rondo_builder_add_output(builder, "y", NULL));
    program = build_finish(builder);
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .memory_limit_bytes = sizeof table / 2};
    OK(rondo_executor_create(program, g_gpu, &options, &gpu));
    for (int run = 0; run < RUNS; ++run) {
        int64_t rows[] = {run, ROWS - 1};
        float y[2 * COUNT];
        rondo_binding feed = {"ids", {RONDO_DTYPE_I64, {1, {2}}, rows, NULL, NULL}};
        rondo_binding fetch = {"y", {RONDO_DTYPE_F32, {2, {2, COUNT}}, y, NULL, NULL}};
        table[run * COUNT] = (float)run;  // shared: it is read in each run
        table[(ROWS - 1) * COUNT + 1] = (float)(2 * run);
        OK(rondo_executor_run(gpu, &feed, 1, &fetch, 1));
        assert_true(y[0] == (float)-run && y[COUNT + 1] == (float)(-2 * run));
    }
    expect_counts(gpu, &(counts){1, 0, 0, 1, 0, 0}, "a large table");
    placed_expect_place(gpu, RONDO_PLACEMENT_TENSOR, "table", "cpu",
                        "read where the program has it");
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(gpu, &stats));
    assert_int_equal(stats.constant_bytes, 0);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
}

// ---- what cannot be done ------------------------------------------------------------------------

TEST(test_executor_placement__refusals) {
    static const struct {
        bool is_host;
        const char *entries[2];
        rondo_status status;
        const char *text;
    } rows[] = {
        {true,
         {"b=gpu"},
         RONDO_STATUS_UNSUPPORTED,
         "Neg node \"b\" is placed on \"gpu\" by options"},
        {false, {"b=gpu:7"}, RONDO_STATUS_UNSUPPORTED, "is placed on \"gpu:7\" by options"},
        {false, {"b=gpu:7"}, RONDO_STATUS_UNSUPPORTED, "cuda:7"},
        {true, {"b=gpu:1"}, RONDO_STATUS_UNSUPPORTED, "the executor runs on the processor"},
        {true, {"folded=gpu"}, RONDO_STATUS_UNSUPPORTED, "Neg node \"folded\" is placed on"},
        {false, {"Normalizer=gpu"}, RONDO_STATUS_UNSUPPORTED, "Normalizer node \"h\" is placed on"},
        {false, {"b=cpu", "N*=gpu"}, RONDO_STATUS_INVALID, "\"cpu\" of it, and \"N*=gpu\""},
        {false, {"Frob=cpu"}, RONDO_STATUS_INVALID, "matches no op"},
        {false, {"b"}, RONDO_STATUS_INVALID, "no pattern and place"},
        {false, {"b=tpu"}, RONDO_STATUS_INVALID, "\"tpu\" is none of"},
    };
    const placed_node nodes[] = {chain[0],
                                 chain[1],
                                 {"ai.onnx.ml.Normalizer", {"b"}, "h", NULL},
                                 {"Neg", {"row"}, "folded", NULL},
                                 {"Add", {"h", "folded"}, "g", NULL},
                                 {"NonZero", {"g"}, "y", NULL},
                                 {0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_program *program = placed_build(nodes, only_y);
        const rondo_executor_options options = {.struct_size = sizeof options,
                                                .place = rows[i].entries,
                                                .place_count = rows[i].entries[1] != NULL ? 2 : 1};
        rondo_executor *executor = NULL;
        rondo_status status =
            rondo_executor_create(program, rows[i].is_host ? g_host : g_gpu, &options, &executor);
        if (status == RONDO_STATUS_OK) {
            placed_feeds f;
            placed_fill(&f, 0);
            status = rondo_executor_run(executor, f.list, 2, NULL, 0);
        }
        expect_words(status, rows[i].status, rows[i].text, __FILE__, __LINE__);
        rondo_executor_destroy(executor);
        // The same program, asked by itself, beside an executor that has the GPU.
        OK(rondo_program_set_place(program, "Neg", "gpu"));
        OK(rondo_executor_create(program, g_gpu, NULL, &executor));
        rondo_executor *host = NULL;
        EXPECT(UNSUPPORTED, "by rondo_program_set_place",
               rondo_executor_create(program, g_host, NULL, &host));
        rondo_executor_destroy(executor);
        EXPECT(INVALID, "matches no op", rondo_program_set_place(program, "Frob", "cpu"));
        EXPECT(INVALID, "\"cpu:1\" is none of", rondo_program_set_place(program, "b", "cpu:1"));
        rondo_program_destroy(program);
    }
}

TEST(test_executor_placement__builder) {
    rondo_program *program;
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32)));
    EXPECT(STATE, "no scope", rondo_builder_end_place(builder));
    EXPECT(INVALID, "\"here\"", rondo_builder_begin_place(builder, "here"));
    OK(rondo_builder_begin_place(builder, "gpu"));
    OK(rondo_builder_begin_place(builder, "cpu"));
    build_node(builder, "Neg", "x", "a", NULL);
    OK(rondo_builder_end_place(builder));
    build_node(builder, "Neg", "a", "b", NULL);
    OK(rondo_builder_add_output(builder, "b", NULL));
    EXPECT(STATE, "1 scopes of places are open", rondo_builder_finish(builder, &program));
    OK(rondo_builder_end_place(builder));
    OK(rondo_builder_finish(builder, &program));
    for (size_t n = 0; n < 2; ++n) {
        rondo_program_node facts = {.struct_size = sizeof facts};
        OK(rondo_program_get_node(program, n, &facts));
        assert_string_equal(facts.place, n == 0 ? "cpu" : "gpu");
    }
    rondo_builder_destroy(builder);
    rondo_program_destroy(program);
}

static void expect_failure(const placed_node *nodes) {
    rondo_program *program = placed_build(nodes, only_y);
    rondo_executor *gpu;
    OK(rondo_executor_create(program, g_gpu, NULL, &gpu));
    for (int run = 0; run < RUNS; ++run) {
        placed_feeds f;
        placed_fill(&f, run);
        OK(rondo_executor_run(gpu, f.list, 2, NULL, 0));
        f.i = 4;
        EXPECT(BAD_DATA, "Gather node \"g\"", rondo_executor_run(gpu, f.list, 2, NULL, 0));
        assert_string_equal(rondo_error_get_last()->op, "g");
    }
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
}

// An op of the processor that fails ahead of the graphs, or in one, is named, and the next run
// works.
TEST(test_executor_placement__failure) {
    expect_failure((const placed_node[]){{"Gather", {"table", "i"}, "g", "cpu"},
                                         {"Neg", {"g"}, "h", "cpu"},
                                         {"Add", {"h", "x"}, "y", NULL},
                                         {0}});
    expect_failure((const placed_node[]){{"Neg", {"i"}, "m", "gpu"},
                                         {"Neg", {"m"}, "k", "cpu"},
                                         {"Gather", {"table", "k"}, "g", "cpu"},
                                         {"Add", {"g", "x"}, "y", NULL},
                                         {0}});
}

// A table that is set anew is read as it is then, on the processor and on the GPU; and so when the
// executor goes.
TEST(test_executor_placement__new_weights) {
    const placed_node nodes[] = {{"Add", {"x", "row"}, "a", "cpu"},
                                 {"Add", {"a", "row"}, "b", NULL},
                                 {"Neg", {"b"}, "y", NULL},
                                 {0}};
    rondo_program *program = placed_build(nodes, only_y);
    rondo_executor *gpu;
    float row[COUNT] = {0};
    const rondo_tensor fresh = {RONDO_DTYPE_F32, {1, {COUNT}}, row, NULL, NULL};
    OK(rondo_executor_create(program, g_gpu, NULL, &gpu));
    for (int run = 0; run < RUNS; ++run) {
        rondo_binding y = {.name = "y"};
        placed_feeds f;
        placed_fill(&f, run);
        if (run != 1) {
            row[0] = (float)run;
            OK(rondo_executor_set_variable(gpu, "row", &fresh));
        }
        OK(rondo_executor_run(gpu, f.list, 2, &y, 1));
        assert_true(((const float *)y.tensor.data)[0] == -(f.x[0] + 2 * row[0]));
        rondo_tensor_deinit(&y.tensor);
    }
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
}

// Inputs in the GPU's memory, states, and runs that check themselves.
TEST(test_executor_placement__device_feeds) {
    const placed_node nodes[] = {
        {"Neg", {"x"}, "b", "cpu"}, {"Abs", {"x"}, "c", NULL}, {"Add", {"b", "c"}, "y", NULL}, {0}};
    rondo_program *program = placed_build(nodes, only_y);
    const rondo_executor_options options = {.struct_size = sizeof options, .self_check_every = 2};
    rondo_executor *gpu;
    rondo_stream *stream;
    rondo_tensor x;
    placed_feeds f;
    OK(rondo_stream_create(g_gpu, NULL, &stream));
    OK(rondo_executor_create(program, g_gpu, &options, &gpu));
    OK(rondo_tensor_init_device(g_gpu, RONDO_DTYPE_F32, &(rondo_shape){1, {COUNT}}, &x));
    for (int run = 0; run < RUNS; ++run) {
        rondo_binding y = {.name = "y"};
        placed_fill(&f, run);
        OK(rondo_tensor_copy(stream, &f.list[0].tensor, &x));
        OK(rondo_stream_synchronize(stream));
        f.list[0].tensor = x;
        OK(rondo_executor_run(gpu, f.list, 2, &y, 1));
        for (int k = 0; k < COUNT; ++k) {
            const float value = (float)(k - 3 + run);
            assert_true(((const float *)y.tensor.data)[k] == (value < 0 ? -2 * value : 0));
        }
        rondo_tensor_deinit(&y.tensor);
    }
    expect_counts(gpu, &(counts){1, 1, 0, 1, 0, 0}, "device feeds");
    rondo_tensor_deinit(&x);
    rondo_stream_destroy(stream);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
}

static uint64_t count_host_functions(void) {
    return fake_cuda_count_calls("cuLaunchHostFunc") + fake_cuda_count_calls("cuGraphAddHostNode");
}

// Ops of the processor that need nothing of the GPU are computed by the thread that waits for the
// run; behind inputs on the GPU, and where nobody waits, in stream order.
TEST(test_executor_placement__ahead) {
    const placed_node nodes[] = {
        {"Neg", {"x"}, "b", "cpu"}, {"Neg", {"b"}, "c", "cpu"}, {"Abs", {"c"}, "y", NULL}, {0}};
    rondo_program *program = placed_build(nodes, only_y);
    rondo_executor *gpu;
    rondo_stream *stream;
    rondo_tensor x;
    OK(rondo_stream_create(g_gpu, NULL, &stream));
    OK(rondo_executor_create(program, g_gpu, NULL, &gpu));
    OK(rondo_tensor_init_device(g_gpu, RONDO_DTYPE_F32, &(rondo_shape){1, {COUNT}}, &x));
    enum { WAITS, RERUNS, GOES_ON, ON_GPU, WAYS };
    for (int way = WAITS; way < WAYS; ++way) {
        for (int run = 0; run < RUNS; ++run) {
            const uint64_t before = count_host_functions();
            rondo_binding y = {.name = "y"};
            placed_feeds f;
            placed_fill(&f, run);
            if (way == ON_GPU) {
                OK(rondo_tensor_copy(stream, &f.list[0].tensor, &x));
                OK(rondo_stream_synchronize(stream));
                f.list[0].tensor = x;
            }
            if (way == GOES_ON) {
                OK(rondo_executor_run_async(gpu, f.list, 2, &y, 1, NULL));
                OK(rondo_executor_wait(gpu));
            } else if (way == RERUNS && run > 0) {
                OK(rondo_executor_rerun(gpu));
            } else {
                OK(rondo_executor_run(gpu, f.list, 2, &y, 1));
            }
            const bool has_result = y.tensor.data != NULL;
            assert_true(has_result == !(way == RERUNS && run > 0));
            for (int k = 0; has_result && k < COUNT; ++k) {
                const float value = (float)(k - 3 + run);
                assert_true(((const float *)y.tensor.data)[k] == (value < 0 ? -value : value));
            }
            // A lane is brought by a host function, too.
            const uint64_t count = count_host_functions() - before;
            assert_true(way == WAITS || way == RERUNS ? count == 0 : count >= 1);
            rondo_tensor_deinit(&y.tensor);
        }
    }
    rondo_tensor_deinit(&x);
    rondo_stream_destroy(stream);
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return test_run("tests", g_listed, open_all, close_all, NULL, NULL);
}
