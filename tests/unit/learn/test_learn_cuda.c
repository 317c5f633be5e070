// Learned steps over the fake driver: what only CUDA's nodes have, and addresses that the driver
// chose.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <sys/mman.h>

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"
#include "device/device.h"
#include "graph/template.h"
#include "learn/learned.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda_state.h"
#include "support/learn_world.h"
#include "support/short_forms.h"
#include "support/test.h"

static learn_world g;
static void *g_function;

typedef struct work {
    unsigned char *out;
    const unsigned char *in;
    uint64_t word;
    int64_t count;
} work;

static void run_kernel(const void *arguments, size_t byte_count) {
    work w;
    assert_int_equal(byte_count, sizeof w);
    memcpy(&w, arguments, sizeof w);
    // The cluster that is in force shows in the result.
    const uint64_t added = w.word + 16 * (uint64_t)fake_cuda_get_cluster();
    for (int64_t i = 0; i < w.count; ++i) {
        w.out[i] = (unsigned char)(w.in[i] + added);
    }
}

// ---- the world --------------------------------------------------------------------------------

static void open_world_of(const fake_cuda_options *options) {
    fake_cuda_reset(options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_cuda_set_kernel("work", run_kernel);
    learn_world_open(&g, "cuda:0");
    OK(rondo__device_get_function(g.device, "", NULL, 0, "work", &g_function));
}

static int open_world(void **state) {
    (void)state;
    const fake_cuda_options options = {.device_count = 1,
                                       .driver_version = 13000,
                                       .compute_capability = 100,
                                       .has_get_proc_address = true};
    open_world_of(&options);
    return 0;
}

static int close_world(void **state) {
    (void)state;
    learn_world_close(&g);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

// ---- launch attributes ------------------------------------------------------------------------

// An attribute of a launch; its number is 2 + 2 * (n & 1) where it changes.
typedef struct attribute_case {
    int32_t id;
    bool changes;
    const char *field;    // of a difference
    const char *message;  // of the refusal
} attribute_case;

// As a library launches: by the driver's own call.
static rondo_status launch_with(rondo_stream *stream, int32_t id, uint32_t number, work w) {
    rondo__cu_launch_attribute attribute = {.id = id};
    // Priorities are counted downwards, from 0.
    const uint32_t value = id == RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY ? 0u - number : number;
    memcpy(&attribute.value, &value, sizeof value);
    const rondo__cu_launch_config config = {.grid = {8, 1, 1},
                                            .block = {64, 1, 1},
                                            .stream = rondo_stream_get_native(stream),
                                            .attributes = &attribute,
                                            .attribute_count = 1};
    size_t bytes = sizeof w;
    void *extra[] = {RONDO__CU_LAUNCH_BUFFER_POINTER, &w, RONDO__CU_LAUNCH_BUFFER_SIZE, &bytes,
                     RONDO__CU_LAUNCH_END};
    return fake_cuLaunchKernelEx(&config, g_function, NULL, extra) == RONDO__CU_SUCCESS
               ? RONDO_STATUS_OK
               : RONDO_STATUS_DRIVER;
}

static rondo_status step_with_attribute(rondo_stream *stream, const rondo_value *a,
                                        void *user_data) {
    const attribute_case *c = user_data;
    const uint32_t number = c->changes ? 2 + 2 * ((uint32_t)a[2].integer & 1) : 2;
    return launch_with(stream, c->id, number, (work){a[1].pointer, a[0].pointer, 3, a[2].integer});
}

static const attribute_case attribute_cases[] = {
    {RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, true, "cluster.x", "clusters of"},
    {RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY, true, "priority", "priority"},
    {RONDO__CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, true, "access policy", "access policy"},
    {RONDO__CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, true, "other attributes", "attributes"},
    {RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER, true, "other attributes", "attributes"},
    {RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, false, NULL, NULL},
    {RONDO__CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, false, NULL, NULL},
};
enum { ATTRIBUTE_CASE_COUNT = sizeof attribute_cases / sizeof *attribute_cases };

// No patch changes an attribute, so a step of which one depends on an argument is refused; it runs
// by recapture, which makes the executable anew.
TEST(attributes_are_no_words) {
    for (size_t i = 0; i < ATTRIBUTE_CASE_COUNT; ++i) {
        attribute_case c = attribute_cases[i];
        rondo_learned *learned = NULL;
        rondo_value values[LEARN_ARGUMENTS];
        OK(rondo_learned_create(g.device, NULL, learn_arguments, 3, step_with_attribute, &c,
                                &learned));
        for (int64_t n = 10; n < 14; ++n) {
            learn_world_set(&g, values, (size_t)n % 2, 2, n, 0);
            learn_world_expect_same(&g, learned, step_with_attribute, &c, values, 3);
        }
        const rondo_learned_report report = learn_world_report(learned);
        assert_int_equal(report.refusal, c.changes ? RONDO_REFUSAL_LAUNCH : RONDO_REFUSAL_NONE);
        assert_int_equal(report.has_node, c.changes);
        if (c.changes) {
            assert_non_null(strstr(report.message, c.message));
            assert_string_equal(report.node_name, "work");
        }
        rondo_learned_destroy(learned);
    }
}

static rondo_graph *record_with(attribute_case *c, int64_t n) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *graph = NULL;
    rondo_value values[LEARN_ARGUMENTS];
    learn_world_set(&g, values, 0, 1, n, 0);
    OK(rondo_graph_create(g.device, &options, &graph));
    OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(step_with_attribute(g.stream, values, c));
    OK(rondo_graph_capture_end(graph));
    return graph;
}

TEST(attributes_are_differences) {
    for (size_t i = 0; i < ATTRIBUTE_CASE_COUNT; ++i) {
        attribute_case c = attribute_cases[i];
        rondo_graph *graphs[] = {record_with(&c, 10), record_with(&c, 11)};
        rondo_difference found[4] = {{.struct_size = sizeof found[0]}};
        rondo__template_hash hashes[2];
        size_t count = 0;
        OK(rondo_graph_compare(graphs[0], graphs[1], found, 4, &count));
        assert_int_equal(count, 1 + c.changes);  // n itself is a word of the arguments
        for (int k = 0; k < 2; ++k) {
            OK(rondo__template_get_hash(graphs[k]->recorded, &hashes[k]));
        }
        const bool is_window = c.id == RONDO__CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
        assert_int_equal(hashes[0].structure != hashes[1].structure, c.changes && !is_window);
        assert_int_equal(hashes[0].content != hashes[1].content, c.changes);
        rondo_update_report report = {.struct_size = sizeof report};
        OK(rondo_graph_update(graphs[0], graphs[1], &report));
        // Of these an update takes the new ones over, or they change no result.
        const bool is_patched = is_window || c.id == RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY ||
                                c.id == RONDO__CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
        assert_int_equal(report.result, c.changes && !is_patched ? RONDO_UPDATE_INSTANTIATED
                                                                 : RONDO_UPDATE_PATCHED);
        if (c.changes) {
            assert_string_equal(found[0].field, c.field);
            assert_true(is_patched || strcmp(report.difference.field, c.field) == 0);
        }
        rondo_graph_destroy(graphs[0]);
        rondo_graph_destroy(graphs[1]);
    }
}

// ---- addresses --------------------------------------------------------------------------------

typedef struct cut_case {
    const char *name;
    uint64_t (*cut)(const rondo_value *a);
    bool is_learned;
} cut_case;

static uint64_t get_low_half(const rondo_value *a) {
    return (uint32_t)(uintptr_t)a[0].pointer;
}

static uint64_t get_low_half_moved(const rondo_value *a) {
    return (uint32_t)((uintptr_t)a[0].pointer + 64);
}

static uint64_t get_low_half_and_number(const rondo_value *a) {
    return (uint32_t)(uintptr_t)a[0].pointer + (uint64_t)a[2].integer * 4;
}

static uint64_t get_low_half_signed(const rondo_value *a) {
    return (uint64_t)(int64_t)(int32_t)(uintptr_t)a[0].pointer;
}

static uint64_t get_low_half_behind_constant(const rondo_value *a) {
    return (uint32_t)(uintptr_t)a[0].pointer | UINT64_C(0x1234) << 48;
}

static uint64_t get_far_inside(const rondo_value *a) {
    return (uintptr_t)a[0].pointer + 4000;
}

static uint64_t get_before(const rondo_value *a) {
    return (uintptr_t)a[0].pointer - 4096 + 8 * (uint64_t)a[2].integer;
}

static rondo_status step_with_word(rondo_stream *stream, const rondo_value *a, void *user_data) {
    const cut_case *c = user_data;
    const work w = {a[1].pointer, a[0].pointer, c->cut(a), a[2].integer};
    const rondo_launch launch = LAUNCH("work", g_function, 1, 64, &w, sizeof w);
    return rondo_stream_launch(stream, &launch);
}

// The driver's memory may lie in one range of 4 GiB in all trials: an address that lost its high
// half differs from the whole one by a constant there, and elsewhere by another one.
TEST(cut_addresses_are_refused) {
    static const cut_case rows[] = {
        {"low half", get_low_half, false},
        {"low half of an interior address", get_low_half_moved, false},
        {"low half and a number", get_low_half_and_number, false},
        {"low half with its sign", get_low_half_signed, false},
        {"low half beside a constant", get_low_half_behind_constant, false},
        {"interior address", get_far_inside, true},
        {"address before the buffer", get_before, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cut_case c = rows[i];
        rondo_learned *learned = NULL;
        rondo_value values[LEARN_ARGUMENTS];
        OK(rondo_learned_create(g.device, NULL, learn_arguments, 3, step_with_word, &c, &learned));
        for (int64_t n = 10; n < 14; ++n) {
            learn_world_set(&g, values, (size_t)n % 2, 2, n, 0);
            learn_world_expect_same(&g, learned, step_with_word, &c, values, 3);
        }
        const rondo_learned_report report = learn_world_report(learned);
        if ((report.refusal == RONDO_REFUSAL_NONE) != c.is_learned) {
            print_error("%s: %s\n", c.name, report.message);
        }
        assert_int_equal(report.refusal, c.is_learned ? RONDO_REFUSAL_NONE : RONDO_REFUSAL_WORD);
        if (!c.is_learned && strstr(report.message, "cut to") == NULL) {
            print_error("%s: %s\n", c.name, report.message);
        }
        if (!c.is_learned) {
            assert_non_null(strstr(report.message, "address of \"x\" that was cut to 32 bits"));
            assert_string_equal(report.word, "arguments, bytes 16 to 23");
        }
        rondo_learned_destroy(learned);
    }
}

// ---- what a run asks of the driver -------------------------------------------------------------

static rondo_status step_of_two(rondo_stream *stream, const rondo_value *a, void *user_data) {
    cut_case whole = {.cut = get_far_inside};
    (void)user_data;
    RETURN_IF_ERROR(step_with_word(stream, a, &whole));
    return step_with_word(stream, a, &whole);
}

// On a thread without a current context the patches select the device's, once for all; the launch
// only where the driver asks for it.
TEST(changed_values_cost_patches_and_a_launch) {
    static const struct {
        int version;
        size_t calls;
        size_t pushes;
    } rows[] = {{13000, 2 + 3 + 1, 1}, {12040, 2 + 3 + 5, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_learned *learned = NULL;
        rondo_value values[LEARN_ARGUMENTS];
        close_world(state);
        open_world_of(&(fake_cuda_options){
            .device_count = 1, .driver_version = rows[i].version, .has_get_proc_address = true});
        const rondo_learned_options options = {.struct_size = sizeof options, .draws_wanted = 1};
        OK(rondo_learned_create(g.device, &options, learn_arguments, 3, step_of_two, NULL,
                                &learned));
        learn_world_set(&g, values, 0, 1, 100, 0);
        learn_world_expect_same(&g, learned, step_of_two, NULL, values, 3);
        OK(rondo_learned_run(learned, g.stream, values, 3));
        const size_t calls = fake_cuda_count_calls(NULL);
        const size_t pushes = fake_cuda_count_calls("cuCtxPushCurrent");
        learn_world_set(&g, values, 0, 1, 101, 0);
        OK(rondo_learned_run(learned, g.stream, values, 3));
        assert_int_equal(fake_cuda_count_calls(NULL) - calls, rows[i].calls);
        assert_int_equal(fake_cuda_count_calls("cuCtxPushCurrent") - pushes, rows[i].pushes);
        learn_world_expect_same(&g, learned, step_of_two, NULL, values, 3);
        rondo_learned_destroy(learned);
    }
}

// ---- memory that nobody knows -----------------------------------------------------------------

// As an address that the capture itself allocated: the driver does not know it yet, and the
// processor cannot read there.
static rondo_status step_from_unknown(rondo_stream *stream, const rondo_value *a, void *user_data) {
    rondo__cu_context context = rondo__cuda_device_of(g.device)->context;
    assert_int_equal(fake_cuCtxPushCurrent(context), RONDO__CU_SUCCESS);
    const rondo__cu_result code = fake_cuMemcpyHtoDAsync(
        (rondo__cu_address)(uintptr_t)a[0].pointer, user_data, 64, rondo_stream_get_native(stream));
    assert_int_equal(fake_cuCtxPopCurrent(&context), RONDO__CU_SUCCESS);
    return code == RONDO__CU_SUCCESS ? RONDO_STATUS_OK : RONDO_STATUS_DRIVER;
}

TEST(unknown_sources_are_not_read) {
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .fallback = RONDO_LEARN_REFUSE};
    const rondo_value value = {.pointer = g.buffers[0]};
    void *unknown = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rondo_learned *learned = NULL;
    assert_true(unknown != MAP_FAILED);
    OK(rondo_learned_create(g.device, &options, learn_arguments, 1, step_from_unknown, unknown,
                            &learned));
    OK(rondo_learned_learn(learned, g.stream, &value, 1));
    const rondo_learned_report report = learn_world_report(learned);
    assert_int_equal(report.refusal, RONDO_REFUSAL_TABLE);
    assert_non_null(strstr(report.message, "neither Rondo nor the driver knows"));
    rondo_learned_destroy(learned);
    munmap(unknown, 4096);
}

// ---- many nodes -------------------------------------------------------------------------------

enum { CALLS = 10000 };

typedef struct addition {
    int64_t *sum;
    int64_t term;
} addition;

static void add_term(void *arguments) {
    const addition *a = arguments;
    *a->sum += a->term;
}

static rondo_status step_of_calls(rondo_stream *stream, const rondo_value *a, void *user_data) {
    for (int64_t i = 0; i < CALLS; ++i) {
        const addition arguments = {user_data, a[0].integer + i};
        RETURN_IF_ERROR(
            rondo_stream_call_host(stream, "add", add_term, &arguments, sizeof arguments));
    }
    return RONDO_STATUS_OK;
}

// Each patch of a host node gives it a block of arguments of its own, which is freed behind the
// replays that use it: in a time that does not grow with the number of others.
TEST(many_host_nodes_are_patched) {
    static const int64_t numbers[] = {1, 2, 2, 3, 1, 1, 7};
    const rondo_argument argument = {.struct_size = sizeof argument,
                                     .name = "n",
                                     .kind = RONDO_ARGUMENT_INT64,
                                     .most.integer = 1000};
    rondo_learned *learned = NULL;
    int64_t sum = 0;
    int64_t expected = 0;
    OK(rondo_learned_create(g.device, NULL, &argument, 1, step_of_calls, &sum, &learned));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
        const rondo_value value = {.integer = numbers[i]};
        OK(rondo_learned_run(learned, g.stream, &value, 1));
        expected += CALLS * numbers[i] + (int64_t)CALLS * (CALLS - 1) / 2;
        assert_int_equal(sum, expected);
    }
    rondo_learned_stats stats = {.struct_size = sizeof stats};
    OK(rondo_learned_get_stats(learned, &stats));
    assert_int_equal(stats.patched_node_count, 4 * CALLS);
    rondo_learned_destroy(learned);
}

TEST_MAIN_WITH(open_world, close_world)
