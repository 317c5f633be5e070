// Profiles by their numbers: what adds up, what nests, what was planted. On the host, where the
// worker's clock tells of work, and on the fake driver, for copies.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/build_node.h"
#include "support/models/user_ops.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { ROWS_MAX = 512, PLANTED_MS = 50 };

static rondo_device *device;
static rondo_stream *stream;
static rondo_profile *profile;
static rondo_profile_row rows[ROWS_MAX];
static size_t row_count;

// ---- what is profiled -------------------------------------------------------------------------

// Really slept, by the clock.
static _Atomic(uint64_t) slept_ns;

static void sleep_ms(void *arguments) {
    const int64_t ms = *(const int64_t *)arguments;
    const struct timespec time = {.tv_sec = 0, .tv_nsec = (long)ms * 1000000};
    const uint64_t start = rondo__clock_now_ns();
    (void)nanosleep(&time, NULL);
    atomic_fetch_add(&slept_ns, rondo__clock_now_ns() - start);
}

static void put_sleep(rondo_stream *on, const char *name, int64_t ms) {
    OK(rondo_stream_call_host(on, name, sleep_ms, &ms, sizeof ms));
}

static rondo_status launch_sleep(rondo_op_node *node, const rondo_op_launch *launch) {
    rondo_attribute attribute;
    const int64_t ms =
        rondo_op_get_attribute(node, "ms", &attribute) ? attribute.int_value : PLANTED_MS;
    return rondo_stream_call_host(launch->stream, "sleep", sleep_ms, &ms, sizeof ms);
}

static void build_sleeps(size_t count, int64_t ms, rondo_program **out_program) {
    static const char *const attributes[] = {"ms", NULL};
    static const rondo_op_definition definition = {.struct_size = sizeof definition,
                                                   .domain = "test",
                                                   .name = "Sleep",
                                                   ONE_TO_ONE,
                                                   .attributes = attributes,
                                                   .infer = user_ops_infer_same,
                                                   .host = {.launch = launch_sleep},
                                                   .capture = RONDO_OP_CAPTURE_YES,
                                                   .flags = RONDO_OP_IMPURE};
    static bool is_there;
    const rondo_attribute attribute = ATTRIBUTE_INT("ms", ms);
    rondo_builder *builder = NULL;
    if (!is_there) {
        OK(rondo_op_register(&definition));
        is_there = true;
    }
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 1)));
    for (size_t i = 0; i < count; ++i) {
        char names[3][16] = {"x", "y", ""};
        if (i > 0) {
            (void)snprintf(names[0], 16, "t%zu", i);
        }
        if (i + 1 < count) {
            (void)snprintf(names[1], 16, "t%zu", i + 1);
        }
        (void)snprintf(names[2], 16, "sleep_%zu", i);
        const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                    .domain = "test",
                                                    .name = names[2],
                                                    .attributes = &attribute,
                                                    .attribute_count = 1};
        const char *const inputs[] = {names[0]};
        const char *const outputs[] = {names[1]};
        OK(rondo_builder_add_node(builder, "Sleep", inputs, 1, outputs, 1, &options));
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    OK(rondo_builder_finish(builder, out_program));
    rondo_builder_destroy(builder);
}

static void run_sleeps(rondo_executor *executor) {
    float x = 0.0f;
    float y = 0.0f;
    const rondo_shape shape = {.rank = 1, .extent = {1}};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, &x, shape);
    rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, &y, shape);
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
}

// ---- looking at numbers -----------------------------------------------------------------------

static rondo_profile_summary get_summary(void) {
    rondo_profile_summary summary = {.struct_size = sizeof summary};
    OK(rondo_profile_get_summary(profile, &summary));
    return summary;
}

static void get_rows(rondo_profile_key key, bool per_thread) {
    rows[0].struct_size = sizeof rows[0];
    OK(rondo_profile_get_rows(profile, key, per_thread, rows, ROWS_MAX, &row_count));
    assert_true(row_count <= ROWS_MAX);
}

// The row of this name, under the row of that one ("": anywhere); NULL: there is none.
static const rondo_profile_row *find_row(const char *name, const char *parent) {
    for (size_t i = 0; i < row_count; ++i) {
        const bool fits = parent[0] == '\0' || (rows[i].parent != UINT64_MAX &&
                                                strcmp(rows[rows[i].parent].name, parent) == 0);
        if (strcmp(rows[i].name, name) == 0 && fits) {
            return &rows[i];
        }
    }
    return NULL;
}

static const rondo_profile_row *get_row(const char *name, const char *parent) {
    const rondo_profile_row *row = find_row(name, parent);
    if (row == NULL) {
        for (size_t i = 0; i < row_count; ++i) {
            print_error("%*s%s%s\n", (int)rows[i].depth * 2, "", rows[i].is_device_work ? "* " : "",
                        rows[i].name);
        }
        fail_msg("no row %s under %s", name, parent);
    }
    return row;
}

static uint64_t weigh(const rondo_profile_row *row, rondo_profile_key key) {
    return key == RONDO_PROFILE_BY_CALLS     ? row->calls
           : key == RONDO_PROFILE_BY_MIN     ? row->min_ns
           : key == RONDO_PROFILE_BY_MAX     ? row->max_ns
           : key == RONDO_PROFILE_BY_AVERAGE ? row->total_ns / row->calls
           : key == RONDO_PROFILE_BY_GPU     ? row->gpu_ns
                                             : row->total_ns;
}

static void check_row(size_t i, uint64_t region_ns) {
    const rondo_profile_row *row = &rows[i];
    assert_true(row->calls > 0);
    assert_true(row->min_ns <= row->max_ns);
    assert_true(row->total_ns >= row->min_ns * row->calls || row->calls > 1);
    assert_true(row->total_ns <= row->max_ns * row->calls);
    assert_true(row->cpu_ns <= row->total_ns);
    assert_true(!row->is_device_work || row->cpu_ns == 0);
    assert_true(!row->is_device_work || row->gpu_ns <= row->total_ns);
    assert_true(row->gpu_ns <= 2 * region_ns);
    if (row->parent == UINT64_MAX) {
        assert_int_equal(row->depth, 0);
        return;
    }
    assert_true(row->parent < i);
    assert_int_equal(row->depth, rows[row->parent].depth + 1);
    assert_int_equal(row->thread, rows[row->parent].thread);
    assert_true(row->gpu_ns <= rows[row->parent].gpu_ns);
}

// Events under a row fit into it; siblings stand in the order of the key.
static void check_siblings(uint64_t parent, rondo_profile_key key) {
    uint64_t inner_ns = 0;
    const rondo_profile_row *former = NULL;
    for (size_t i = 0; i < row_count; ++i) {
        if (rows[i].parent != parent) {
            continue;
        }
        inner_ns += rows[i].is_device_work ? 0 : rows[i].total_ns;
        assert_true(former == NULL || former->thread != rows[i].thread ||
                    weigh(former, key) >= weigh(&rows[i], key));
        former = &rows[i];
    }
    assert_true(parent == UINT64_MAX || rows[parent].is_device_work ||
                inner_ns <= rows[parent].total_ns);
}

// All that must hold for the numbers of any profile.
static void check_numbers(void) {
    const rondo_profile_summary summary = get_summary();
    assert_true(summary.computation_ns + summary.framework_ns == summary.total_ns);
    assert_true(summary.computation_ns <= summary.device_ns + summary.total_ns);
    for (rondo_profile_key key = RONDO_PROFILE_BY_TOTAL; key <= RONDO_PROFILE_BY_GPU; ++key) {
        for (int per_thread = 0; per_thread < 2; ++per_thread) {
            uint64_t top_ns = 0;
            get_rows(key, per_thread != 0);
            check_siblings(UINT64_MAX, key);
            for (size_t i = 0; i < row_count; ++i) {
                check_row(i, summary.total_ns);
                check_siblings(i, key);
                top_ns += rows[i].depth == 0 && !rows[i].is_device_work ? rows[i].total_ns : 0;
            }
            assert_true(top_ns == summary.total_ns * summary.thread_count);
        }
    }
    get_rows(RONDO_PROFILE_BY_TOTAL, false);
}

// No less than what slept, and no more than all took, however long others had the processor.
static void assert_slept(uint64_t value, uint64_t most) {
    const uint64_t least = atomic_load(&slept_ns);
    if (value < least || value > most) {
        fail_msg("%llu, not from %llu to %llu", (unsigned long long)value,
                 (unsigned long long)least, (unsigned long long)most);
    }
}

// ---- around each test -------------------------------------------------------------------------

static int open_host(void **state) {
    (void)state;
    atomic_store(&slept_ns, 0);
    OK(rondo_device_open("host", &device));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_profile_create(NULL, &profile));
    return 0;
}

static int close_host(void **state) {
    (void)state;
    rondo_profile_destroy(profile);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return 0;
}

// ---- planted ----------------------------------------------------------------------------------

TEST(test_profile__a_planted_op_shows_eager_and_replayed) {
    static const rondo_graphs_mode modes[] = {RONDO_GRAPHS_OFF, RONDO_GRAPHS_ON};
    for (size_t m = 0; m < 2; ++m) {
        rondo_program *program = NULL;
        rondo_executor *executor = NULL;
        const rondo_executor_options options = {.struct_size = sizeof options, .graphs = modes[m]};
        build_sleeps(2, PLANTED_MS, &program);
        OK(rondo_executor_create(program, device, &options, &executor));
        run_sleeps(executor);
        run_sleeps(executor);
        atomic_store(&slept_ns, 0);
        const uint64_t start_ns = rondo__clock_now_ns();
        OK(rondo_profile_start(profile));
        run_sleeps(executor);
        run_sleeps(executor);
        OK(rondo_profile_stop(profile));
        const uint64_t most_ns = rondo__clock_now_ns() - start_ns;
        check_numbers();
        assert_int_equal(get_row("run", "")->calls, 2);
        uint64_t planted_ns = 0;
        for (int i = 0; i < 2; ++i) {
            const char *const names[] = {"Sleep sleep_0", "Sleep sleep_1"};
            const rondo_profile_row *op =
                m == 0 ? get_row("sleep", names[i]) : get_row(names[i], "replay ops 0 to 1");
            assert_true(op->is_device_work);
            assert_int_equal(op->calls, 2);
            planted_ns += op->total_ns;
        }
        assert_slept(planted_ns, most_ns);
        assert_slept(get_row("run", "")->gpu_ns, most_ns);
        assert_slept(get_summary().computation_ns, most_ns);
        assert_true(get_row("run", "")->cpu_ns < get_row("run", "")->total_ns / 2);  // it waited
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
    }
}

enum { NODES = 20 };

// One replay between two events; whether its nodes explain 95 % of the time between them.
static bool do_nodes_explain(rondo_executor *executor) {
    rondo_stream *on = rondo_executor_get_stream(executor);
    rondo_event *events[2];
    int64_t elapsed_ns = 0;
    for (int i = 0; i < 2; ++i) {
        OK(rondo_event_create(device, RONDO_EVENT_TIMED, &events[i]));
    }
    OK(rondo_profile_start(profile));
    OK(rondo_event_record(events[0], on));
    OK(rondo_executor_rerun(executor));
    OK(rondo_event_record(events[1], on));
    OK(rondo_event_synchronize(events[1]));
    OK(rondo_profile_stop(profile));
    OK(rondo_event_get_elapsed_ns(events[0], events[1], &elapsed_ns));
    check_numbers();
    const rondo_profile_row *replay = get_row("replay ops 0 to 19", "run again");
    uint64_t inner_ns = 0;
    for (size_t i = 0; i < NODES; ++i) {
        char label[32];
        (void)snprintf(label, sizeof label, "Sleep sleep_%zu", i);
        inner_ns += get_row(label, "replay ops 0 to 19")->total_ns;
    }
    for (int i = 0; i < 2; ++i) {
        rondo_event_destroy(events[i]);
    }
    return replay->gpu_ns * 100 >= (uint64_t)elapsed_ns * 95 &&
           inner_ns * 100 >= (uint64_t)elapsed_ns * 95;
}

TEST(test_profile__nodes_explain_a_replay) {
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .graphs = RONDO_GRAPHS_ON};
    build_sleeps(NODES, 1, &program);
    OK(rondo_executor_create(program, device, &options, &executor));
    run_sleeps(executor);
    OK(rondo_profile_start(profile));
    run_sleeps(executor);  // with a capture in it
    OK(rondo_profile_stop(profile));
    check_numbers();
    (void)get_row("capture ops 0 to 19", "run");
    (void)get_row("instantiate", "capture ops 0 to 19");
    // Where other programs take the processor between two nodes, nobody explains that time.
    bool is_explained = false;
    for (int attempt = 0; attempt < 30 && !is_explained; ++attempt) {
        is_explained = do_nodes_explain(executor);
    }
    assert_true(is_explained);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// ---- graphs alone -----------------------------------------------------------------------------

static void capture_labels(rondo_graph *graph, rondo_stream *side) {
    rondo_event *event = NULL;
    OK(rondo_event_create(device, 0, &event));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(stream, "outer"));
    put_sleep(stream, "first", 1);
    OK(rondo_event_record(event, stream));
    OK(rondo_stream_wait_event(side, event));
    OK(rondo_label_push(side, "aside"));
    put_sleep(side, "second", 2);
    OK(rondo_label_pop(side));
    OK(rondo_label_push(stream, "inner"));
    put_sleep(stream, "third", 1);
    OK(rondo_label_pop(stream));
    OK(rondo_event_record(event, side));
    OK(rondo_stream_wait_event(stream, event));
    OK(rondo_label_pop(stream));
    put_sleep(stream, "fourth", 1);
    OK(rondo_graph_capture_end(graph));
    rondo_event_destroy(event);
}

TEST(test_profile__graphs_by_themselves) {
    rondo_graph *graph = NULL;
    rondo_graph *around = NULL;
    rondo_stream *side = NULL;
    rondo_graph_options options = {.struct_size = sizeof options, .label = "step"};
    OK(rondo_stream_create(device, NULL, &side));
    OK(rondo_graph_create(device, &options, &graph));
    options.label = "whole";
    options.keep = RONDO_KEEP_TEMPLATE;
    OK(rondo_graph_create(device, &options, &around));
    capture_labels(graph, side);
    OK(rondo_profile_start(profile));
    OK(rondo_profile_begin("mine"));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_graph_replay(graph, stream));
    }
    put_sleep(stream, "eager", 1);
    OK(rondo_stream_synchronize(stream));
    OK(rondo_profile_end());
    OK(rondo_profile_stop(profile));
    check_numbers();
    assert_int_equal(get_row("replay step", "mine")->calls, 3);
    static const char *const labels[] = {"outer", "aside", "outer/inner", "fourth"};
    for (size_t i = 0; i < 4; ++i) {
        assert_int_equal(get_row(labels[i], "replay step")->calls, 3);
    }
    assert_int_equal(get_row("eager", "mine")->calls, 1);
    assert_true(get_row("wait for a stream", "mine")->cpu_ns == 0);
    // Two of them ran side by side: busy time counts that once.
    const rondo_profile_row *replay = get_row("replay step", "mine");
    uint64_t inner_ns = 0;
    for (size_t i = 0; i < row_count; ++i) {
        inner_ns += rows[i].parent == (uint64_t)(replay - rows) ? rows[i].total_ns : 0;
    }
    assert_true(replay->gpu_ns <= inner_ns);
    rondo_graph_destroy(around);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(side);
}

static uint32_t turns;

static void count_down(void *arguments) {
    (void)arguments;
    --turns;
}

TEST(test_profile__bodies_tell_in_each_turn) {
    rondo_graph *graph = NULL;
    rondo_scope scope;
    rondo_stream *body = NULL;
    OK(rondo_graph_create(device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_label_push(stream, "solver"));
    OK(rondo_scope_begin(stream, RONDO_SCOPE_WHILE, &turns, 0, &scope));
    OK(rondo_scope_enter(scope, 0, &body));
    OK(rondo_label_push(body, "update"));
    OK(rondo_stream_call_host(body, "count", count_down, NULL, 0));
    OK(rondo_label_pop(body));
    OK(rondo_scope_leave(scope));
    OK(rondo_scope_end(scope));
    OK(rondo_label_pop(stream));
    OK(rondo_graph_capture_end(graph));
    turns = 5;
    OK(rondo_profile_start(profile));
    OK(rondo_graph_replay(graph, stream));
    OK(rondo_stream_synchronize(stream));
    OK(rondo_profile_stop(profile));
    check_numbers();
    assert_int_equal(get_row("solver/update", "replay graph")->calls, 5);
    rondo_graph_destroy(graph);
}

// A graph that is older than every profile is told of as a whole.
TEST(test_profile__graphs_without_names) {
    rondo_graph *graph = NULL;
    rondo_profile_destroy(profile);
    OK(rondo_graph_create(device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    put_sleep(stream, "a", 2);
    put_sleep(stream, "b", 2);
    OK(rondo_graph_capture_end(graph));
    OK(rondo_profile_create(NULL, &profile));
    OK(rondo_profile_start(profile));
    OK(rondo_graph_replay(graph, stream));
    OK(rondo_stream_synchronize(stream));
    OK(rondo_profile_stop(profile));
    check_numbers();
    assert_int_equal(get_row("graph", "replay graph")->calls, 1);
    assert_true(get_row("graph", "replay graph")->total_ns >= 4000000);
    rondo_graph_destroy(graph);
}

// ---- copies -----------------------------------------------------------------------------------

TEST(test_profile__copies_by_kind) {
    enum { BYTES = 64 << 10 };
    static char pageable[BYTES];
    void *pinned = NULL;
    void *memory = NULL;
    OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, BYTES, &memory));
    OK(rondo_profile_start(profile));
    OK(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, BYTES, &pinned));
    for (int i = 0; i < 3; ++i) {
        OK(rondo_stream_copy(stream, memory, pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    }
    OK(rondo_stream_copy(stream, pageable, memory, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(stream));
    OK(rondo_profile_stop(profile));
    check_numbers();
    const rondo_profile_summary summary = get_summary();
    assert_int_equal(summary.async_calls, 3);
    assert_int_equal(summary.async_bytes, 3 * BYTES);
    assert_int_equal(summary.sync_calls, 1);
    assert_int_equal(summary.sync_bytes, BYTES);
    const rondo_profile_row *there = get_row("copy host to device", "");
    const rondo_profile_row *back = get_row("copy device to host, sync", "");
    assert_int_equal(there->calls + back->calls, summary.async_calls + summary.sync_calls);
    // By the worker's clock, which the rows of work have.
    assert_true(get_row("memcpy", "copy host to device")->total_ns == summary.async_ns);
    assert_true(get_row("memcpy", "copy device to host, sync")->total_ns == summary.sync_ns);
    assert_int_equal(get_row("allocate pinned memory", "")->bytes, BYTES);
    assert_true(summary.computation_ns == 0);
    rondo_memory_free(device, pinned);
    rondo_memory_free(device, memory);
}

typedef struct transfers {
    size_t count;
    char latest[256];
} transfers;

static transfers told;

static void see_transfer(void *user_data, const rondo_log_record *record) {
    (void)user_data;
    if (strncmp(record->message, "transfer: ", 10) == 0) {
        told.count += 1;
        (void)snprintf(told.latest, sizeof told.latest, "%s", record->message);
    }
}

// An op whose shapes depend on data, behind one of a GPU: the copy that it needs is an event by the
// variable's name, in the order of the stream, and the log names the op.
TEST(test_profile__copies_under_their_op) {
    rondo_device *gpu = NULL;
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    float y[USER_OPS_WIDTH];
    fake_cuda_reset(NULL);
    fake_cuda_install();
    user_ops_reset();
    OK(user_ops_register());
    OK(rondo_device_open("cuda:0", &gpu));
    rondo_builder *builder = NULL;
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, USER_OPS_WIDTH)));
    rondo_builder_node_options options = {
        .struct_size = sizeof options, .domain = "test", .name = "step"};
    OK(rondo_builder_add_node(builder, "Step", &(const char *){"x"}, 1, &(const char *){"h"}, 1,
                              &options));
    options.name = "keep";
    OK(rondo_builder_add_node(builder, "Positive", &(const char *){"h"}, 1, &(const char *){"y"}, 1,
                              &options));
    OK(rondo_builder_add_output(builder, "y", NULL));
    program = build_finish(builder);
    const rondo_executor_options eager = {.struct_size = sizeof eager, .graphs = RONDO_GRAPHS_OFF};
    OK(rondo_executor_create(program, gpu, &eager, &executor));
    told = (transfers){0};
    rondo_log_set_record_sink(see_transfer, NULL);
    OK(rondo_log_set_levels("device=debug"));
    OK(rondo_profile_start(profile));
    enum { RUNS = 10 };
    for (int i = 0; i < RUNS; ++i) {
        const float values[USER_OPS_WIDTH] = {1, -1, 2, -2};
        const rondo_binding feed =
            BIND("x", RONDO_DTYPE_F32, (void *)(uintptr_t)values, USER_OPS_WIDTH);
        rondo_binding fetch = BIND("y", RONDO_DTYPE_F32, y, 2);
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    }
    OK(rondo_profile_stop(profile));
    check_numbers();
    const rondo_profile_row *copy = get_row("copy device to host", "Transfer h");
    assert_int_equal(copy->calls, RUNS);
    assert_string_equal(copy->detail, "\"h\" f32 [4]");
    assert_int_equal(get_row("compute", "Positive keep")->calls, RUNS);
    assert_int_equal(get_row("Positive keep", "run")->calls, RUNS);
    assert_int_equal(get_row("run", "")->calls, RUNS);
    assert_int_equal(get_row("compile a plan", "run")->calls, 1);
    // The op waits for its input, whose copy the run needs before it goes on; the feed it does not.
    assert_int_equal(get_summary().async_calls, RUNS);
    assert_int_equal(get_summary().sync_calls, RUNS);
    assert_int_equal(get_summary().sync_bytes, RUNS * USER_OPS_WIDTH * sizeof(float));
    // The same in the log: a feed there, and back for the op. The result is made on the processor.
    rondo_log_set_level(RONDO_LOG_WARNING);
    rondo_log_set_record_sink(NULL, NULL);
    assert_int_equal(told.count, 2 * RUNS);
    assert_string_equal(told.latest,
                        "transfer: Positive \"keep\" takes \"h\" f32 [4] from cuda:0 to the host, "
                        "16 bytes, in the background");
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(gpu);
    user_ops_reset();
    fake_cuda_uninstall();
}

// ---- threads ----------------------------------------------------------------------------------

static atomic_bool is_over;

static void *work_along(void *argument) {
    (void)argument;
    do {
        if (rondo_profile_begin("along") != RONDO_STATUS_OK ||
            rondo_profile_begin("inside") != RONDO_STATUS_OK ||
            rondo_profile_end() != RONDO_STATUS_OK || rondo_profile_end() != RONDO_STATUS_OK) {
            return &is_over;
        }
    } while (!atomic_load(&is_over));
    return NULL;
}

TEST(test_profile__threads_come_and_go) {
    enum { COUNT = 4 };
    for (int round = 0; round < 20; ++round) {
        pthread_t threads[COUNT];
        atomic_store(&is_over, false);
        if (round % 2 == 0) {
            OK(rondo_profile_start(profile));
        }
        for (int i = 0; i < COUNT; ++i) {
            assert_int_equal(pthread_create(&threads[i], NULL, work_along, NULL), 0);
        }
        if (round % 2 != 0) {
            OK(rondo_profile_start(profile));
        }
        put_sleep(stream, "work", 1);
        OK(rondo_stream_synchronize(stream));
        if (round % 4 < 2) {
            OK(rondo_profile_stop(profile));  // they go on
        }
        atomic_store(&is_over, true);
        for (int i = 0; i < COUNT; ++i) {
            void *result = NULL;
            assert_int_equal(pthread_join(threads[i], &result), 0);
            assert_null(result);
        }
        if (round % 4 >= 2) {
            OK(rondo_profile_stop(profile));
        }
        check_numbers();
        const rondo_profile_row *along = find_row("along", "");
        assert_true(along == NULL || find_row("inside", "along") != NULL || along->calls < 10);
    }
}

// ---- events of the program's ------------------------------------------------------------------

// A capture that begins inside of an event and ends behind it: the inner one ends with the outer.
TEST(test_profile__halves_are_cut) {
    rondo_graph *graph = NULL;
    OK(rondo_graph_create(device, NULL, &graph));
    OK(rondo_profile_start(profile));
    OK(rondo_profile_begin("outer"));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    put_sleep(stream, "a", 1);
    OK(rondo_profile_end());
    OK(rondo_label_push(stream, "after"));
    OK(rondo_label_pop(stream));
    OK(rondo_graph_capture_end(graph));
    OK(rondo_profile_stop(profile));
    check_numbers();
    assert_true(get_row("capture graph", "outer")->total_ns <= get_row("outer", "")->total_ns);
    assert_int_equal(get_row("after", "")->depth, 0);
    rondo_graph_destroy(graph);
}

TEST(test_profile__dropped_records_are_counted) {
    enum { LIMIT = 10, EVENTS = 25 };
    const rondo_profile_options options = {.struct_size = sizeof options, .record_limit = LIMIT};
    rondo_profile_destroy(profile);
    OK(rondo_profile_create(&options, &profile));
    OK(rondo_profile_start(profile));
    for (int i = 0; i < EVENTS; ++i) {
        OK(rondo_profile_begin("event"));
        OK(rondo_profile_end());
    }
    OK(rondo_profile_stop(profile));
    check_numbers();
    assert_int_equal(get_summary().span_count, LIMIT);
    assert_int_equal(get_summary().dropped_count, EVENTS - LIMIT);
    assert_int_equal(get_row("event", "")->calls, LIMIT);
}

// ---- misuse -----------------------------------------------------------------------------------

static bool ignore_text(void *user_data, const char *text, size_t bytes) {
    (void)text;
    *(size_t *)user_data += bytes;
    return true;
}

TEST(test_profile__calls_out_of_turn) {
    rondo_profile *second = NULL;
    rondo_graph *graph = NULL;
    rondo_profile_summary summary = {.struct_size = sizeof summary};
    size_t bytes = 0;
    assert_int_equal(rondo_profile_stop(profile), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_get_summary(profile, &summary), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_write(profile, NULL, ignore_text, &bytes), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_end(), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_begin(NULL), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_profile_begin(""), RONDO_STATUS_INVALID);
    OK(rondo_profile_begin("nobody listens"));
    OK(rondo_profile_end());
    OK(rondo_profile_create(NULL, &second));
    OK(rondo_profile_start(profile));
    assert_int_equal(rondo_profile_start(profile), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_start(second), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_stop(second), RONDO_STATUS_STATE);
    assert_int_equal(rondo_profile_get_summary(profile, &summary), RONDO_STATUS_STATE);
    OK(rondo_profile_begin("open"));
    assert_int_equal(rondo_profile_stop(profile), RONDO_STATUS_STATE);
    OK(rondo_profile_end());
    OK(rondo_profile_stop(profile));
    assert_int_equal(rondo_profile_stop(profile), RONDO_STATUS_STATE);
    OK(rondo_graph_create(device, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    assert_int_equal(rondo_profile_start(second), RONDO_STATUS_STATE);
    put_sleep(stream, "a", 0);
    OK(rondo_graph_capture_end(graph));
    OK(rondo_profile_start(second));
    rondo_profile_destroy(second);  // stops it
    OK(rondo_profile_start(profile));
    OK(rondo_profile_stop(profile));
    assert_int_equal(rondo_profile_get_rows(profile, 9, false, NULL, 0, &bytes),
                     RONDO_STATUS_INVALID);
    rondo_profile_write_options options = {.struct_size = sizeof options, .format = 9};
    assert_int_equal(rondo_profile_write(profile, &options, ignore_text, &bytes),
                     RONDO_STATUS_INVALID);
    options.format = RONDO_PROFILE_JSON;
    assert_int_equal(rondo_profile_write(profile, &options, NULL, &bytes), RONDO_STATUS_INVALID);
    bytes = 0;
    OK(rondo_profile_write(profile, &options, ignore_text, &bytes));
    assert_true(bytes > 0);
    for (int i = 0; i < 64; ++i) {
        OK(rondo_profile_begin("deep"));
    }
    assert_int_equal(rondo_profile_begin("too deep"), RONDO_STATUS_STATE);
    for (int i = 0; i < 64; ++i) {
        OK(rondo_profile_end());
    }
    rondo_graph_destroy(graph);
}

// What a parent profiles is not its child's.
TEST(test_profile__forks) {
    OK(rondo_profile_start(profile));
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rondo_profile *own = NULL;
        bool is_good = rondo_profile_stop(profile) == RONDO_STATUS_STATE &&
                       rondo_profile_create(NULL, &own) == RONDO_STATUS_OK &&
                       rondo_profile_start(own) == RONDO_STATUS_OK &&
                       rondo_profile_begin("child") == RONDO_STATUS_OK &&
                       rondo_profile_end() == RONDO_STATUS_OK &&
                       rondo_profile_stop(own) == RONDO_STATUS_OK;
        _exit(is_good ? 0 : 1);
    }
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    OK(rondo_profile_stop(profile));
}

TEST_MAIN_WITH(open_host, close_host)
