// Updates and executables over the fake driver: what it takes over, what only looks like it, and
// graphs of which it makes one executable at a time; texts of kernels.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/memory.h"
#include "device/device.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda_state.h"
#include "support/test.h"

typedef struct scene {
    rondo_device *device;
    rondo_stream *stream;
    uint32_t *words;
    void *function;
} scene;

static scene g;
static uint32_t g_cluster;  // of the latest launch

static void run_nothing(const void *arguments, size_t argument_bytes) {
    (void)arguments;
    (void)argument_bytes;
    g_cluster = fake_cuda_get_cluster();
}

static int set_up(void **state) {
    (void)state;
    const fake_cuda_options options = {.device_count = 1,
                                       .driver_version = 13000,
                                       .compute_capability = 100,
                                       .has_get_proc_address = true};
    fake_cuda_reset(&options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_cuda_set_kernel("nothing", run_nothing);
    OK(rondo_device_open("cuda:0", &g.device));
    OK(rondo_stream_create(g.device, NULL, &g.stream));
    OK(rondo_memory_allocate(g.device, RONDO_MEMORY_DEVICE, 64, (void **)&g.words));
    OK(rondo__device_get_function(g.device, "", NULL, 0, "nothing", &g.function));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rondo_memory_free(g.device, g.words);
    rondo_stream_destroy(g.stream);
    rondo_device_release(g.device);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

static rondo_graph *create_graph(void) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = RONDO_KEEP_TEMPLATE};
    rondo_graph *graph = NULL;
    OK(rondo_graph_create(g.device, &options, &graph));
    return graph;
}

// As a library launches: by the driver's own call.
static void launch(rondo_stream *stream, int32_t attribute_id, uint32_t number) {
    rondo__cu_launch_attribute attribute = {.id = attribute_id};
    memcpy(&attribute.value, &number, sizeof number);
    const rondo__cu_launch_config config = {.grid = {8, 1, 1},
                                            .block = {64, 1, 1},
                                            .stream = rondo_stream_get_native(stream),
                                            .attributes = &attribute,
                                            .attribute_count = 1};
    assert_int_equal(fake_cuLaunchKernelEx(&config, g.function, NULL, NULL), RONDO__CU_SUCCESS);
}

static const fake_graph *get_executable(rondo_graph *graph) {
    void *executable = NULL;
    OK(rondo_graph_get_native(graph, NULL, &executable));
    return executable;
}

// ---- launch attributes ------------------------------------------------------------------------

typedef enum place { AT_TOP, IN_CHILD, IN_BODY, PLACE_COUNT } place;

typedef struct body {
    int32_t attribute;
    uint32_t number;
} body;

static rondo_status record_body(rondo_stream *stream, void *user_data) {
    const body *b = user_data;
    launch(stream, b->attribute, b->number);
    return RONDO_STATUS_OK;
}

static rondo_graph *record(place where, int32_t attribute, uint32_t number) {
    rondo_graph *graph = create_graph();
    rondo_graph *inner = create_graph();
    body b = {attribute, number};
    OK(rondo_graph_capture_begin(inner, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
    launch(g.stream, attribute, number);
    OK(rondo_graph_capture_end(inner));
    OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
    switch (where) {
        case IN_CHILD:
            OK(rondo_stream_add_graph(g.stream, inner));
            break;
        case IN_BODY:
            OK(rondo_control_if(g.stream, g.words, record_body, NULL, &b));
            break;
        default:
            launch(g.stream, attribute, number);
            break;
    }
    OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(inner);
    return graph;
}

// The driver says Success to other attributes, and goes on with the former clusters. The others
// change no result.
TEST(test_cuda_update__other_attributes_make_a_new_executable) {
    static const int32_t attributes[] = {
        RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER,
        RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY,
        RONDO__CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        RONDO__CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes * PLACE_COUNT * 2; ++i) {
        const int32_t attribute = attributes[i / 2 / PLACE_COUNT];
        const place where = (place)(i / 2 % PLACE_COUNT);
        const uint32_t later = i % 2 != 0 ? 4 : 2;
        rondo_graph *graph = record(where, attribute, 2);
        rondo_graph *source = record(where, attribute, later);
        rondo_update_report report = {.struct_size = sizeof report};
        OK(rondo_graph_update(graph, source, &report));
        const bool is_cluster = i / 2 / PLACE_COUNT < 2;
        assert_int_equal(report.result, later == 2 || !is_cluster ? RONDO_UPDATE_PATCHED
                                                                  : RONDO_UPDATE_INSTANTIATED);
        assert_true(report.has_difference || later == 2 || !is_cluster);
        *g.words = 1;
        OK(rondo_graph_replay(graph, g.stream));
        if (attribute == RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            assert_int_equal(g_cluster, later);
        }
        rondo_graph_destroy(graph);
        rondo_graph_destroy(source);
    }
}

static rondo_status launch_cluster(rondo_stream *stream, void *user_data) {
    launch(stream, RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, *(const uint32_t *)user_data);
    return RONDO_STATUS_OK;
}

// A cache picks the executable that it patches by the number of nodes.
TEST(test_cuda_update__caches_patch_no_other_attributes) {
    const rondo_graph_cache_options options = {
        .struct_size = sizeof options, .entry_limit = 1, .policy = RONDO_CACHE_ALWAYS_CAPTURE};
    rondo_graph_cache *cache = NULL;
    OK(rondo_graph_cache_create(g.device, &options, &cache));
    for (uint32_t key = 1; key < 4; ++key) {
        uint32_t cluster = key == 1 ? 2 : 4;
        rondo_cache_outcome outcome;
        OK(rondo_graph_cache_run(cache, &key, sizeof key, g.stream, launch_cluster, &cluster,
                                 &outcome));
        assert_int_equal(outcome,
                         key == 3 ? RONDO_CACHE_UPDATED : RONDO_CACHE_CAPTURED_AND_REPLAYED);
        assert_int_equal(g_cluster, cluster);
    }
    rondo_graph_cache_destroy(cache);
}

// Kernels of unlike priorities keep theirs; otherwise the stream of the replay counts.
TEST(test_cuda_update__unlike_priorities_are_kept) {
    const int32_t id = RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY;
    const rondo_stream_options options = {.struct_size = sizeof options, .priority = 1};
    rondo_stream *urgent = NULL;
    OK(rondo_stream_create(g.device, &options, &urgent));  // before, nobody asks
    for (uint32_t other = 0; other < 3; ++other) {
        rondo_graph *graph = create_graph();
        OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
        launch(g.stream, id, 0u - 1);  // levels are counted downwards, from 0
        launch(g.stream, id, 0u - other);
        launch(g.stream, id, 0u - 1);
        OK(rondo_graph_capture_end(graph));
        assert_int_equal(get_executable(graph)->flags,
                         other == 1 ? 0 : RONDO__CU_INSTANTIATE_USE_NODE_PRIORITY);
        rondo_graph_destroy(graph);
    }
    rondo_stream_destroy(urgent);
}

static rondo_status note_priority(rondo_stream *stream, void *user_data) {
    *(int *)user_data = ((const fake_stream *)rondo_stream_get_native(stream))->priority;
    return RONDO_STATUS_OK;
}

TEST(test_cuda_update__bodies_have_the_priority_around_them) {
    const rondo_stream_options options = {.struct_size = sizeof options, .priority = 3};
    rondo_stream *stream = NULL;
    rondo_graph *graph = create_graph();
    int priority = 0;
    OK(rondo_stream_create(g.device, &options, &stream));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_control_if(stream, g.words, note_priority, NULL, &priority));
    OK(rondo_graph_capture_end(graph));
    assert_int_equal(priority, -3);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// ---- one executable at a time -----------------------------------------------------------------

static void refuse_next(void *data) {
    (void)data;
    fake_cuda_fail_nth(0, RONDO__CU_ERROR_NOT_SUPPORTED);
}

// The driver says so of graphs with device-updatable kernels.
static void refuse(const char *call) {
    fake_cuda_set_hook(call, refuse_next, NULL);
}

static rondo_graph *record_fill(uint32_t value, rondo_node *out_node) {
    rondo_graph *graph = create_graph();
    OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_fill(g.stream, g.words, value, 4, 4));
    if (out_node != NULL) {
        OK(rondo_stream_get_last_node(g.stream, out_node));
    }
    OK(rondo_graph_capture_end(graph));
    return graph;
}

static void expect_fill(rondo_graph *graph, uint32_t value) {
    memset(g.words, 0, 16);
    OK(rondo_graph_replay(graph, g.stream));
    OK(rondo_stream_synchronize(g.stream));
    assert_int_equal(g.words[3], value);
}

TEST(test_cuda_update__graphs_that_no_update_takes_are_made_anew) {
    rondo_graph *graph = record_fill(1, NULL);
    rondo_graph *source = record_fill(2, NULL);
    rondo_update_report report = {.struct_size = sizeof report};
    refuse("cuGraphExecUpdate");
    OK(rondo_graph_update(graph, source, &report));
    assert_true(fake_cuda_has_failed());
    assert_int_equal(report.result, RONDO_UPDATE_INSTANTIATED);
    expect_fill(graph, 2);
    rondo_graph_destroy(graph);
    rondo_graph_destroy(source);
}

TEST(test_cuda_update__the_former_executable_goes_where_there_can_be_one) {
    rondo_graph *graph = record_fill(1, NULL);
    const size_t destroyed = fake_cuda_count_calls("cuGraphExecDestroy");
    refuse("cuGraphInstantiateWithParams");
    OK(rondo_graph_instantiate(graph));
    assert_true(fake_cuda_has_failed());
    assert_int_equal(fake_cuda_count_calls("cuGraphExecDestroy"), destroyed + 1);
    expect_fill(graph, 1);

    uint64_t bytes = 0;
    refuse("cuGraphInstantiateWithParams");
    EXPECT(UNSUPPORTED, "device-updatable", rondo_graph_measure_device_bytes(graph, &bytes));
    rondo_graph_destroy(graph);
}

// Also where patches changed what it does: then another one is made.
TEST(test_cuda_update__the_only_executable_moves) {
    for (int is_patched = 0; is_patched < 2; ++is_patched) {
        rondo_node node;
        rondo_graph *graph = create_graph();
        rondo_graph *source = record_fill(1, &node);
        const rondo_work work = {.struct_size = sizeof work,
                                 .kind = RONDO_NODE_FILL,
                                 .destination = g.words,
                                 .fill_value = 5,
                                 .element_bytes = 4,
                                 .element_count = 4};
        if (is_patched != 0) {
            OK(rondo_graph_patch_node(source, node, &work));
        }
        const fake_graph *former = get_executable(source);
        refuse("cuGraphInstantiateWithParams");
        OK(rondo_graph_update(graph, source, NULL));
        assert_true(fake_cuda_has_failed());
        // The former is gone where it was patched, and its address may be in use again.
        assert_true(is_patched != 0 || get_executable(graph) == former);
        expect_fill(graph, 1);
        rondo_graph_destroy(graph);
        rondo_graph_destroy(source);
    }
}

// ---- patched values ---------------------------------------------------------------------------

// A static text is known by its address, one in other memory by what it says.
TEST(test_cuda_update__texts_are_told_apart) {
    static const char constant[] = "// one";
    char *text = rondo__strdup(constant);
    size_t count = rondo__device_count_kernels(g.device);
    void *function = NULL;
    for (int turn = 0; turn < 3; ++turn) {
        OK(rondo__device_get_function(g.device, constant, NULL, 0, "nothing", &function));
        OK(rondo__device_get_function(g.device, text, NULL, 0, "nothing", &function));
    }
    assert_int_equal(rondo__device_count_kernels(g.device), count + 1);
    text[3] = '2';
    OK(rondo__device_get_function(g.device, text, NULL, 0, "nothing", &function));
    assert_int_equal(rondo__device_count_kernels(g.device), count + 2);
    OK(rondo__device_get_function(g.device, text, (const char *[]){"-DA"}, 1, "nothing",
                                  &function));
    assert_int_equal(rondo__device_count_kernels(g.device), count + 3);
    rondo__free(text);
}

// The driver does not cut the value of a patch, and would write its higher bits, too.
TEST(test_cuda_update__patched_values_are_cut) {
    static const uint32_t wanted[] = {[1] = 0x78, [2] = 0x5678, [4] = 0x12345678};
    for (uint32_t bytes = 1; bytes <= 4; bytes *= 2) {
        rondo_graph *graph = create_graph();
        rondo_work work = {.struct_size = sizeof work,
                           .kind = RONDO_NODE_FILL,
                           .destination = g.words,
                           .element_bytes = bytes,
                           .element_count = 4};
        rondo_node node;
        OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
        OK(rondo_stream_add_node(g.stream, &work, &node));
        OK(rondo_graph_capture_end(graph));
        work.fill_value = 0x12345678;
        OK(rondo_graph_patch_node(graph, node, &work));
        assert_int_equal(get_executable(graph)->nodes[0].value, wanted[bytes]);
        const size_t count = fake_cuda_count_calls("cuGraphExecMemsetNodeSetParams");
        work.fill_value = wanted[bytes];
        OK(rondo_graph_patch_node(graph, node, &work));  // it does that already
        assert_int_equal(fake_cuda_count_calls("cuGraphExecMemsetNodeSetParams"), count);
        rondo_graph_destroy(graph);
    }
}

// ---- arguments that the driver does not tell --------------------------------------------------

static rondo_graph *record_parameters(uint32_t number) {
    const struct {
        uint32_t *words;
        uint32_t numbers[FAKE_PARAMETERS - 1];
    } given = {g.words, {[FAKE_PARAMETERS - 2] = number}};
    rondo_graph *graph = create_graph();
    const rondo_launch launch = {.struct_size = sizeof launch,
                                 .function = g.function,
                                 .grid = {1, 1, 1},
                                 .block = {32, 1, 1},
                                 .arguments = &given,
                                 .argument_bytes = sizeof given.words + sizeof given.numbers,
                                 .flags = RONDO_LAUNCH_COOPERATIVE};
    OK(rondo_graph_capture_begin(graph, g.stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_stream_launch(g.stream, &launch));
    OK(rondo_graph_capture_end(graph));
    return graph;
}

// Only a wrong index is the end of the list; any other refusal fails instead of leaving out what
// comes behind.
TEST(test_cuda_update__a_list_of_parameters_that_stops_is_no_list) {
    static const rondo__cu_result codes[] = {
        RONDO__CU_ERROR_INVALID_HANDLE, RONDO__CU_ERROR_NOT_SUPPORTED, RONDO__CU_ERROR_UNKNOWN};
    rondo_graph *one = record_parameters(1);
    rondo_graph *other = record_parameters(2);
    size_t count, stops = 0;
    OK(rondo_graph_compare(one, other, NULL, 0, &count));
    assert_int_equal(count, 1);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; ++c) {
        bool came = true;
        for (long n = 0; came; ++n) {
            fake_cuda_fail_nth(n, codes[c]);
            const rondo_status status = rondo_graph_compare(one, other, NULL, 0, &count);
            came = fake_cuda_has_failed();
            const char *call = fake_cuda_get_failed_call();
            const bool is_list = strcmp(call, "cuFuncGetParamInfo") == 0;
            fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
            stops += is_list;
            assert_true(!is_list || status != RONDO_STATUS_OK);
        }
    }
    assert_true(stops >= 3 * FAKE_PARAMETERS);
    rondo_graph_destroy(other);
    rondo_graph_destroy(one);
}

TEST_MAIN_WITH(set_up, tear_down)
